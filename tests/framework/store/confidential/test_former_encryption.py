"""A column that was encrypted, dropped and added again under its name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import OptionError, PlaintextError, PlaintextWarning
from lockgate.framework.store import Catalog
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, SetOption
from lockgate.framework.types import INT, STRING

ADD = AddColumn(("ssn",), STRING)
OPTION = "encryption.on-plaintext"


@pytest.fixture
def dropped(catalog: Catalog, make_table: Callable[..., Any]) -> Catalog:
    make_table(columns={"id": pa.int64(), "ssn": pa.string()})
    catalog.alter_table("db.t", [SetOption("orc.encrypt", "pii:ssn"), SetOption("orc.mask", "sha256:ssn")])
    catalog.alter_table("db.t", [DropColumn(("ssn",))])
    return catalog


def test_it_is_warned_of(dropped: Catalog) -> None:
    with pytest.warns(PlaintextWarning, match=r"once had a column 'ssn' that was encrypted \(key pii\)"):
        table = dropped.alter_table("db.t", [ADD])
    assert "orc.encrypt" not in table.schema.options


def test_it_is_refused(dropped: Catalog) -> None:
    before = dropped.load_table("db.t").schema
    with pytest.raises(PlaintextError, match=r"add 'pii:ssn' to 'orc.encrypt'"):
        dropped.alter_table("db.t", [ADD], on_plaintext="refuse")
    assert dropped.load_table("db.t").schema == before


@pytest.mark.parametrize("by", ["call", "table", "warehouse"])
def test_it_is_encrypted_as_before(dropped: Catalog, by: str) -> None:
    changes: list[Any] = [ADD]
    if by == "table":
        changes.insert(0, SetOption(OPTION, "inherit"))
    catalog = Catalog(dropped.warehouse, options={OPTION: "inherit"}) if by == "warehouse" else dropped
    table = catalog.alter_table("db.t", changes, on_plaintext="inherit" if by == "call" else None)
    assert table.schema.options["orc.encrypt"] == "pii:ssn"
    assert table.schema.options["orc.mask"] == "sha256:ssn"


def test_another_type_that_the_mask_does_not_suit(dropped: Catalog) -> None:
    with pytest.raises(OptionError, match="sha256"):
        dropped.alter_table("db.t", [AddColumn(("ssn",), INT)], on_plaintext="inherit")


def test_nothing_is_said_of_others(dropped: Catalog) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropped.alter_table("db.t", [AddColumn(("other",), STRING)], on_plaintext="refuse")
        dropped.alter_table("db.t", [ADD, SetOption("orc.encrypt", "pii:ssn")], on_plaintext="refuse")


def test_a_choice_that_there_is_none_of(dropped: Catalog) -> None:
    with pytest.raises(OptionError, match="expected one of"):
        Catalog(dropped.warehouse, options={OPTION: "always"})
