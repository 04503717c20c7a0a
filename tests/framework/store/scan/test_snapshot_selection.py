"""What a query reads of a table's history: options that name a state, and ranges of snapshots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    InputError,
    NotFoundError,
    OptionError,
    SnapshotNotFoundError,
    TagNotFoundError,
    UnsupportedError,
)
from lockgate.framework.store import Catalog, CommitMessage, Schema, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.scan.snapshot_selection import Between, Selection, selection_of
from lockgate.pushdown import col

SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.int64())])


def create(folder: Path, **layout: Any) -> Table:
    catalog = Catalog(str(folder))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, **layout))


def rows(ids: list[int], v: int = 0) -> pa.Table:
    return pa.table({"id": ids, "v": [v] * len(ids)}).cast(SCHEMA)


def read(table: Table, after: int, upto: int, **wishes: Any) -> list[tuple[Any, ...]]:
    found = table.read(table.scan(between=Between(after, upto, wishes.pop("delta", False)), **wishes))
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An append table of three snapshots of one row each, the second of them tagged."""
    made = create(tmp_path)
    for number in (1, 2, 3):
        made.append(rows([number]))
    made.create_tag("two", 2)
    return made


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Selection()),
        ({"lookup.spec": "x"}, Selection()),
        ({"versionAsOf": "1"}, Selection()),
        ({"scan.snapshot-id": "2"}, Selection(2)),
        ({"SCAN.Snapshot-ID": "0"}, Selection(0)),
        ({"scan.tag-name": "two"}, Selection(2)),
        ({"scan.version": "two"}, Selection(2)),
        ({"scan.version": "3"}, Selection(3)),
        ({"incremental-between": "1,3"}, Selection(between=Between(1, 3))),
        ({"incremental-between": "0, two"}, Selection(between=Between(0, 2))),
        ({"incremental-between": "two,two"}, Selection(between=Between(2, 2, states="diff"))),
        (
            {"incremental-between": "1,2", "incremental-between-scan-mode": "diff-before"},
            Selection(between=Between(1, 2, states="before")),
        ),
        (
            {"incremental-between": "1,3", "incremental-between-scan-mode": "DELTA"},
            Selection(between=Between(1, 3, leave_out_overwrites=True)),
        ),
    ],
)
def test_what_options_select(table: Table, options: dict[str, str], expected: Selection) -> None:
    assert selection_of(table, options) == expected


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scan.snapshot_id": "2"}, OptionError, "did you mean 'scan.snapshot-id'"),
        ({"scan.snapshot-id": "two"}, OptionError, "scan.snapshot-id"),
        ({"scan.snapshot-id": "9"}, SnapshotNotFoundError, "1 to 3"),
        ({"scan.tag-name": "tow"}, TagNotFoundError, "two"),
        ({"scan.version": "tow"}, NotFoundError, "two"),
        ({"scan.timestamp-millis": "5"}, NotFoundError, "no snapshot"),
        ({"scan.timestamp": "yesterday"}, OptionError, "2024-03-01"),
        ({"scan.snapshot-id": "1", "scan.tag-name": "two"}, OptionError, "contradict"),
        ({"scan.snapshot-id": "1", "versionAsOf": "2"}, OptionError, "contradict"),
        ({"scan.tag-name": "two", "incremental-between-scan-mode": "delta"}, OptionError, "no meaning"),
        ({"incremental-between-scan-mode": "delta"}, OptionError, "needs option"),
        ({"incremental-between": "1"}, OptionError, "two ends"),
        ({"incremental-between": "3,1"}, OptionError, "forward"),
        ({"incremental-between": "1,tow"}, TagNotFoundError, "two"),
        ({"incremental-between-timestamp": "2,1"}, OptionError, "forward"),
        ({"incremental-between-timestamp": "a,b"}, OptionError, "2024-03-01"),
        ({"branch": "b"}, OptionError, r"\$branch_"),
        ({"target-file-size": "1 mb"}, OptionError, "ALTER TABLE"),
    ],
)
def test_options_that_are_refused(
    table: Table, options: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        selection_of(table, options)


def test_a_time_selects_the_newest_snapshot_by_then(table: Table) -> None:
    times = [snapshot.time_millis for snapshot in table.snapshots()]
    newest = max(number for number, time in enumerate(times, 1) if time <= times[1])
    assert selection_of(table, {"scan.timestamp-millis": str(times[1])}) == Selection(newest)
    assert selection_of(table, {"scan.timestamp": "2200-01-01 00:00:00"}, "Asia/Tokyo") == Selection(3)
    ends = {"incremental-between-timestamp": f"0,{times[2]}"}
    assert selection_of(table, ends) == Selection(between=Between(0, 3))
    ends = {"incremental-between-timestamp": "2200-01-01,2201-01-01 10:00:00"}
    assert selection_of(table, ends) == Selection(between=Between(3, 3))
    assert selection_of(table, {"incremental-between-timestamp": "0,1"}) == Selection(between=Between(0, 0))


def test_times_of_snapshots_that_have_expired(table: Table) -> None:
    expire_snapshots(table, retain_max=2, retain_min=1)
    with pytest.raises(SnapshotNotFoundError, match="the oldest remaining one is 2"):
        selection_of(table, {"incremental-between-timestamp": "0,9999999999999"})


def test_a_range_of_an_append_table(table: Table) -> None:
    old = [CommitMessage((), 0, -1, deleted=(file,)) for split in table.scan().splits for file in split.files]
    table.commit([*old, *table.write(table.read())], kind="COMPACT")
    table.append(rows([9]))
    assert read(table, 1, 3) == [(2, 0), (3, 0)]
    assert read(table, 1, 5) == [(2, 0), (3, 0), (9, 0)]
    assert read(table, 3, 4) == read(table, 2, 2) == read(table, 0, 0) == []
    assert read(table, 0, 5, predicate=col("id") == 9) == [(9, 0)]
    assert table.scan(between=Between(1, 3)).row_count == 2


def test_a_range_of_a_key_table_has_the_newest_row_of_each_key(
    tmp_path: Path, compact: Callable[[Table], None]
) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    table.append(rows([1, 2, 3], v=1))
    table.append(rows([2], v=2))
    table.append(rows([2, 4], v=3))
    table.delete(pa.table({"id": pa.array([4, 1], pa.int32())}))
    compact(table)
    assert read(table, 1, 2) == [(2, 2)]
    assert read(table, 1, 3) == [(2, 3), (4, 3)]
    assert read(table, 1, 4) == read(table, 1, 5) == [(2, 3)]
    assert read(table, 3, 4) == []


def test_a_range_with_an_overwrite(table: Table) -> None:
    table.overwrite(rows([7]))
    table.append(rows([8]))
    with pytest.raises(UnsupportedError, match=r"snapshot 4 .* OVERWRITE"):
        read(table, 2, 5)
    assert read(table, 2, 5, delta=True) == [(3, 0), (8, 0)]
    assert read(table, 4, 5) == [(8, 0)]


def test_ranges_that_cannot_be_read(table: Table) -> None:
    with pytest.raises(SnapshotNotFoundError, match="1 to 3"):
        read(table, 1, 4)
    with pytest.raises(InputError, match="starts before it ends"):
        read(table, 2, 1)
    with pytest.raises(InputError, match="not both"):
        table.scan(between=Between(1, 2), snapshot_id=2)
    expire_snapshots(table, retain_max=1, retain_min=1)
    with pytest.raises(SnapshotNotFoundError):
        read(table, 1, 3)
    table.append(rows([4]))
    assert read(table, 3, 4) == [(4, 0)]


def test_a_range_is_read_by_the_newest_columns(tmp_path: Path) -> None:
    from lockgate.framework.store.ddl.schema_changes import RenameColumn

    table = create(tmp_path)
    table.append(rows([1], v=5))
    Catalog(str(tmp_path)).alter_table("db.t", [RenameColumn(("v",), "w")])
    renamed = Catalog(str(tmp_path)).load_table("db.t")
    found = renamed.read(renamed.scan(between=Between(0, 1)))
    assert found.to_pylist() == [{"id": 1, "w": 5}]
