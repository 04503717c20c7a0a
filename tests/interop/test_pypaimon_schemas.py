"""Nested types, evolved schemas, branches and tags that pypaimon made are read here, and the reverse."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeComment,
    ChangeType,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
)
from lockgate.framework.types import from_arrow

pytestmark = pytest.mark.interop

POINT = pa.struct([("x", pa.int32()), ("at", pa.timestamp("us")), ("raw", pa.binary())])
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "numbers": (pa.list_(pa.int32()), [[1, None, 3], [], None]),
    "prices": (pa.map_(pa.string(), pa.decimal128(5, 1)), [[("k", Decimal("1.5"))], [], None]),
    "point": (
        POINT,
        [
            {"x": 1, "at": datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "raw": b"\xff"},
            {"x": None, "at": None, "raw": None},
            {"x": 2, "at": None, "raw": b""},
        ],
    ),
    "points": (pa.list_(POINT), [[{"x": 1, "at": None, "raw": b"a"}], [], None]),
    "lists": (pa.map_(pa.int32(), pa.list_(pa.string())), [[(1, ["x", None]), (2, [])], [], None]),
    "narrow": (pa.time32("ms"), [datetime.time(23, 59, 59, 999_000), datetime.time(0), None]),
}
"""Columns that the flat rows of `test_pypaimon` do not have, with three values each."""

Same = Callable[[pa.Table, pa.Table], None]
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "append partitioned": {"partition_keys": ("dt",)},
    "key": {"primary_keys": ("id",), "options": {"bucket": "2"}},
}


def nested_rows(start: int) -> pa.Table:
    columns = {name: pa.array(values, kind) for name, (kind, values) in NESTED.items()}
    keys = {"id": pa.array(range(start, start + 3), pa.int64()), "dt": ["a", "b", "a"]}
    return pa.table({**keys, **columns})


@pytest.mark.parametrize("kind", KINDS)
def test_nested_types(catalog: Catalog, referee: Any, same_rows: Same, kind: str) -> None:
    first, second = nested_rows(0), nested_rows(2 if kind == "key" else 3)
    catalog.create_table("db.ours", Schema.from_arrow(first.schema, **KINDS[kind]))
    referee.create("db.theirs", first.schema, **KINDS[kind])
    for name in ("db.ours", "db.theirs"):
        table = catalog.load_table(name)
        table.append(first)
        referee.write(name, second)
        rows = table.read()
        same_rows(rows, referee.read(name))
        assert rows.num_rows == (5 if kind == "key" else 6)
        oldest = rows.select(first.column_names).sort_by("id").slice(0, 2)
        assert oldest.to_pylist() == first.slice(0, 2).to_pylist()


def by_pypaimon(catalog: Catalog, referee: Any) -> None:
    referee.alter(
        "db.t",
        ("add", "added", "STRING"),
        ("drop", "gone"),
        ("rename", "a", "b"),
        ("type", "b", "BIGINT"),
        ("type", "f", "DOUBLE"),
        ("move", "f", "id"),
        ("comment", "b", "was a"),
    )


def by_lockgate(catalog: Catalog, referee: Any) -> None:
    catalog.alter_table(
        "db.t",
        [
            AddColumn(("added",), from_arrow(pa.string())),
            DropColumn(("gone",)),
            RenameColumn(("a",), "b"),
            ChangeType(("b",), from_arrow(pa.int64())),
            ChangeType(("f",), from_arrow(pa.float64())),
            MoveColumn(("f",), Position(after="id")),
            ChangeComment(("b",), "was a"),
        ],
    )


@pytest.mark.parametrize("kind", ["append", "key"])
@pytest.mark.parametrize("evolve", [by_pypaimon, by_lockgate])
def test_evolved_schemas(
    catalog: Catalog, referee: Any, kind: str, evolve: Callable[[Catalog, Any], None]
) -> None:
    def old(number: int) -> pa.Table:
        return pa.table({"id": [number], "a": [number], "gone": ["x"], "f": [0.5]}, schema=before)

    def new(number: int) -> pa.Table:
        return pa.table({"id": [number], "f": [1e300], "b": [2**40], "added": ["new"]}, schema=after)

    before = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("gone", pa.string()), ("f", pa.float32())])
    after = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("b", pa.int64()), ("added", pa.string())])
    referee.create("db.t", before, **KINDS[kind])
    catalog.load_table("db.t").append(old(1))
    referee.write("db.t", old(2))
    evolve(catalog, referee)
    table = catalog.load_table("db.t")
    table.append(new(3))
    referee.write("db.t", new(4))
    written = [[1, 0.5, 1, None], [2, 0.5, 2, None], [3, 1e300, 2**40, "new"], [4, 1e300, 2**40, "new"]]
    expected = [dict(zip(("id", "f", "b", "added"), row, strict=True)) for row in written]
    assert table.read().sort_by("id").to_pylist() == expected
    assert referee.read("db.t").sort_by("id").to_pylist() == expected
    assert table.schema.field("b").description == "was a"


def test_branches_of_theirs(catalog: Catalog, referee: Any) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    table = catalog.create_table("db.t", Schema.from_arrow(rows.schema))
    table.append(rows.slice(0, 1))
    referee.create_tag("db.t", "start", 1)
    referee.refer("db.t", "create_branch", "dev", "start")
    assert table.branches() == ["dev"]
    dev = catalog.load_table("db.t$branch_dev")
    referee.write("db.t$branch_dev", rows.slice(1, 1))
    dev.append(rows.slice(2, 1))
    assert sorted(dev.read()["id"].to_pylist()) == [1, 2, 3]
    assert table.read()["id"].to_pylist() == [1]
    referee.refer("db.t", "fast_forward", "dev")
    assert sorted(table.read()["id"].to_pylist()) == [1, 2, 3]
    referee.refer("db.t", "drop_branch", "dev")
    assert table.branches() == []
    assert sorted(referee.read_tag("db.t", "start")["id"].to_pylist()) == [1]
