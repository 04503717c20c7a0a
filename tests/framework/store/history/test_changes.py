"""Changes: per snapshot what became of each key, and when a reader must start again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, InputError, SnapshotNotFoundError
from lockgate.framework.store import Catalog, CommitMessage, Schema, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.write import write_files
from lockgate.pushdown import SortKey, col

SCHEMA = pa.schema([("id", pa.int32()), ("part", pa.string()), ("v", pa.int64())])


def create(folder: Path, **layout: Any) -> Table:
    catalog = Catalog(str(folder))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, **layout))


def make_rows(ids: list[int], v: int = 0, part: str = "a") -> pa.Table:
    return pa.table({"id": ids, "part": [part] * len(ids), "v": [v] * len(ids)}).cast(SCHEMA)


def sorted_rows(change: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in change.rows.to_pylist()), key=repr)


def test_a_key_table(tmp_path: Path, compact: Callable[[Table], None]) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    table.append(make_rows([1, 2]))
    table.append(make_rows([2, 3], v=5))
    compact(table)
    table.delete(pa.table({"id": pa.array([1], pa.int32())}))
    changes = list(table.changes(0, 4))
    assert [(change.snapshot_id, change.kind, change.needs_reload) for change in changes] == [
        (1, "APPEND", False),
        (2, "APPEND", False),
        (4, "APPEND", False),
    ]
    assert [sorted_rows(change) for change in changes] == [
        [(1, "a", 0, 0), (2, "a", 0, 0)],
        [(2, "a", 5, 0), (3, "a", 5, 0)],
        [(1, None, None, 3)],
    ]
    assert list(table.changes(2, 3)) == []
    assert list(table.changes(4, 4)) == []


def test_rows_of_a_key_within_a_snapshot_are_merged(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    first = write_files(table, make_rows([1, 2, 3]))
    table.commit(first)
    second = write_files(table, [make_rows([1, 4], v=1)])
    table.commit([*second, *_next_files(table, second)])
    (change,) = table.changes(1, 2)
    assert sorted_rows(change) == [(1, "a", 2, 2), (4, "a", 1, 0)]


def _next_files(table: Table, before: list[CommitMessage]) -> list[CommitMessage]:
    """A second file of the same commit, with later sequence numbers."""
    start = before[0].added[0].max_sequence_number + 1
    rows = pa.table(
        {
            "_KEY_id": pa.array([1], pa.int32()),
            "_SEQUENCE_NUMBER": [start],
            "_VALUE_KIND": pa.array([2], pa.int8()),
            "id": pa.array([1], pa.int32()),
            "part": ["a"],
            "v": [2],
        }
    )
    with BucketWriter(table, (), 0) as writer:
        writer.write(rows)
        return [CommitMessage((), 0, 1, writer.close())]


def test_an_append_table(tmp_path: Path) -> None:
    table = create(tmp_path, partition_keys=["part"])
    table.append(pa.concat_tables([make_rows([1, 1]), make_rows([2], part="b")]))
    (change,) = table.changes(0, 1)
    assert sorted_rows(change) == [(1, "a", 0, 0), (1, "a", 0, 0), (2, "b", 0, 0)]
    assert change.rows.schema.field("_VALUE_KIND").type == pa.int8()


@pytest.mark.parametrize("layout", [{}, {"primary_keys": ["id"], "options": {"bucket": "1"}}])
def test_changes_of_chosen_columns(tmp_path: Path, layout: dict[str, Any]) -> None:
    table = create(tmp_path, **layout)
    table.append(make_rows([1, 2]))
    (change,) = table.changes(0, 1, columns=["v"])
    assert change.rows.column_names == ["v", "_VALUE_KIND"]
    (change,) = table.changes(0, 1, columns=[])
    assert change.rows.to_pydict() == {"_VALUE_KIND": [0, 0]}
    with pytest.raises(ColumnNotFoundError):
        table.changes(0, 1, columns=["w"])


def test_an_overwrite_says_so(tmp_path: Path) -> None:
    table = create(tmp_path, partition_keys=["part"])
    table.append(make_rows([1]))
    table.overwrite(make_rows([2]))
    first, second = table.changes(0, 2)
    assert not first.needs_reload
    assert second.needs_reload
    assert second.kind == "OVERWRITE"
    assert second.rows.num_rows == 0


@pytest.mark.parametrize(
    ("first", "second", "reload"),
    [
        ([1, 2, 3], [3], True),  # 3 is number 2 of the first writer and number 0 of the second
        ([1, 2, 3], [7, 8], False),  # no key in common
        ([1], [1], False),  # equal numbers: the later commit wins, as it does in order
        ([1], [1, 2, 3], False),
    ],
)
def test_writers_that_began_together(
    tmp_path: Path, first: list[int], second: list[int], reload: bool
) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    one, other = write_files(table, make_rows(first, v=1)), write_files(table, make_rows(second, v=2))
    table.commit(one)
    table.commit(other)
    table.append(make_rows([1, 2, 3], v=3))
    followed: dict[int, int] = {}
    changes = list(table.changes(0, 2))
    assert [change.needs_reload for change in changes] == [False, reload]
    for change in changes:
        if change.needs_reload:
            assert change.rows.num_rows == 0
            followed.clear()
        rows = table.read(snapshot_id=change.snapshot_id) if change.needs_reload else change.rows
        followed |= {row["id"]: row["v"] for row in rows.to_pylist()}
    assert followed == {row["id"]: row["v"] for row in table.read(snapshot_id=2).to_pylist()}
    (last,) = table.changes(2, 3)
    assert not last.needs_reload


def test_snapshots_that_are_not_there(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(make_rows([1]))
    with pytest.raises(SnapshotNotFoundError, match="changes after snapshot 0 up to 2"):
        table.changes(0, 2)
    with pytest.raises(InputError, match="starts before it ends"):
        table.changes(2, 1)


def test_a_request_says_what_to_follow(tmp_path: Path) -> None:
    table = create(tmp_path, partition_keys=["part"])
    table.append(make_rows([1]))
    table.overwrite(make_rows([2]))
    table.append(make_rows([3]))
    (last,) = table.changes(ReadRequest(columns=("id",), between=Between(2, 3)))
    assert sorted_rows(last) == [(3, 0)]
    assert [each.snapshot_id for each in table.changes(ReadRequest(between=Between(0, 3)))] == [1, 2, 3]
    kept = table.changes(ReadRequest(between=Between(0, 3, leave_out_overwrites=True)))
    assert [each.snapshot_id for each in kept] == [1, 3]


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        ({}, "between"),
        ({"snapshot_id": 1}, "between"),
        ({"between": Between(0, 1), "predicate": col("id") == 1}, "predicate"),
        ({"between": Between(0, 1), "limit": 1, "read_optimized": True}, "limit, read_optimized"),
        ({"between": Between(0, 1), "order": (SortKey(("id",)),)}, "order"),
        ({"between": Between(0, 1, states="diff")}, "states"),
    ],
)
def test_wishes_that_changes_cannot_meet(tmp_path: Path, wish: dict[str, Any], named: str) -> None:
    table = create(tmp_path)
    table.append(make_rows([1]))
    with pytest.raises(InputError, match=named):
        table.changes(ReadRequest(**wish))


def test_a_request_is_all_or_nothing(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(make_rows([1]))
    request = ReadRequest(between=Between(0, 1))
    with pytest.raises(InputError, match="either it or them"):
        table.changes(request, 1)
    with pytest.raises(InputError, match="either it or them"):
        table.changes(request, columns=["id"])
    with pytest.raises(InputError, match="upto"):
        table.changes(0)
