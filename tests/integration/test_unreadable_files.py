"""Files that a task cannot read: the error names the file and its table, the harm, and what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from converted_tables import to_parquet
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
ROWS = 20_000
READ_ORC = Path(__file__).with_name("test_read_orc.py")
SETPRIV = shutil.which("setpriv")
GONE = "SnapshotExpiredError: {what} .*{file} of table {table} does not exist: .*read again"
DAMAGED = "(CorruptFile|Integrity)Error: .*{file}.*{table}"


def missing(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 4, len(data) // 2):
        data[at] ^= 0x5A
    path.write_bytes(bytes(data))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


HARMS = {missing: GONE, cut: DAMAGED, garbled: DAMAGED, emptied: DAMAGED}
KINDS = {
    "append": "",
    "key": "TBLPROPERTIES ('primary-key'='id', 'bucket'='1')",
    "parquet": "",
    "tagged": "TBLPROPERTIES ('orc.encrypt' = 'pii:v')",
}


def said(spark: SparkSession, statement: str) -> str:
    with pytest.raises(PySparkException) as raised:
        spark.sql(statement).collect()
    return str(raised.value)


@pytest.fixture(scope="module")
def filled(lake: Lake) -> Callable[[str, str], Path]:
    """A function that makes a table of one kind, and returns one of its data files."""

    def make(name: str, kind: str) -> Path:
        lake.spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) {KINDS[kind]}")
        values = f"SELECT /*+ COALESCE(1) */ id, sha(string(id)) AS v FROM range({ROWS})"
        for _ in range(2 if kind == "key" else 1):
            lake.spark.sql(f"INSERT INTO {name} {values}")
        table = lake.catalog.load_table(name.partition(".")[2])
        if kind == "parquet":
            to_parquet(table)
        pattern = "*.parquet" if kind == "parquet" else "bucket-*/data-*.orc"
        return sorted(Path(table.location).rglob(pattern))[0]

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_every_harm_is_named(
    spark: SparkSession, table: Named, filled: Callable[[str, str], Path], kind: str
) -> None:
    name = table(kind)
    path = filled(name, kind)
    whole = path.read_bytes()
    for harm, expected in HARMS.items():
        harm(path)
        message = said(spark, f"SELECT count(v), max(v) FROM {name}")
        pattern = expected.format(what="data file", file=path.name, table=name)
        assert re.search(pattern, message), (harm.__name__, message)
        path.write_bytes(whole)
    assert spark.sql(f"SELECT count(v) FROM {name} WHERE v > ''").collect() == [(ROWS,)]


def test_reads_for_one_row_and_for_changes(
    spark: SparkSession, table: Named, filled: Callable[[str, str], Path]
) -> None:
    name = table("t")
    path = filled(name, "key")
    path.unlink()
    for statement in (
        f"SELECT v FROM {name} WHERE id = 77",
        f"UPDATE {name} SET v = 'x' WHERE id = 77",
        f"DELETE FROM {name} WHERE v LIKE 'a%'",
        f"INSERT INTO {name} SELECT id + 1, v FROM {name}",
    ):
        message = said(spark, statement)
        assert path.name in message, statement
        assert "SnapshotExpiredError" in message
        assert name in message


def test_deletion_vectors(spark: SparkSession, lake: Lake, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id FROM range(100)")
    spark.sql(f"DELETE FROM {name} WHERE id = 7")
    location = Path(lake.catalog.load_table(name.partition(".")[2]).location)
    (path,) = (location / "index").iterdir()
    whole = path.read_bytes()
    for harm, word in ((missing, "SnapshotExpiredError"), (cut, "CorruptFileError"), (garbled, "Corrupt")):
        harm(path)
        message = said(spark, f"SELECT sum(id) FROM {name}")
        assert word in message, message
        assert path.name in message
        assert name in message
        path.write_bytes(whole)
    assert spark.sql(f"SELECT count(id) FROM {name} WHERE id >= 0").collect() == [(99,)]


def test_a_closed_file(spark: SparkSession, table: Named, filled: Callable[[str, str], Path]) -> None:
    name = table("t")
    path = filled(name, "append")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root may read every file")
    message = said(spark, f"SELECT max(v) FROM {name}")
    assert "StorageDeniedError" in message
    assert path.name in message


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0 or SETPRIV is None, reason="only root has rights that can be taken")
def test_closed_files_without_the_rights_of_root() -> None:
    assert SETPRIV is not None
    rights = "-dac_override,-dac_read_search"
    tests = [f"{__file__}::{test_a_closed_file.__name__}", f"{READ_ORC}::test_a_closed_file_is_named"]
    command = [SETPRIV, f"--bounding-set={rights}", f"--inh-caps={rights}", sys.executable, "-m", "pytest"]
    done = subprocess.run([*command, "-q", *tests], capture_output=True, text=True, timeout=400, check=False)
    assert "2 passed" in done.stdout, done.stdout[-4000:]


def test_a_reader_that_is_closed_twice_leaves_its_codec_to_one(
    spark: SparkSession, table: Named, filled: Callable[[str, str], Path]
) -> None:
    """Readers of many tasks at once, some of which end early, while others write."""
    name = table("t")
    filled(name, "append")
    spark.sql(f"INSERT INTO {name} SELECT id + {ROWS}, v FROM {name}")
    for number in range(5):
        assert len(spark.sql(f"SELECT * FROM {name} LIMIT {number + 1}").collect()) == number + 1
    spark.sql(
        f"INSERT INTO {name} SELECT /*+ REPARTITION(4) */ a.id, b.v FROM {name} a JOIN {name} b USING (id)"
    )
    assert spark.sql(f"SELECT count(DISTINCT v) FROM {name} WHERE v > ''").collect() == [(ROWS,)]
