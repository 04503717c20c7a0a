"""Drops and renamings of tables and columns with readers: allowed, warned about or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from lockgate.errors import LineageError, LineageWarning, OptionError
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.plugins import answering_session
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, RenameColumn, SetOption
from lockgate.framework.types import DataField, parse_type

Made = Callable[..., Catalog]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A function that makes a warehouse with options: hr.people, from which hr.copy and a file are made."""
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))

    def make(of_table: dict[str, str] | None = None, **options: str) -> Catalog:
        catalog = Catalog(str(tmp_path / "lake"), options={f"lineage.{k}": v for k, v in options.items()})
        catalog.create_namespace("hr")
        fields = tuple(
            DataField(n, name, parse_type("STRING")) for n, name in enumerate(("id", "name", "pay"))
        )
        people = catalog.create_table("hr.people", Schema(fields, options=of_table or {}))
        catalog.create_table("hr.copy", Schema(fields))
        source = Dataset.table("hr", "people", table_id=str(people.table_id))
        journal = lineage_of(catalog).journal
        for target, column in ((Dataset.table("hr", "copy"), "name"), (Dataset("file:/out", "file"), "pay")):
            journal.add(Record(Shape("INSERT", target, (source,), ((column, 0, column, 1),)), Run(1, 2)))
        return catalog

    return make


def refused(catalog: Catalog, act: Callable[[], object]) -> str:
    with pytest.raises(LineageError) as caught:
        act()
    assert catalog.table_exists("hr.people")
    return str(caught.value)


def test_the_drop_of_a_table_with_readers_is_refused(made: Made) -> None:
    catalog = made({"lineage.on-drop": "refuse"})
    text = refused(catalog, lambda: catalog.drop_table("hr.people"))
    assert "hr.copy.name (INSERT)" in text
    assert "file:/out#pay" in text
    assert "CALL sys.impact(table => 'hr.people')" in text
    assert "'lineage.on-drop'" in text
    refused(catalog, lambda: catalog.rename_table("hr.people", "hr.folk"))
    catalog.drop_table("hr.copy")
    text = refused(catalog, lambda: catalog.drop_table("hr.people"))
    assert "file:/out#pay" in text


def test_a_column_with_readers_is_neither_dropped_nor_renamed(made: Made) -> None:
    catalog = made({"lineage.on-drop": "refuse"})
    before = catalog.load_table("hr.people").schema
    text = refused(catalog, lambda: catalog.alter_table("hr.people", [DropColumn(("name",))]))
    assert "column name of hr.people is dropped" in text
    assert "file:/out" not in text
    assert "`column` => 'name'" in text
    refused(catalog, lambda: catalog.alter_table("hr.people", [RenameColumn(("pay",), "salary")]))
    assert catalog.load_table("hr.people").schema == before
    added = AddColumn(("more",), parse_type("INT"))
    catalog.alter_table("hr.people", [RenameColumn(("id",), "number"), added])
    catalog.alter_table("hr.people", [SetOption("lineage.on-drop", "allow")])
    catalog.alter_table("hr.people", [DropColumn(("name",))])


def test_a_change_with_readers_gives_a_warning_by_default(made: Made) -> None:
    catalog = made()
    with pytest.warns(LineageWarning, match=r"hr\.copy\.name"):
        catalog.alter_table("hr.people", [DropColumn(("name",))])
    with pytest.warns(LineageWarning, match="table hr.people is dropped"):
        catalog.drop_table("hr.people")


def test_options_of_table_session_and_warehouse_have_this_precedence(made: Made) -> None:
    catalog = made(**{"on-drop": "allow"})
    with answering_session({"spark.lockgate.lineage.on-drop": "refuse"}.get):  # type: ignore[arg-type]  # its default is never asked for
        refused(catalog, lambda: catalog.drop_table("hr.people"))
        catalog.alter_table("hr.people", [SetOption("lineage.on-drop", "allow")])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            catalog.drop_table("hr.people")


def test_a_database_is_dropped_with_its_readers(made: Made) -> None:
    catalog = made(**{"on-drop": "refuse"})
    text = refused(catalog, lambda: catalog.drop_namespace("hr", cascade=True))
    assert "file:/out" in text
    assert "hr.copy" not in text


def test_readers_of_an_earlier_table_of_the_same_name_do_not_count(made: Made) -> None:
    catalog = made({"lineage.on-drop": "allow"})
    fields = catalog.load_table("hr.people").schema.fields
    catalog.drop_table("hr.people")
    catalog.create_table("hr.people", Schema(fields, options={"lineage.on-drop": "refuse"}))
    catalog.drop_table("hr.people")


def test_a_wrong_choice_is_refused(made: Made) -> None:
    with pytest.raises(OptionError, match="allow, warn, refuse"):
        made({"lineage.on-drop": "forbid"})
    with pytest.raises(OptionError, match="allow, warn, refuse"):
        made(**{"on-drop": "never"})
