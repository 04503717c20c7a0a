"""Lookups on tables whose columns change: what runs goes on, what starts sees the new columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, LockgateError
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeNullability,
    ChangeType,
    DropColumn,
    RenameColumn,
)
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.framework.store.tables.table import Table
from lockgate.framework.types import BIGINT, STRING
from lockgate.lookup.driver.lookup_tables import LookupTable, open_lookup

FIRST = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("note", pa.string())])
Load = Callable[[], Table]


@pytest.fixture(params=[(("id",), "id"), (("id",), "n"), ((), "id")], ids=["key", "secondary", "plain"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Catalog, str]:
    """A table of three rows, of each kind that a lookup has, and the column to join by."""
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    primary, on = request.param
    options = {"lookup.cache-dir": str(tmp_path / "cache")}
    options |= {"bucket": "1"} if primary else {}
    described = Schema.from_arrow(FIRST, primary_keys=primary, options=options)
    table = catalog.create_table("db.t", described)
    table.append(pa.table({"id": [1, 2, 3], "n": [1, 2, 3], "note": ["a", "b", None]}, schema=FIRST))
    return catalog, on


def get(lookup: LookupTable, key: int) -> list[tuple[Any, ...]]:
    kind = lookup.layout.key_schema.field(0).type
    keys = pa.RecordBatch.from_arrays([pa.array([key], kind)], list(lookup.spec.keys))
    return [tuple(row.values()) for row in lookup.get(keys).rows.to_pylist()]


def test_columns_change_while_a_lookup_runs(world: tuple[Catalog, str]) -> None:
    catalog, on = world
    table = catalog.load_table("db.t")
    running = open_lookup(table, on, columns=["note", "id"])
    assert get(running, 2) == [("b", 2)]

    changes = [AddColumn(("extra",), STRING), RenameColumn(("note",), "remark"), ChangeType(("n",), BIGINT)]
    if not table.schema.primary_keys:
        changes.append(ChangeType(("id",), BIGINT))
    table = catalog.alter_table("db.t", changes)
    schema = table.schema.arrow_schema
    table.append(pa.table({"id": [4], "n": [4], "remark": ["d"], "extra": ["new"]}, schema=schema))
    info = running.refresh()
    assert info is not None
    assert info.snapshot_id == 2
    assert not info.full_load, "columns are found by their ids: nothing has to be read again"
    # It answers by the columns that it was opened with.
    assert get(running, 4) == [("d", 4)]
    assert get(running, 2) == [("b", 2)]
    running.close()

    with pytest.raises(ColumnNotFoundError, match="note"):
        open_lookup(table, on, columns=["note"])
    renamed = open_lookup(table, on, columns=["remark", "extra", "n"])
    assert renamed.layout.row_schema.field("n").type == pa.int64()
    assert get(renamed, 2) == [("b", None, 2)]
    assert get(renamed, 4) == [("d", "new", 4)]
    renamed.close()


def test_a_column_that_may_be_null_from_now_on(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    fields = pa.schema([("id", pa.int32()), pa.field("n", pa.int32(), nullable=False)])
    options = {"bucket": "1", "lookup.cache-dir": str(tmp_path / "cache")}
    table = catalog.create_table("db.t", Schema.from_arrow(fields, primary_keys=("id",), options=options))
    table.append(pa.table({"id": [1], "n": [1]}, schema=fields))
    with open_lookup(table, "id") as running:
        changed = catalog.alter_table("db.t", [ChangeNullability(("n",), True)])
        changed.append(pa.table({"id": [1, 2], "n": pa.array([None, 2], pa.int32())}))
        for how in ("followed", "loaded"):
            running.refresh()
            assert [get(running, key) for key in (1, 2)] == [[(None,)], [(2,)]], how
            Path(running.status().directory, "PRIMARY").unlink()
            changed.append(pa.table({"id": [3], "n": pa.array([3], pa.int32())}))
        folder = running.status().directory
    with open_lookup(changed, "id") as again:
        assert again.status().directory == folder, "it holds the same"


def test_values_that_the_old_type_cannot_hold(world: tuple[Catalog, str]) -> None:
    catalog, on = world
    running = open_lookup(catalog.load_table("db.t"), on, columns=["n"])
    table = catalog.alter_table("db.t", [ChangeType(("n",), BIGINT)])
    schema = table.schema.arrow_schema
    large = (1 << 40) + 2
    table.append(pa.table({"id": [4], "n": [large], "note": ["d"]}, schema=schema))
    # They do not fit what was opened, and are never cut to it: the old state is served on.
    with pytest.raises(LockgateError, match=r"n.* cannot be read as INT where it was BIGINT"):
        running.refresh()
    assert running.status().snapshot_id == 1
    assert get(running, 2) == [(2,)]
    running.close()
    with open_lookup(table, on, columns=["n"]) as lookup:
        assert get(lookup, large if on == "n" else 4) == [(large,)]
        assert get(lookup, 2) == [(2,)]


def test_a_column_is_dropped_and_another_of_its_name_added(world: tuple[Catalog, str]) -> None:
    catalog, on = world
    before = open_lookup(catalog.load_table("db.t"), on, columns=["note"])
    assert get(before, 1) == [("a",)]
    folder = before.status().directory
    before.close()
    table = catalog.alter_table("db.t", [DropColumn(("note",))])
    table = catalog.alter_table("db.t", [AddColumn(("note",), STRING)])
    # Its values are those of another column, and so is its cache.
    with open_lookup(table, on, columns=["note"]) as lookup:
        assert get(lookup, 1) == [(None,)]
        assert lookup.status().directory != folder
        schema = table.schema.arrow_schema
        table.append(pa.table({"id": [9], "n": [9], "note": ["new"]}, schema=schema))
        lookup.refresh()
        assert get(lookup, 9) == [("new",)]
