"""What a table is declared with is done or refused, never passed over."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import KeyMissingError, NamespaceNotFoundError, OptionError, TableNotFoundError
from lockgate.framework.keys import KeyMetadata, KeyProvider, MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import RemoveOption, SetOption

COLUMNS = pa.schema([("id", pa.int64()), ("ssn", pa.string())])
ENCRYPTED = Schema.from_arrow(COLUMNS, options={"orc.encrypt": "hr:ssn"})
MakeCatalog = Callable[[KeyProvider | None], Catalog]


@pytest.fixture
def with_keys(tmp_path: Path) -> MakeCatalog:
    def make(keys: KeyProvider | None) -> Catalog:
        catalog = Catalog(tmp_path / "warehouse", keys=keys)
        catalog.create_namespace("db", ignore_if_exists=True)
        return catalog

    return make


def test_a_key_that_does_not_exist_is_refused_before_the_first_row(with_keys: MakeCatalog) -> None:
    catalog = with_keys(MemoryKeyProvider({"hrm": b"0" * 16, "pii": b"1" * 16}))
    text = "'orc.encrypt' names a key that does not exist.*'hr'.*did you mean 'hrm'.*keys there are: hrm, pii"
    with pytest.raises(KeyMissingError, match=text):
        catalog.create_table("db.t", ENCRYPTED)
    assert catalog.list_tables("db") == []
    catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options={"orc.encrypt": "pii:ssn"}))
    with pytest.raises(KeyMissingError, match=text):
        catalog.alter_table("db.t", [SetOption("orc.encrypt", "hr:ssn")])
    with pytest.raises(KeyMissingError, match=text):
        catalog.replace_table("db.t", ENCRYPTED)
    assert catalog.load_table("db.t").options["orc.encrypt"] == "pii:ssn"


def test_without_any_keys_nothing_is_known_of_them(with_keys: MakeCatalog) -> None:
    with_keys(None).create_table("db.t", ENCRYPTED)
    # A key that the table has had all along does not stop other changes.
    catalog = with_keys(MemoryKeyProvider({"pii": b"1" * 16}))
    catalog.alter_table("db.t", [SetOption("snapshot.num-retained.min", "3")])
    catalog.alter_table("db.t", [RemoveOption("snapshot.num-retained.min")])


def test_a_key_that_is_denied_exists(with_keys: MakeCatalog) -> None:
    class Denying(MemoryKeyProvider):
        def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
            raise AssertionError("a declaration opens nothing")

    with_keys(Denying({"hr": b"0" * 16})).create_table("db.t", ENCRYPTED)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("provider", "parquet"),
        ("provider", "orc"),
        ("location", "/elsewhere"),
        ("path", "/elsewhere"),
        ("external", "true"),
    ],
)
def test_a_place_or_format_that_would_be_forgotten(with_keys: MakeCatalog, key: str, value: str) -> None:
    catalog = with_keys(None)
    with pytest.raises(OptionError, match=f"'{key}' cannot be"):
        catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options={key: value}))
    catalog.create_table(
        "db.t", Schema.from_arrow(COLUMNS, options={"provider": "paimon", "external": "false"})
    )


def test_the_nearest_table_is_named_with_its_database(with_keys: MakeCatalog) -> None:
    catalog = with_keys(None)
    catalog.create_table("db.people", Schema.from_arrow(COLUMNS))
    with pytest.raises(TableNotFoundError, match=r"there is no table db\.peple; did you mean 'db\.people'\?"):
        catalog.load_table("db.peple")


@pytest.mark.parametrize(("key", "value"), [("bucket", "two"), ("commit.max-retries", "1.5")])
def test_a_number_that_is_none(with_keys: MakeCatalog, key: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"option '{key}' cannot be '{value}': expected a whole number$"):
        with_keys(None).create_table("db.t", Schema.from_arrow(COLUMNS, options={key: value}))


def test_a_warehouse_that_is_not_there_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    catalog = Catalog(tmp_path / "nope" / "lake")
    with caplog.at_level(logging.WARNING, "lockgate"):
        assert catalog.list_namespaces() == []
    assert caplog.messages == [f"there is no warehouse at {tmp_path}/nope/lake"]
    with pytest.raises(NamespaceNotFoundError, match="nope/lake"):
        catalog.load_table("hr.people")
    caplog.clear()
    catalog.make_warehouse()
    catalog.make_warehouse()
    assert caplog.messages == [f"there was no warehouse at {tmp_path}/nope/lake: created an empty one"]
    assert (tmp_path / "nope" / "lake").is_dir()
    assert catalog.list_namespaces() == []
    assert len(caplog.messages) == 1
