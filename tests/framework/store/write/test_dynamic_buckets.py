"""Dynamic buckets: a key stays where it is, new keys fill buckets, and two writers never split a key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import CorruptFileError, UnsupportedError, UnsupportedFormatError
from lockgate.framework.store import Catalog, CommitKind, CommitMessage, Table
from lockgate.framework.store.commit.hash_index import hash_entries, read_hashes
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.framework.store.rows.bucket import hash_rows
from lockgate.framework.types import BIGINT
from lockgate.pushdown import col

MakeTable = Callable[..., Table]


def rows(first: int, last: int, text: str = "a") -> pa.Table:
    ids = list(range(first, last))
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"{text}{number}" for number in ids]})


def dynamic(make_table: MakeTable, target: int = 10, **options: str) -> Table:
    return make_table(
        primary_keys=("id",), bucket="-1", **{"dynamic-bucket.target-row-num": str(target), **options}
    )


def index_of(table: Table) -> dict[int, set[int]]:
    (entries,) = hash_entries(table, table.latest_snapshot()).values()
    return {bucket: set(found.tolist()) for bucket, found in read_hashes(table, entries).items()}


def check_no_key_in_two_buckets(table: Table) -> None:
    found = index_of(table)
    assert sum(map(len, found.values())) == len(set().union(*found.values()))
    assert {entry.total_buckets for entry in table.manifests.live_files(table.latest_snapshot())} == {-1}
    keys = table.read()["id"].to_pylist()
    assert len(keys) == len(set(keys))


def test_buckets_fill_one_after_the_other(make_table: MakeTable) -> None:
    table = dynamic(make_table)
    table.append(rows(0, 15))
    assert {bucket: len(found) for bucket, found in index_of(table).items()} == {0: 10, 1: 5}
    table.append(rows(10, 18, "b"))
    assert {bucket: len(found) for bucket, found in index_of(table).items()} == {0: 10, 1: 8}
    expected = {**{n: f"a{n}" for n in range(10)}, **{n: f"b{n}" for n in range(10, 18)}}
    assert dict(zip(*table.read().sort_by("id").to_pydict().values(), strict=True)) == expected
    check_no_key_in_two_buckets(table)
    hashes = hash_rows([pa.array(range(18), pa.int64())], (BIGINT,))
    assert set(hashes.tolist()) == set().union(*index_of(table).values())


def test_an_index_file_is_big_endian_and_named_as_paimons(make_table: MakeTable) -> None:
    table = dynamic(make_table)
    table.append(rows(0, 3))
    snapshot = table.latest_snapshot()
    (entries,) = hash_entries(table, snapshot).values()
    entry = entries[0]
    assert (entry.kind, entry.row_count, entry.file_size) == ("HASH", 3, 12)
    stored = np.frombuffer(Path(index_path(table, entry)).read_bytes(), ">i4")
    assert set(stored.tolist()) == index_of(table)[0]
    assert entry.file_name.startswith("index-")


def test_deletions_and_known_keys_write_no_new_index(make_table: MakeTable) -> None:
    table = dynamic(make_table)
    table.append(rows(0, 12))
    before = table.latest_snapshot()
    table.append(rows(3, 5, "b"))
    table.delete(rows(0, 1).select(["id"]))
    after = table.latest_snapshot()
    assert before is not None
    assert after is not None
    assert before.index_manifest == after.index_manifest
    table.delete(col("v") == "b3")
    assert sorted(table.read()["id"].to_pylist()) == [1, 2, *range(4, 12)]
    assert 0 in {len(found) % 10 for found in index_of(table).values()}


def test_the_most_buckets_are_filled_alike(make_table: MakeTable) -> None:
    table = dynamic(make_table, target=2, **{"dynamic-bucket.max-buckets": "2"})
    table.append(rows(0, 11))
    assert sorted(len(found) for found in index_of(table).values()) == [5, 6]


def test_each_partition_has_buckets_of_its_own(make_table: MakeTable) -> None:
    table = make_table(
        columns={"p": pa.string(), "id": pa.int64(), "v": pa.string()},
        primary_keys=("p", "id"),
        partition_keys=("p",),
        bucket="-1",
        **{"dynamic-bucket.target-row-num": "3"},
    )
    data = pa.table({"p": ["x", "y"] * 4, "id": range(8), "v": ["a"] * 8})
    table.append(data)
    table.append(data)
    found = hash_entries(table, table.latest_snapshot())
    assert {key: sorted(entries) for key, entries in found.items()} == {("x",): [0, 1], ("y",): [0, 1]}
    assert table.read().num_rows == 8
    table.overwrite(data.slice(0, 1), {"p": "x"})
    found = hash_entries(table, table.latest_snapshot())
    assert sorted(found[("x",)]) == [0]
    assert found[("x",)][0].row_count == 1
    assert sorted(table.read()["p"].to_pylist()) == ["x", *["y"] * 4]
    table.commit([], kind=CommitKind.OVERWRITE, overwrite={"p": "y"})
    assert list(hash_entries(table, table.latest_snapshot())) == [("x",)]


def test_of_two_writers_the_later_moves_its_rows(make_table: MakeTable, catalog: Catalog) -> None:
    table = dynamic(make_table, target=4)
    table.append(rows(0, 2))
    late = table.write(rows(2, 8, "late"))
    catalog.load_table("db.t").append(rows(5, 9, "early"))
    written = [table.paths.data_file(m.partition, m.bucket, f) for m in late for f in m.added]
    table.commit(late)
    check_no_key_in_two_buckets(table)
    values = dict(zip(*table.read().to_pydict().values(), strict=True))
    assert values == {**{n: f"a{n}" for n in (0, 1)}, **{n: f"late{n}" for n in range(2, 8)}, 8: "early8"}
    assert not [path for path in written if Path(path).exists()]


def test_writers_of_other_keys_do_not_meet(make_table: MakeTable) -> None:
    table = dynamic(make_table, target=100)
    late = table.write(rows(0, 5))
    table.append(rows(5, 10))
    names = {file.file_name for message in late for file in message.added}
    table.commit(late)
    assert names < {each.file.file_name for each in table.manifests.live_files(table.latest_snapshot())}
    check_no_key_in_two_buckets(table)


def test_many_writers_at_once(make_table: MakeTable, catalog: Catalog) -> None:
    dynamic(make_table, target=5)
    start = threading.Barrier(4)

    def write(number: int) -> None:
        table = catalog.load_table("db.t")
        start.wait()
        for turn in range(3):
            table.append(rows(turn * 4, turn * 4 + 10, f"w{number}-"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = catalog.load_table("db.t")
    assert sorted(table.read()["id"].to_pylist()) == list(range(18))
    check_no_key_in_two_buckets(table)


def test_compaction_and_expiry_keep_the_index(make_table: MakeTable, catalog: Catalog) -> None:
    table = dynamic(make_table)
    for text in "abc":
        table.append(rows(0, 12, text))
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    expire_snapshots(table, retain_max=1, retain_min=1)
    table.append(rows(0, 13, "d"))
    assert table.read().num_rows == 13
    check_no_key_in_two_buckets(table)


def test_files_without_hashes_are_refused(make_table: MakeTable) -> None:
    table = dynamic(make_table)
    (message,) = table.write(rows(0, 2))
    bare = CommitMessage(message.partition, message.bucket, -1, message.added)
    with pytest.raises(UnsupportedError, match="did not report its keys"):
        table.commit([bare])
    again = CommitMessage.from_json(message.to_json(table.schema), table.schema)
    table.commit([again])
    assert table.read().num_rows == 2


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_index(make_table: MakeTable, damage: str) -> None:
    table = dynamic(make_table)
    table.append(rows(0, 3))
    (entries,) = hash_entries(table, table.latest_snapshot()).values()
    path = Path(index_path(table, entries[0]))
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:7])
    with pytest.raises(CorruptFileError, match=path.name):
        table.append(rows(0, 3))
    assert table.read().num_rows == 3


def test_files_that_no_index_knows(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="2")
    table.append(rows(0, 3))
    altered = table.sibling(table.identifier, table.schema.with_options({"bucket": "-1"}))
    with pytest.raises(UnsupportedError, match="has no hash index"):
        altered.write(rows(0, 1))


def test_postponed_buckets_are_refused(make_table: MakeTable, catalog: Catalog) -> None:
    table = dynamic(make_table)
    schema = table.schema.with_options({"bucket": "-2"})
    with pytest.raises(UnsupportedFormatError, match="postponed"):
        table.sibling(table.identifier, schema).append(rows(0, 1))


def test_two_writes_of_one_commit(make_table: MakeTable) -> None:
    """The index has the keys of both, and a key that both wrote lies in one bucket."""
    table = dynamic(make_table, target=3)
    table.commit([*table.write(rows(0, 4)), *table.write(rows(2, 6, "b"))])
    check_no_key_in_two_buckets(table)
    assert sorted(table.read()["id"].to_pylist()) == list(range(6))
    assert sum(map(len, index_of(table).values())) == 6
    table.append(rows(0, 6, "c"))
    check_no_key_in_two_buckets(table)
    assert set(table.read()["v"].to_pylist()) == {f"c{number}" for number in range(6)}
