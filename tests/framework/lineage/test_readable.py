"""Lineage answers omit tables that the principal may not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lockgate import procedures
from lockgate.cli.main import main
from lockgate.errors import AccessDeniedError, LineageError, NotFoundError
from lockgate.framework.access import AccessRequest, Decision
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.answer import answer
from lockgate.framework.lineage.readable import Readable
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.types import DataField, parse_type

HIDDEN = "hr.hidden"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A warehouse in which hr.people is copied to hr.hidden, and that to hr.open; nobody reads hr.hidden."""
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("hr")
    fields = (DataField(0, "id", parse_type("INT")), DataField(1, "name", parse_type("STRING")))
    for name in ("people", "hidden", "open"):
        options = {"lineage.on-drop": "refuse"} | ({"orc.encrypt": "pii:name"} if name == "people" else {})
        catalog.create_table(f"hr.{name}", Schema(fields, options=options))
    for source, target in (("people", "hidden"), ("hidden", "open"), ("people", "open")):
        edges = (("name", 0, "name", 1),)
        shape = Shape("INSERT", Dataset.table("hr", target), (Dataset.table("hr", source),), edges)
        lineage_of(catalog).journal.add(Record(shape, Run(1, 2)))

    def decide(request: AccessRequest) -> Decision:
        allowed = request.target.name != HIDDEN or request.action != "SELECT"
        return Decision(allowed=allowed, apply_for=() if allowed else ("SELECT on hidden",))

    plugin = SimpleNamespace(lockgate_authorize=hookimpl(decide, specname="lockgate_authorize"))
    plugins().register(plugin, "hides")
    yield catalog
    plugins().unregister("hides")


def rows(catalog: Catalog, name: str, /, **arguments: object) -> str:
    return str(procedures.call(procedures.ProcedureContext(catalog), name, **arguments))


def test_traces_omit_hidden_tables(catalog: Catalog) -> None:
    for name, direction in (("hr.open", "back"), ("hr.people", "forward"), ("hr.people.name", "both")):
        found = rows(catalog, "lineage", name=name, direction=direction)
        assert "hr.open.name" in found
        assert "hidden" not in found
    with lineage_of(catalog).reading() as database:
        found_by_python = answer(database, "hr.open", Readable(catalog), catalog=None)
    assert [edge.source.qualified for edge in found_by_python.found] == ["hr.people.name"]


def test_readers_and_exposures_omit_hidden_tables(catalog: Catalog) -> None:
    for found in (rows(catalog, "impact", table="hr.people"), rows(catalog, "plaintext", key="pii")):
        assert "hr.open.name" in found
        assert "hidden" not in found


def test_queries_about_a_hidden_table_are_refused(catalog: Catalog) -> None:
    for name, argument in (("lineage", "name"), ("impact", "table")):
        with pytest.raises(AccessDeniedError, match="SELECT on hidden"):
            rows(catalog, name, **{argument: HIDDEN})
    with pytest.raises(NotFoundError) as unknown:
        rows(catalog, "lineage", name="hr.hidde")
    assert "hr.hidden" not in str(unknown.value)


def test_hidden_readers_count_but_are_not_named(catalog: Catalog) -> None:
    with pytest.raises(LineageError, match=r"hr\.open\.name \(INSERT\) and 1 more") as refused:
        catalog.drop_table("hr.people")
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("form", ["openlineage", "atlas"])
def test_exports_omit_statements_about_hidden_tables(
    catalog: Catalog, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lineage", "export", "--format", form, "--warehouse", catalog.warehouse]) == 0
    found = capsys.readouterr().out
    assert "hr.people" in found
    assert "hr.open" in found
    assert "hidden" not in found


def test_the_principal_of_the_command_line_is_the_user_of_the_process(
    catalog: Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        code = main(["lineage", *arguments, "--warehouse", catalog.warehouse])
        return code, "".join(capsys.readouterr())

    for command in (("trace", "hr.open"), ("impact", "hr.people"), ("plaintext",)):
        code, found = run(*command)
        assert code == 0
        assert "hidden" not in found
    page = tmp_path / "page.html"
    assert run("page", "hr.people", "--direction", "both", "--output", str(page))[0] == 0
    assert HIDDEN not in page.read_text()
    for command in (("trace", HIDDEN), ("impact", HIDDEN), ("page", HIDDEN, "--output", str(page))):
        code, found = run(*command)
        assert code == 1
        assert "SELECT on hidden" in found
    assert HIDDEN not in page.read_text()
