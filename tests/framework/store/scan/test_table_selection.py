"""What options of a table itself select of its history, and partitions that come from a branch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import LockgateError, OptionError, TableNotFoundError, UnsupportedError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import RenameColumn, SetOption
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.pushdown import Aggregate, Function, col

MakeTable = Callable[..., Table]


def with_options(catalog: Catalog, table: Table, options: dict[str, str]) -> Table:
    """Give a table options in its schema's file, as another engine does."""
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"] |= options
    path.write_text(json.dumps(schema))
    return catalog.load_table(table.identifier)


def changed(table: Table, snapshot_id: int, **members: object) -> None:
    path = Path(table.location) / "snapshot" / f"snapshot-{snapshot_id}"
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


def ids(table: Table) -> list[int]:
    return sorted(table.read().column("id").to_pylist())


@pytest.fixture
def three(make_table: MakeTable) -> Table:
    """Four snapshots of a row each, of which the third counts as a compaction; a tag, watermarks."""
    table = make_table()
    for number in (1, 2, 3):
        table.append(pa.table({"id": [number], "v": ["a"]}))
        changed(table, number, watermark=number * 1000)
    table.create_tag("two", 2)
    changed(table, 3, commitKind=CommitKind.COMPACT)
    table.append(pa.table({"id": [4], "v": ["a"]}))
    return table


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, [1, 2, 3, 4]),
        ({"scan.snapshot-id": "2"}, [1, 2]),
        ({"scan.tag-name": "two"}, [1, 2]),
        ({"scan.version": "two"}, [1, 2]),
        ({"scan.version": "3"}, [1, 2, 3]),
        ({"scan.version": "watermark-1500"}, [1, 2]),
        ({"scan.watermark": "1001"}, [1, 2]),
        ({"scan.mode": "default", "scan.snapshot-id": "1"}, [1]),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}, [1]),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, [1, 2]),
        ({"scan.mode": "latest"}, [1, 2, 3, 4]),
        ({"scan.mode": "compacted-full"}, [1, 2, 3]),
        ({"incremental-between": "1,2"}, [2]),
        ({"incremental-between": "two,4"}, [4]),
        ({"scan.mode": "incremental", "incremental-between": "1,2"}, [2]),
    ],
)
def test_options_of_a_table_are_honoured(
    catalog: Catalog, three: Table, options: dict[str, str], found: list[int]
) -> None:
    table = with_options(catalog, three, options)
    assert ids(table) == found
    count = table.aggregate([Aggregate(Function.COUNT)])
    assert count.rows is None or count.rows.to_pylist() == [{"COUNT(*)": len(found)}]
    assert (count.rows is None) == ("incremental-between" in options)
    assert table.read(snapshot_id=4).num_rows == 4, "a query goes before the table's options"


def test_times_are_honoured(catalog: Catalog, three: Table) -> None:
    when = three.snapshot(2).time_millis
    upto = [each.id for each in three.snapshots() if each.time_millis <= when]
    table = with_options(catalog, three, {"scan.timestamp-millis": str(when)})
    assert ids(table) == ids_at(three, upto[-1])
    table = with_options(catalog, three, {"scan.mode": "from-timestamp"})
    assert ids(table) == ids_at(three, upto[-1])


