"""The table as its users see it, on the local disk and behind fsspec."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError
from lockgate.framework.access import Principal
from lockgate.framework.store import Catalog, Replacement, Schema, SetOption, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.references import branch_table

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


@pytest.fixture(params=["local", "memory"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path if request.param == "local" else f"memory://{uuid.uuid4()}")
    catalog.create_namespace("db")
    return catalog


def rows(table: Table) -> dict[int, str]:
    found = table.read()
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def test_the_life_of_a_key_table(anywhere: Catalog) -> None:
    table = anywhere.create_table("db.t", Schema.from_arrow(ROWS.schema, primary_keys=["id"]))
    assert table.read().num_rows == 0
    table.append(ROWS)
    table.append(pa.table({"id": [2, 4], "v": ["B", "d"]}))
    assert rows(table) == {1: "a", 2: "B", 3: "c", 4: "d"}
    table.delete(pa.table({"id": [1]}))
    assert rows(table) == {2: "B", 3: "c", 4: "d"}
    assert rows(anywhere.load_table("db.t")) == rows(table)
    table.overwrite(ROWS.slice(0, 1))
    assert rows(table) == {1: "a"}
    assert expire_snapshots(table, retain_max=1).snapshots == 3
    assert rows(table) == {1: "a"}
    anywhere.drop_table("db.t")
    assert anywhere.list_tables("db") == []


def test_an_append_that_fails_leaves_no_files(
    make_table: Callable[..., Table], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table()
    before = {path for path in Path(table.location).rglob("*") if path.is_file()}

    def refuse(*_: object, **__: object) -> None:
        raise CommitConflictError("no")

    monkeypatch.setattr(Table, "commit", refuse)
    with pytest.raises(CommitConflictError):
        table.append(ROWS)
    assert {path for path in Path(table.location).rglob("*") if path.is_file()} == before


def test_a_table_says_what_it_is(make_table: Callable[..., Table]) -> None:
    table = make_table()
    assert repr(table) == f"Table('db.t', location={table.location!r}, schema_id=0)"


def test_what_a_catalog_gives_goes_along_with_a_table(catalog: Catalog) -> None:
    own = Catalog(
        catalog.warehouse,
        principal=Principal("ann"),
        options={"encryption.on-plaintext": "refuse", "external-roots": "/elsewhere"},
    )
    own.create_namespace("other")
    table = own.create_table("other.t", Schema.from_arrow(ROWS.schema))
    table.create_branch("b")
    branch = branch_table(table, "b")
    changed = own.alter_table("other.t", [SetOption("comment", "x")])
    for each in (table, branch, changed.with_schema(0), Replacement.of(table, changed.schema)):
        assert each.context == table.context, each
    assert (table.context.on_plaintext, table.context.external.roots) == ("refuse", ("/elsewhere",))
