"""Source columns of a statement, checked for copies of encrypted columns before it writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.errors import PlaintextError, PlaintextWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.checks.on_plaintext import check_flow, check_flow_to_files
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.types import DataField, parse_type

Judge = Callable[..., None]


class Lake:
    """A warehouse with hr.people, whose name is encrypted, and its copies."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.version = 1
        fields = (DataField(0, "id", parse_type("INT")), DataField(1, "name", parse_type("STRING")))
        catalog.create_namespace("hr")
        catalog.create_table("hr.people", Schema(fields, options={"orc.encrypt": "pii:name"}))
        for name in ("copy", "target", "own"):
            catalog.create_table(f"hr.{name}", Schema(fields))

    def note(self, source: str, target: str, kinds: int = 1, column: str = "name") -> None:
        edges = ((column, 0, "name", kinds),)
        shape = Shape("INSERT", self.dataset(target), (self.dataset(source),), edges)
        lineage_of(self.catalog).journal.add(Record(shape, Run(1, 2)))

    def dataset(self, name: str) -> Dataset:
        table_id = str(self.catalog.load_table(f"hr.{name}").table_id)
        return Dataset.table("hr", name, table_id=table_id)

    def flow(self, source: str, target: str, column: str = "name", query: str | None = None) -> None:
        table = self.catalog.load_table(f"hr.{target}")
        self.version += 1
        context = SimpleNamespace(
            table=lambda: table,
            catalog=lambda name: self.catalog,
            catalog_name=lambda: "lake",
            requested_catalog=lambda: self.catalog,
        )
        request: Any = {"query": query, "target": None, **self.read(source, column)}
        check_flow(context, request)

    def read(self, source: str, column: str = "name") -> dict[str, Any]:
        found = {
            "type": "table",
            "handle": "lake",
            "catalog": "lake",
            "parts": ["hr", source],
            "id": self.dataset(source).id,
            "version": self.version,
            "schema": None,
        }
        return {"inputs": [found], "columns": {column: [[0, "name"]]}}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    keys = MemoryKeyProvider({"pii@0": b"k" * 16})
    return Lake(Catalog(str(tmp_path / "lake"), keys=keys))


def silent(act: Callable[[], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        act()


def test_only_copies_with_readable_values_count(lake: Lake) -> None:
    silent(lambda: lake.flow("copy", "target"))
    lake.note("people", "copy", kinds=16)
    silent(lambda: lake.flow("copy", "target"))
    lake.note("people", "copy", kinds=2)
    with pytest.warns(PlaintextWarning, match=r"name \(from hr\.copy\.name, a copy of hr\.people\.name\)"):
        lake.flow("copy", "target")
    lake.note("copy", "own")
    with pytest.warns(PlaintextWarning, match=r"from hr\.own\.name, a copy of hr\.people\.name"):
        lake.flow("own", "target")
    silent(lambda: lake.flow("people", "target"))  # `encryption.on-plaintext` judges it
    silent(lambda: lake.flow("copy", "copy"))


def test_a_check_writes_nothing(lake: Lake) -> None:
    lake.note("people", "copy")
    with pytest.warns(PlaintextWarning):
        lake.flow("copy", "target")
    lineage = lineage_of(lake.catalog)
    assert lineage.journal.waiting() == 1
    assert lineage.segments.all_names() == []
    with lineage.peeking() as database:
        assert database.execute("SELECT count(*) FROM process").fetchone() == (1,)
    with lineage.reading() as database:
        assert database.execute("SELECT count, failed FROM process").fetchall() == [(1, 0)]


def test_an_encrypted_copy_is_no_exposure(lake: Lake) -> None:
    lake.note("people", "copy")
    lake.catalog.alter_table("hr.target", [SetOption("orc.encrypt", "pii:name")])
    silent(lambda: lake.flow("copy", "target"))
    with pytest.warns(PlaintextWarning, match=r"lake\.hr\.target .*: id \(from"):
        lake.flow("copy", "target", column="id")


def test_choices_of_table_and_warehouse(lake: Lake) -> None:
    lake.note("people", "copy")
    lake.catalog.options = {"lineage.on-plaintext": "refuse"}
    with pytest.raises(PlaintextError, match=r"sys\.plaintext.*refused by 'lineage\.on-plaintext'"):
        lake.flow("copy", "target")
    lake.catalog.alter_table("hr.target", [SetOption("lineage.on-plaintext", "allow")])
    silent(lambda: lake.flow("copy", "target"))


def test_a_stream_gives_one_warning(lake: Lake) -> None:
    lake.note("people", "copy")
    with pytest.warns(PlaintextWarning):
        lake.flow("copy", "target", query="a stream")
    silent(lambda: lake.flow("copy", "target", query="a stream"))
    with pytest.warns(PlaintextWarning):
        lake.flow("copy", "target", query="another")


def test_the_source_warehouse_decides_about_files(lake: Lake) -> None:
    lake.note("people", "copy")
    context: Any = SimpleNamespace(catalog=lambda name: lake.catalog)
    request: Any = {"path": "file:/out", "encrypt": None, "query": None, **lake.read("copy")}
    with pytest.warns(PlaintextWarning, match="file:/out gets values"):
        check_flow_to_files(context, request)
    silent(lambda: check_flow_to_files(context, {**request, "encrypt": "pii:name"}) and None)
    lake.catalog.options = {"lineage.on-plaintext": "refuse"}
    with pytest.raises(PlaintextError):
        check_flow_to_files(context, request)
