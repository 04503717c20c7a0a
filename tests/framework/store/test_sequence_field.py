"""Tables with `sequence.field`: the row that is newest by its own columns wins, whenever it was written."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import DropColumn, RenameColumn, SetOption

SCHEMA = pa.schema([("id", pa.int32()), ("v", pa.string()), ("at", pa.int64()), ("n", pa.int32())])


def create(catalog: Catalog, **options: str) -> Table:
    options = {key.replace("_", "."): value for key, value in options.items()}
    options = {"bucket": "1", "sequence.field": "at", **options}
    return catalog.create_table(
        "db.t", Schema.from_arrow(SCHEMA, primary_keys=["id"], options=options), ignore_if_exists=False
    )


def make_rows(*rows: tuple[int, str, int | None]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({"id": columns[0], "v": columns[1], "at": columns[2], "n": [0] * len(rows)}).cast(SCHEMA)


def state(table: Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.read(columns=["id", "v"]).to_pylist()}


def test_a_late_old_row_changes_nothing(catalog: Catalog, compact: Callable[[Table], None]) -> None:
    table = create(catalog)
    table.append(make_rows((1, "new", 5), (2, "null", None), (3, "x", 1)))
    table.append(make_rows((1, "late", 4), (2, "value", -7), (3, "tie", 1)))
    expected = {1: "new", 2: "value", 3: "tie"}
    assert state(table) == expected
    assert table.read(columns=["v"])["v"].to_pylist().count("late") == 0
    compact(table)
    assert state(table) == expected
    table.append(make_rows((1, "later still", 4)))
    assert state(table) == expected


def test_within_a_write(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(make_rows((1, "new", 5), (1, "late", 4), (2, "a", 1), (2, "b", 1), (3, "x", None)))
    assert state(table) == {1: "new", 2: "b", 3: "x"}
    (entry,) = table.manifests.live_files(table.latest_snapshot())
    assert entry.file.row_count == 3


def test_in_descending_order_the_smallest_value_is_the_newest(catalog: Catalog) -> None:
    table = create(catalog, **{"sequence.field.sort-order": "descending"})
    table.append(make_rows((1, "new", 5), (1, "old", 6), (2, "null", None), (3, "x", 3)))
    table.append(make_rows((1, "old", 7), (2, "value", 100), (3, "y", None)))
    assert state(table) == {1: "new", 2: "value", 3: "x"}


def test_a_delete_keeps_rows_with_a_newer_sequence_field(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(make_rows((1, "a", 5), (2, "b", 6), (3, "c", None), (4, "d", 1)))
    table.delete(pa.table({"id": [1, 3, 99]}))
    assert state(table) == {2: "b", 4: "d"}
    table.delete(pa.table({"id": [2, 4], "at": [5, 1]}))  # of 2 there is a newer row than is deleted
    assert state(table) == {2: "b"}
    table.append(make_rows((1, "late", 4), (4, "again", 2)))
    assert state(table) == {2: "b", 4: "again"}


def test_changes_leave_out_what_changed_nothing(catalog: Catalog, compact: Callable[[Table], None]) -> None:
    table = create(catalog)
    table.append(make_rows((1, "a", 5), (2, "b", 5)))
    table.append(make_rows((1, "late", 4), (2, "c", 6), (3, "new", 1)))
    compact(table)
    table.append(make_rows((1, "late", 3), (2, "late", 2)))
    table.delete(pa.table({"id": [3, 1], "at": [1, 2]}))
    found = [
        (
            change.snapshot_id,
            change.needs_reload,
            sorted(tuple(row.values()) for row in change.rows.to_pylist()),
        )
        for change in table.changes(0, 5, columns=["id", "v"])
    ]
    assert found == [
        (1, False, [(1, "a", 0), (2, "b", 0)]),
        (2, False, [(2, "c", 0), (3, "new", 0)]),
        (4, False, []),
        (5, False, [(3, None, 3)]),
    ]


@pytest.mark.parametrize(
    ("fields", "order"),
    [
        ("at", "descending"),
        ("at,n", "ascending"),
        pytest.param("at", "ascending", marks=pytest.mark.long),
        pytest.param("at,n", "descending", marks=pytest.mark.long),
    ],
)
def test_following_changes_gives_what_a_read_gives(
    catalog: Catalog, compact: Callable[[Table], None], order: str, fields: str
) -> None:
    """Random late, equal and null ages, deletions and two writers at once."""
    chance = random.Random(7)
    table = create(catalog, **{"sequence.field": fields, "sequence.field.sort-order": order})
    followed: dict[int, tuple[Any, ...]] = {}
    seen = 0

    def write() -> list[Any]:
        count = chance.randint(1, 8)
        columns: dict[str, list[Any]] = {
            "id": [chance.randint(0, 6) for _ in range(count)],
            "v": [str(chance.random()) for _ in range(count)],
            "at": [chance.choice([None, 1, 2, 3, 4]) for _ in range(count)],
            "n": [chance.choice([None, 1, 2]) for _ in range(count)],
        }
        kinds = pa.array([chance.choice([0, 0, 2, 3]) for _ in range(count)], pa.int8())
        return table.write(pa.table(columns).cast(SCHEMA), kinds=kinds)

    for step in range(40):
        pending = [write(), write()] if step % 5 == 0 else [write()]
        for messages in reversed(pending):
            table.commit(messages)
        latest = table.latest_snapshot()
        assert latest is not None
        for change in table.changes(seen, latest.id):
            assert not change.needs_reload
            for row in change.rows.to_pylist():
                kind = row.pop("_VALUE_KIND")
                if kind in (0, 2):
                    followed[row["id"]] = tuple(row.values())
                else:
                    followed.pop(row["id"], None)
        seen = latest.id
        rows = [tuple(row.values()) for row in table.read().to_pylist()]
        assert sorted(rows) == sorted(followed.values())
        if step % 11 == 10:
            # Deletions that a compaction forgets make no difference to rows that are there.
            compact(table)
            assert sorted(tuple(row.values()) for row in table.read().to_pylist()) == sorted(rows)


def test_what_cannot_be_altered(catalog: Catalog) -> None:
    create(catalog)
    assert catalog.alter_table("db.t", [SetOption("sequence.field", "n")]).schema.sequence_fields == ("n",)
    table = catalog.alter_table("db.t", [SetOption("sequence.field", "at"), RenameColumn(("at",), "time")])
    assert table.schema.sequence_fields == ("time",)
    table.append(pa.table({"id": [1], "v": ["a"], "time": [1], "n": [1]}))
    for change in (SetOption("sequence.field", "n"), SetOption("sequence.field.sort-order", "descending")):
        with pytest.raises(InputError, match="cannot be changed"):
            catalog.alter_table("db.t", [change])
    with pytest.raises(InputError, match=r"option 'sequence\.field' names it"):
        catalog.alter_table("db.t", [DropColumn(("time",))])
    renamed = catalog.alter_table("db.t", [RenameColumn(("time",), "at")])
    renamed.append(make_rows((1, "late", 0), (2, "b", 0)))
    assert state(renamed) == {1: "a", 2: "b"}
