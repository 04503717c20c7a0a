"""Databases and tables: created once, found again, dropped, and missed with the nearest names."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InputError,
    LockgateError,
    NamespaceNotFoundError,
    TableNotFoundError,
)
from lockgate.framework.store import Catalog, CommitMessage, DataFileMeta, Identifier, Schema, Table

MakeTable = Callable[..., Table]

SCHEMA = Schema.from_arrow(pa.schema([("id", pa.int64())]))


def test_namespaces_are_made_once_and_listed_in_order(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "not yet")
    assert catalog.list_namespaces() == []
    catalog.create_namespace("b")
    catalog.create_namespace("a")
    catalog.create_namespace("a", ignore_if_exists=True)
    with pytest.raises(AlreadyExistsError, match="'a'"):
        catalog.create_namespace("a")
    assert catalog.list_namespaces() == ["a", "b"]
    catalog.drop_namespace("a")
    catalog.drop_namespace("a", ignore_if_not_exists=True)
    with pytest.raises(NamespaceNotFoundError):
        catalog.drop_namespace("a")
    assert catalog.list_namespaces() == ["b"]


def test_tables_are_created_listed_and_loaded(catalog: Catalog) -> None:
    assert catalog.list_tables("db") == []
    created = catalog.create_table("db.planes", SCHEMA)
    assert created.identifier == Identifier("db", "planes")
    assert catalog.table_exists("db.planes")
    assert not catalog.table_exists("db.other")
    loaded = catalog.load_table(Identifier("db", "planes"))
    assert loaded.schema == created.schema
    assert loaded.table_id == created.table_id
    with pytest.raises(AlreadyExistsError, match=r"db\.planes"):
        catalog.create_table("db.planes", SCHEMA)
    assert catalog.create_table("db.planes", SCHEMA, ignore_if_exists=True).schema == created.schema
    assert catalog.list_tables("db") == ["planes"]
    with pytest.raises(InputError, match="not empty: it has planes"):
        catalog.drop_namespace("db")
    catalog.drop_table("db.planes")
    catalog.drop_table("db.planes", ignore_if_not_exists=True)
    assert catalog.list_tables("db") == []
    catalog.create_table("db.planes", SCHEMA)
    catalog.drop_namespace("db", cascade=True)
    assert catalog.list_namespaces() == []


def test_misses_offer_the_nearest_names(catalog: Catalog) -> None:
    catalog.create_table("db.planes", SCHEMA)
    with pytest.raises(TableNotFoundError, match=r"db\.plane; did you mean 'db\.planes'"):
        catalog.load_table("db.plane")
    with pytest.raises(TableNotFoundError, match=r"'db\.planes'"):
        catalog.drop_table("db.plane")
    with pytest.raises(NamespaceNotFoundError, match=r"no database 'dbs'.*did you mean 'db'"):
        catalog.load_table("dbs.planes")
    with pytest.raises(NamespaceNotFoundError):
        catalog.create_table("dbs.planes", SCHEMA)


@pytest.mark.parametrize("name", ["planes", "a.b.c", "db.a/b", "db.", "db.a$b", "db.-a", "db..."])
def test_names_that_cannot_be(catalog: Catalog, name: str) -> None:
    with pytest.raises(InputError):
        catalog.create_table(name, SCHEMA)


def test_of_many_creators_one_wins(catalog: Catalog) -> None:
    outcomes: list[bool] = []

    def create() -> None:
        try:
            catalog.create_table("db.t", SCHEMA)
        except AlreadyExistsError:
            outcomes.append(False)
        else:
            outcomes.append(True)

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 5 + [True]


def test_a_table_created_again_is_another(
    catalog: Catalog, message: Callable[..., CommitMessage], data_file: Callable[..., DataFileMeta]
) -> None:
    first = catalog.create_table("db.t", SCHEMA)
    first.commit([message(data_file("a"))])
    catalog.drop_table("db.t")
    assert not Path(first.location).exists()
    second = catalog.create_table("db.t", SCHEMA)
    assert second.latest_snapshot() is None
    if second.schema.time_millis != first.schema.time_millis:
        assert second.table_id != first.table_id


def test_remains_of_a_table_are_not_taken_for_a_new_one(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table()
    table.commit([])
    (Path(table.location) / "schema" / "schema-0").unlink()
    with pytest.raises(AlreadyExistsError, match="remains"):
        catalog.create_table("db.t", SCHEMA)


def test_a_damaged_table_is_named(catalog: Catalog, make_table: MakeTable) -> None:
    path = Path(make_table().location) / "schema" / "schema-0"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CorruptFileError, match="schema-0"):
        catalog.load_table("db.t")


def test_a_warehouse_may_be_given_as_an_address(catalog: Catalog, make_table: MakeTable) -> None:
    make_table()
    assert Catalog(f"file://{catalog.warehouse}").list_tables("db") == ["t"]
    assert repr(catalog) == f"Catalog({catalog.warehouse!r})"


@pytest.mark.parametrize("warehouse", ["", " ", "a\0b", 7, None, b"lake"])
def test_what_is_no_address_is_refused(warehouse: Any) -> None:
    with pytest.raises(InputError, match=r"a path or an address|warehouse takes str . os\.PathLike"):
        Catalog(warehouse)


def test_a_file_where_the_warehouse_is_due(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    catalog = Catalog(tmp_path / "file")
    for call in (
        catalog.list_namespaces,
        lambda: catalog.list_tables("db"),
        lambda: catalog.load_table("db.t"),
        lambda: catalog.create_namespace("db"),
    ):
        with pytest.raises(LockgateError):
            call()


def test_a_text_is_no_list_of_names(make_table: MakeTable) -> None:
    table = make_table()
    for call in (
        lambda: table.read(columns="id"),
        lambda: table.scan(columns="id"),
        lambda: table.system("files", columns="file_path"),
        lambda: table.changes(0, 1, columns="id"),
        lambda: table.aggregate([], group_by="id"),
        lambda: Schema.from_arrow(pa.schema([("i", pa.int32()), ("d", pa.int32())]), primary_keys="id"),
    ):
        with pytest.raises(InputError, match=r"takes (a list of names|tuple\[str)"):
            call()