def ids_at(table: Table, snapshot_id: int) -> list[int]:
    return sorted(table.read(snapshot_id=snapshot_id).column("id").to_pylist())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"scan.mode": "from-snapshot"}, OptionError, "needs one of"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, OptionError, "contradict"),
        ({"scan.tag-name": "two", "scan.snapshot-id": "1"}, OptionError, "contradict"),
        ({"scan.mode": "from-creation-timestamp"}, UnsupportedError, r"scan\.mode"),
        ({"scan.creation-time-millis": "0"}, UnsupportedError, r"scan\.creation-time-millis"),
        ({"scan.tag-name": "three"}, LockgateError, "no tag 'three'"),
        ({"scan.watermark": "9999"}, LockgateError, "watermark 9999"),
    ],
)
def test_what_means_nothing_is_refused(
    catalog: Catalog, three: Table, options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        with_options(catalog, three, options).read()


def test_a_state_is_read_with_its_own_columns(catalog: Catalog, three: Table) -> None:
    table = catalog.alter_table(three.identifier, [RenameColumn(("v",), "w")])
    assert with_options(catalog, table, {"scan.snapshot-id": "1"}).read().column_names == ["id", "v"]


# --- branches ------------------------------------------------------------------------------------


@pytest.fixture
def parts(make_table: MakeTable, catalog: Catalog) -> Table:
    """Partitions 1 and 2 in the table, 2 and 3 in branch `b`, which has another column since."""
    table = make_table(columns={"p": pa.int32(), "v": pa.string()}, partition_keys=("p",))
    table.create_branch("b")
    branch = "db.t$branch_b"
    for name in ("x", "y", "w"):  # schemas of the branch that the table lacks, or has otherwise
        catalog.alter_table(branch, [RenameColumn(("v",), name)])
        catalog.load_table(branch).append(pa.table({"p": pa.array([2], pa.int32()), name: [name]}))
        catalog.alter_table(branch, [RenameColumn((name,), "v")])
    catalog.load_table(branch).append(pa.table({"p": pa.array([3], pa.int32()), "v": ["branch"]}))
    catalog.alter_table("db.t", [SetOption("snapshot.num-retained.min", "3")])
    table = catalog.load_table("db.t")
    table.append(pa.table({"p": pa.array([1, 2], pa.int32()), "v": ["main", "main"]}))
    return table


def pairs(table: Table, **wishes: int) -> list[tuple[int, str]]:
    return sorted((row["p"], row["v"]) for row in table.read(**wishes).to_pylist())  # type: ignore[arg-type]  # keywords of several types


def test_partitions_come_from_a_branch(catalog: Catalog, parts: Table) -> None:
    table = with_options(catalog, parts, {"scan.fallback-branch": "b"})
    assert pairs(table) == [(1, "main"), (2, "main"), (3, "branch")]
    assert table.aggregate([Aggregate(Function.COUNT)]).rows.to_pylist() == [{"COUNT(*)": 3}]  # type: ignore[union-attr]  # metadata answers COUNT
    assert len(pairs(catalog.load_table("db.t$branch_b"))) == 4


def test_a_branch_may_go_first(catalog: Catalog, parts: Table) -> None:
    table = with_options(catalog, parts, {"scan.primary-branch": "b"})
    assert pairs(table) == [(1, "main"), (2, "w"), (2, "x"), (2, "y"), (3, "branch")]


def test_an_older_state_takes_the_branch_of_that_time(catalog: Catalog, parts: Table) -> None:
    table = with_options(catalog, parts, {"scan.fallback-branch": "b"})
    changed(table, 1, timeMillis=1)
    assert pairs(table) == [(1, "main"), (2, "main"), (3, "branch")], "the newest state has the newest branch"
    parts_now = with_options(catalog, parts, {"scan.fallback-branch": ""})
    parts_now.append(pa.table({"p": pa.array([4], pa.int32()), "v": ["main"]}))
    table = with_options(catalog, parts, {"scan.fallback-branch": "b"})
    assert pairs(table, snapshot_id=1) == [(1, "main"), (2, "main")], "the branch had nothing by then"


@pytest.mark.parametrize("key", ["scan.fallback-branch", "scan.primary-branch"])
def test_what_two_lines_cannot_answer_is_refused(catalog: Catalog, parts: Table, key: str) -> None:
    table = with_options(catalog, parts, {key: "c"})
    with pytest.raises(TableNotFoundError, match="no branch 'c'"):
        table.read()
    table = with_options(catalog, parts, {key: "b"})
    with pytest.raises(UnsupportedError, match="separately"):
        list(table.changes(0, 1))
    with pytest.raises(LockgateError, match=key):
        table.append(pa.table({"p": pa.array([4], pa.int32()), "v": ["main"]}))


def test_a_table_may_show_a_branch(catalog: Catalog, parts: Table) -> None:
    """Option `branch`: the rows of the branch, as its newest state has them, by the table's own columns."""
    table = with_options(catalog, parts, {"branch": "b"})
    branch = catalog.load_table("db.t$branch_b")
    assert pairs(table) == pairs(branch)
    assert table.aggregate([Aggregate(Function.COUNT)]).rows.to_pylist() == [{"COUNT(*)": 4}]  # type: ignore[union-attr]  # metadata answers COUNT
    for older in (lambda: table.read(snapshot_id=1), lambda: list(table.changes(0, 1))):
        with pytest.raises(UnsupportedError, match="branch"):
            older()
    with pytest.raises(LockgateError, match=r"`table\$branch_name`"):
        table.append(pa.table({"p": pa.array([4], pa.int32()), "v": ["main"]}))
    with pytest.raises(TableNotFoundError, match="no branch 'c'"):
        with_options(catalog, parts, {"branch": "c"}).read()
    both = with_options(catalog, parts, {"branch": "b", "scan.fallback-branch": "b"})
    with pytest.raises(OptionError, match="contradict"):
        both.read()


def test_one_bucket_of_a_table(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="3")
    table.append(pa.table({"id": list(range(20)), "v": ["a"] * 20}))
    found = [ids(with_options(catalog, table, {"scan.bucket": str(bucket)})) for bucket in range(3)]
    assert sorted(number for part in found for number in part) == list(range(20))
    assert all(found)
    assert ids(with_options(catalog, table, {"scan.bucket": "7"})) == []
    with pytest.raises(OptionError, match=r"scan\.bucket"):
        with_options(catalog, table, {"scan.bucket": "one"}).read()


def test_files_written_from_a_time_on(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table()
    table.append(pa.table({"id": [1], "v": ["a"]}))
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    time.sleep(0.002)
    table.append(pa.table({"id": [2], "v": ["a"]}))
    for mode in ({}, {"scan.mode": "from-file-creation-time"}):
        later = {"scan.file-creation-time-millis": str(snapshot.time_millis + 1), **mode}
        assert ids(with_options(catalog, table, later)) == [2]
    assert ids(with_options(catalog, table, {"scan.file-creation-time-millis": "0"})) == [1, 2]


@pytest.mark.parametrize(
    ("layout", "chosen"),
    [
        ({"primary_keys": ("id",)}, col("v") == "a"),
        ({"primary_keys": ("id",), "sequence.field": "v"}, pa.table({"id": [1]})),
        ({"deletion-vectors.enabled": "true", "bucket": "-1"}, col("v") == "a"),
    ],
)
@pytest.mark.parametrize("option", ["scan.bucket", "scan.file-creation-time-millis", "scan.snapshot-id"])
def test_rows_to_delete_are_not_looked_for_in_what_options_select(
    catalog: Catalog, make_table: MakeTable, layout: dict[str, Any], chosen: Any, option: str
) -> None:
    table = make_table(**{"bucket": "2", **layout})
    table.append(pa.table({"id": [1, 2, 3], "v": ["a"] * 3}))
    with pytest.raises(UnsupportedError, match=option.replace(".", r"\.")):
        with_options(catalog, table, {option: "1"}).delete(chosen)
    assert ids(table) == [1, 2, 3]
