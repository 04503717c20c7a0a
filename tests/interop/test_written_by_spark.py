"""Paimon's core reads, changes and compacts what Spark writes here: Parquet, dynamic buckets, changelogs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from both_engines import Both, next_to
from exact_rows import Rows
from paimon_values import COLUMNS, ROWS

pytestmark = pytest.mark.interop

PARQUET = {"file.format": "parquet"}
KINDS: dict[str, dict[str, Any]] = {
    "append": {"options": PARQUET},
    "key": {"primary_keys": ["id"], "options": {"bucket": "2", **PARQUET}},
    "dynamic": {
        "primary_keys": ["id", "part"],
        "partition_keys": ["part"],
        "options": {"bucket": "-1", **PARQUET},
    },
}
NAMES = [("id", "INT NOT NULL"), ("v", "STRING")]


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_in_parquet_by_spark(both: Both, kind: str) -> None:
    both.theirs.create(COLUMNS, **KINDS[kind])
    both.theirs.write(ROWS)
    copy = next_to(both, "copy")
    copy.theirs.create(COLUMNS, **KINDS[kind])
    both.sql(f"INSERT INTO {copy.sql_name} SELECT * FROM {{t}}")
    copy.agree(ROWS)
    assert {file["name"].rpartition(".")[2] for file in copy.theirs.files()} == {"parquet"}
    copy.sql("DELETE FROM {t} WHERE id = 1")
    copy.theirs.compact()
    copy.agree([row for row in ROWS if row[0] != 1])


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_keys_keep_their_buckets(both: Both, file_format: str) -> None:
    """Each side finds the keys of the other: a key in two buckets would be read twice."""
    options = {
        "bucket": "-1",
        "dynamic-bucket.target-row-num": "7",
        "write-only": "true",
        "file.format": file_format,
    }
    both.theirs.create(NAMES, primary_keys=["id"], options=options)
    state: dict[int, str] = {}

    def expect(first: int, last: int, value: str) -> None:
        state.update(dict.fromkeys(range(first, last), value))
        both.agree([[number, each] for number, each in state.items()])

    both.sql("INSERT INTO {t} SELECT CAST(id AS INT), 'spark' FROM range(0, 20, 1, 3)")
    expect(0, 20, "spark")
    both.theirs.write([[number, "theirs"] for number in range(10, 35)])
    expect(10, 35, "theirs")
    both.sql("INSERT INTO {t} SELECT CAST(id AS INT), 'again' FROM range(5, 50, 1, 3)")
    expect(5, 50, "again")
    both.theirs.write([[number, "last"] for number in range(60)])
    expect(0, 60, "last")
    assert len({file["bucket"] for file in both.theirs.files()}) >= 9
    both.theirs.compact({"write-only": "false"})
    both.sql("UPDATE {t} SET v = 'updated' WHERE id < 30")
    expect(0, 30, "updated")


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_keys_move_between_partitions(both: Both, file_format: str) -> None:
    """Spark moves keys, Paimon compacts what it left, and Spark moves keys of the compacted files."""
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "7", "file.format": file_format}
    columns = [("id", "INT NOT NULL"), ("p", "STRING"), ("n", "INT")]
    both.theirs.create(columns, primary_keys=["id"], partition_keys=["p"], options=options)
    state: dict[int, tuple[str, int]] = {}

    def moved(first: int, last: int, n: int) -> None:
        both.sql(
            "INSERT INTO {t} SELECT CAST(id AS INT), concat('p', (id + "
            f"{n}) % 3), {n} FROM range({first}, {last}, 1, 3)"
        )
        state.update({number: (f"p{(number + n) % 3}", n) for number in range(first, last)})
        both.agree([[number, *row] for number, row in state.items()])

    moved(0, 40, 0)
    moved(10, 60, 1)
    both.theirs.compact()
    moved(0, 30, 2)
    both.sql("DELETE FROM {t} WHERE p = 'p1'")
    both.agree([[number, *row] for number, row in state.items() if row[0] != "p1"])


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_paimon_follows_what_spark_writes(both: Both, file_format: str) -> None:
    options = {"bucket": "1", "changelog-producer": "input", "file.format": file_format}
    both.theirs.create(NAMES, primary_keys=["id"], options=options)
    both.sql("INSERT INTO {t} VALUES (2, 'b'), (1, 'a'), (2, 'c')")
    both.sql("UPDATE {t} SET v = 'u' WHERE id = 1")
    both.sql("DELETE FROM {t} WHERE id = 2")
    followed: Rows = [["+I", 1, "a"], ["+I", 2, "b"], ["+I", 2, "c"], ["+U", 1, "u"], ["-D", 2, "c"]]
    assert both.theirs.follow(1) == followed
    both.agree([[1, "u"]])


@pytest.mark.parametrize("file_format", ["orc", "parquet", "avro"])
def test_thin_files_are_merged(both: Both, file_format: str) -> None:
    """Paimon leaves key columns out; Spark takes the keys from the values, renamed ones too."""
    options = {"bucket": "1", "data-file.thin-mode": "true", "file.format": file_format, "write-only": "true"}
    both.theirs.create([("id", "INT NOT NULL"), ("v", "STRING")], primary_keys=["id"], options=options)
    both.theirs.write([[number, "old"] for number in range(9)])
    both.theirs.write([[number, "new"] for number in range(5, 12)])
    expected: Rows = [[number, "old" if number < 5 else "new"] for number in range(12)]
    both.agree(expected)
    if file_format != "avro":
        both.sql("DELETE FROM {t} WHERE id < 3")
        both.theirs.write([[4, "theirs"]])
        both.agree([[3, "old"], [4, "theirs"], *expected[5:]])


@pytest.mark.parametrize("partitions", [[], ["id"]])
def test_data_files_in_a_folder_of_their_own(both: Both, partitions: list[str]) -> None:
    options = {"bucket": "1", "data-file.path-directory": "a/b", "file.format": "orc"}
    columns = [("id", "INT NOT NULL"), ("k", "INT NOT NULL"), ("v", "STRING")]
    both.theirs.create(columns, primary_keys=["id", "k"], partition_keys=partitions, options=options)
    both.theirs.write([[1, 1, "theirs"], [2, 2, "theirs"]])
    both.agree([[1, 1, "theirs"], [2, 2, "theirs"]])
    both.sql("INSERT INTO {t} VALUES (2, 2, 'spark'), (3, 3, 'spark')")
    both.ours.append(pa.table({"id": [4], "k": [4], "v": ["python"]}))
    expected: Rows = [[1, 1, "theirs"], [2, 2, "spark"], [3, 3, "spark"], [4, 4, "python"]]
    both.agree(expected)
    both.theirs.compact()
    both.sql(f"CALL lake.sys.expire_snapshots(table => '{both.name}', retain_max => 1, retain_min => 1)")
    both.agree(expected)
    folder = Path(both.ours.location)
    assert not [path for path in folder.rglob("data-*") if not path.is_relative_to(folder / "a" / "b")]


def test_expiry_finds_files_of_postponed_buckets(both: Both) -> None:
    both.theirs.create(NAMES, primary_keys=["id"], options={"bucket": "-2"})
    both.theirs.write([[1, "a"]])
    both.theirs.write([[2, "b"]])
    both.sql(f"CALL lake.sys.expire_snapshots(table => '{both.name}', retain_max => 1, retain_min => 1)")
    waiting = {str(path) for path in Path(both.ours.location).rglob("bucket-postpone/data-*")}
    live = both.ours.manifests.live_files(both.ours.latest_snapshot())
    paths = both.ours.paths
    assert {paths.data_file(each.partition, each.bucket, each.file) for each in live} == waiting
    assert len(waiting) == 2
