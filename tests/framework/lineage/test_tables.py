"""The tables `sys.lineage_*` of a warehouse, and the rows that they omit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.errors import NotFoundError, PluginError
from lockgate.framework.access import AccessRequest, Decision
from lockgate.framework.lineage import Dataset, EdgeKind, Record, Run, Shape
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.plugins import PluginManager, hookimpl, plugins
from lockgate.framework.store import Catalog
from lockgate.framework.types import DataField, parse_type

COPY = Shape(
    "INSERT",
    Dataset.table("hr", "copy"),
    (Dataset.table("hr", "people"),),
    (("name", 0, "name", int(EdgeKind.IDENTITY)),),
    rows=((0, "id", int(EdgeKind.FILTER)),),
)
OUT = Shape("EXPORT", Dataset("file:/out", "file"), (Dataset.table("hr", "copy"),), (("n", 0, "name", 2),))
RUN = Run(
    1000,
    2000,
    how="INSERT ?",
    who={"user": "ann"},
    why={"reason": "audit"},
    written=4,
    reads={0: 7},
    rows=5,
    bytes=90,
    rows_read=8,
)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    catalog = Catalog(str(tmp_path / "lake"))
    for shape in (COPY, OUT):
        lineage_of(catalog).journal.add(Record(shape, RUN))
    return catalog


def rows(catalog: Catalog, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = catalog.system(name).to_pylist()
    return found


def test_edges_processes_and_runs_are_tables(catalog: Catalog) -> None:
    edges = {
        (each["source"], each["source_column"], each["target"], each["target_column"], each["kinds"])
        for each in rows(catalog, "lineage_edges")
    }
    assert edges == {
        ("hr.people", "name", "hr.copy", "name", "identity"),
        ("hr.copy", "name", "file:/out", "n", "transformation"),
        ("hr.people", "id", "hr.copy", "*", "filter"),
    }
    processes = rows(catalog, "lineage_processes")
    assert [(each["kind"], each["target"], each["inputs"], each["runs"]) for each in processes] == [
        ("INSERT", "hr.copy", '["hr.people"]', 1),
        ("EXPORT", "file:/out", '["hr.copy"]', 1),
    ]
    run = rows(catalog, "lineage_runs")[0]
    assert (run["who"], run["reason"], run["snapshots_read"], run["snapshot_written"]) == (
        *("ann", "audit", '{"0": 7}', 4),
    )
    amounts = ("rows_read", "bytes_read", "rows_written", "bytes_written")
    assert [run[name] for name in amounts] == [8, None, 5, 90]
    assert run["ended"].isoformat() == "1970-01-01T00:00:02+00:00"
    assert run["process_guid"] in {each["guid"] for each in processes}


def test_rows_about_unreadable_tables_are_omitted(catalog: Catalog) -> None:
    def decide(request: AccessRequest) -> Decision:
        if request.target.name == "hr.people":
            return Decision(allowed=False, apply_for=("people",))
        return Decision()

    plugins().register(
        SimpleNamespace(lockgate_authorize=hookimpl(decide, specname="lockgate_authorize")), "no"
    )
    try:
        assert {each["source"] for each in rows(catalog, "lineage_edges")} == {"hr.copy"}
        assert [each["kind"] for each in rows(catalog, "lineage_processes")] == ["EXPORT"]
        assert [each["process"] for each in rows(catalog, "lineage_runs")] == ["EXPORT"]
    finally:
        plugins().unregister("no")


def test_a_misspelt_table_is_named(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match="lineage_edges"):
        catalog.system("lineage_edgse")


def test_tables_of_plugins_are_checked() -> None:
    class Rows:
        columns = (DataField(0, "n", parse_type("INT")),)

        def batches(self, catalog: Catalog) -> Any:
            return iter(())

    for answer, complaint in (({"tables": Rows()}, "another name"), ({"mine": object()}, "batches")):
        manager = PluginManager()
        hook = hookimpl(lambda answer=answer: answer, specname="lockgate_warehouse_tables")
        manager.register(SimpleNamespace(lockgate_warehouse_tables=hook), "p")
        with pytest.raises(PluginError, match=complaint):
            manager.warehouse_tables()
