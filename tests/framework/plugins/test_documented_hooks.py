"""The documented example of each hook runs unchanged and does what the page promises."""

from __future__ import annotations

import json
import logging
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from lockgate.cli.main import main
from lockgate.errors import AccessDeniedError, InputError, OptionError
from lockgate.framework.access import (
    AccessRequest,
    Action,
    Caller,
    Decision,
    Principal,
    SqlDecision,
    Target,
)
from lockgate.framework.keys import create_key_file, provider_from
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.plugins import acting_as, plugins
from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.types import STRING
from lockgate.plugins import AuthorizerConformance
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Comparison, Op, col

PAGE = Path(__file__).parents[3] / "docs" / "plugins.md"
SECTIONS = re.findall(r"^### (\w+)\(", PAGE.read_text(), re.MULTILINE)


@dataclass
class World:
    """A warehouse with the table `hr.people` of two rows, and pytest's own fixtures."""

    folder: Path
    people: Table
    caplog: pytest.LogCaptureFixture
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    example: Any = None

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.folder / "warehouse")

    def table(self, name: str, **columns: list[Any]) -> Table:
        rows = pa.table(columns)
        catalog = self.catalog
        if name.partition(".")[0] not in catalog.list_namespaces():
            catalog.create_namespace(name.partition(".")[0])
        made = catalog.create_table(name, Schema.from_arrow(rows.schema))
        made.append(rows)
        return made


@pytest.fixture
def world(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("hr")
    rows = pa.table({"name": ["Ada", "Bob"], "dept": ["x", "y"], "ssn": ["1234", "5678"], "salary": [7, 8]})
    table = catalog.create_table("hr.people", Schema.from_arrow(rows.schema))
    table.append(rows)
    return World(tmp_path, table, caplog, capsys, monkeypatch)


@pytest.fixture
def example(hook: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """The example of a section, registered as a plugin."""
    section = re.split(r"^### ", PAGE.read_text().split(f"### {hook}(")[1], flags=re.MULTILINE)[0]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code, f"the section of {hook} has no example in Python"
    module = types.ModuleType(hook)
    monkeypatch.setitem(sys.modules, hook, module)  # where dataclasses look up the names of types
    exec(compile(code[1], f"{PAGE}: {hook}", "exec"), vars(module))
    assert hasattr(module, hook), "the example implements the hook of its section"
    plugins().register(module, f"example of {hook}")
    yield module
    plugins().unregister(f"example of {hook}")


CHECKS: dict[str, Callable[[World], None]] = {}


def check_for(hook: str) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Make the decorated function the check of a hook's example."""

    def add(check: Callable[[World], None]) -> Callable[[World], None]:
        assert hook not in CHECKS
        CHECKS[hook] = check
        return check

    return add


@pytest.mark.parametrize("hook", SECTIONS)
def test_the_example_does_what_the_page_promises(hook: str, world: World, example: types.ModuleType) -> None:
    assert hook in CHECKS, f"write a check of the example of {hook} in {Path(__file__).name}"
    world.example = example
    CHECKS[hook](world)


def test_every_check_belongs_to_a_section() -> None:
    assert len(SECTIONS) > 15
    assert set(CHECKS) <= set(SECTIONS)


@check_for("lockgate_procedures")
def a_procedure_counts_rows(world: World) -> None:
    row_count: Any = plugins().procedures()["row_count"]
    assert row_count.call(ProcedureContext(world.catalog), table="hr.people") == [(2,)]


@check_for("lockgate_bridge_operations")
def an_operation_answers(world: World) -> None:
    assert Dispatcher().answer("audit.note", {"text": "seen"}) == {"noted": "seen"}


@check_for("lockgate_system_tables")
def a_system_table_has_a_row_for_each_snapshot(world: World) -> None:
    numbers: Any = plugins().system_tables()["numbers"]
    found = numbers.rows(None, world.people, {}, {})
    assert [field.name for field in numbers.schema(None, world.people)] == found.column_names
    assert found.to_pylist() == [{"snapshot_id": 1}]


@check_for("lockgate_warehouse_tables")
def a_table_lists_databases(world: World) -> None:
    assert world.catalog.system("databases").to_pylist() == [{"name": "hr"}]


@check_for("lockgate_key_providers")
def a_scheme_opens_keys(world: World) -> None:
    world.monkeypatch.setenv("TEAM_KEYS", str(world.folder))
    create_key_file(world.folder / "hr.keys", ["pay"])
    assert provider_from("team:hr").key_names() == ["pay"]


@check_for("lockgate_masks")
def a_mask_keeps_first_letters(world: World) -> None:
    make = plugins().masks()["initials"]
    assert make(["2"])(pa.array(["Mary", None, ""])).to_pylist() == ["Ma", None, ""]
    assert make([])(pa.array(["Mary"])).to_pylist() == ["M"]
    with pytest.raises(ValueError, match="many"):
        make(["many"])


@check_for("lockgate_lake_methods")
def a_method_returns_the_newest_snapshot(world: World) -> None:
    lake = types.SimpleNamespace(catalog=world.catalog)
    assert plugins().lake_methods()["newest_snapshot"](lake, "hr.people").id == 1


@check_for("lockgate_principal")
def a_user_gets_groups(world: World) -> None:
    assert plugins().principal(Caller("ada")) == Principal("ada", groups=frozenset({"hr"}))
    assert plugins().principal(Caller("bob")) == Principal("bob")


@check_for("lockgate_authorize")
def an_authorizer_masks_and_denies(world: World) -> None:
    more = pa.table({"name": ["Eve"], "dept": ["x"], "ssn": ["9999"], "salary": [9]})
    with acting_as(Principal("ada", groups=frozenset({"hr"}))):
        assert world.people.read()["salary"].to_pylist() == [7, 8]
        world.people.append(more)
    with acting_as(Principal("bob")):
        assert world.people.read()["salary"].to_pylist() == [None] * 3
        with pytest.raises(AccessDeniedError, match="membership of group hr"):
            world.people.append(more)


@check_for("lockgate_authorize_sql")
def an_authorizer_answers_in_sql(world: World) -> None:
    asked = AccessRequest(Principal("bob"), Action.SELECT, Target("table", "hr.people"), None)
    found = plugins().authorize_sql(asked, {"ssn": "string", "salary": "bigint"})
    assert found.row_filter == "(dept = 'x')"
    assert found.masks == {"ssn": "right(ssn, 4)"}
    assert found.denied == {"salary": ("role hr",)}
    assert world.people.read(columns=["name", "ssn"]).to_pylist() == [{"name": "Ada", "ssn": None}]
    with pytest.raises(AccessDeniedError, match="role hr"):
        world.people.read(columns=["salary"])

    class Suite(AuthorizerConformance):
        def authorize(self, request: AccessRequest) -> Decision | None:
            return cast("Decision | None", world.example.lockgate_authorize(request))

        def authorize_sql(self, request: AccessRequest, types: Any, records: bool) -> SqlDecision | None:
            return cast("SqlDecision | None", world.example.lockgate_authorize_sql(request, types))

        def requests(self) -> list[AccessRequest]:
            return [replace(asked, columns=frozenset(["name", *more])) for more in ([], ["ssn"], ["salary"])]

    for name in dir(Suite):
        if name.startswith("test_"):
            getattr(Suite(), name)()


@check_for("lockgate_options")
def an_option_is_checked(world: World) -> None:
    schema = Schema.from_arrow(pa.schema([("id", pa.int64())]), options={"audit.sample": "0.5"})
    sample = plugins().options("table")["audit.sample"]
    assert world.catalog.create_table("hr.audited", schema).options.get_option(sample) == 0.5
    assert set(plugins().options("session")) >= {"audit.sample"}
    with pytest.raises(OptionError, match="expected a number from 0 to 1"):
        Catalog(world.folder, options={"audit.sample": "2"})


@check_for("lockgate_pruners")
def a_pruner_skips_files(world: World) -> None:
    table = world.table("hr.marked", id=[0, 1], tag=["a", "z"])
    table.append(pa.table({"id": [2, 3], "tag": ["b", "z"]}))
    plan = table.scan(predicate=col("tag").isin(["b", "c"]))
    assert [step.after.files for step in plan.report.steps if step.name == "tags"] == [1]


@check_for("lockgate_index_kinds")
def a_kind_answers_by_the_first_letter(world: World) -> None:
    kind = plugins().index_kinds()["letters"]
    asked = kind.lookup_keys(Comparison(Op.STARTS_WITH, ("name",), (pa.scalar("An"),)), STRING)
    assert kind.accepts(STRING)
    assert asked is not None
    assert np.isin(asked.keys, kind.keys(pa.array(["Anna", ""]), STRING)).all()
    assert not np.isin(asked.keys, kind.keys(pa.array(["Bob"]), STRING)).any()
    assert kind.lookup_keys(Comparison(Op.EQ, ("name",), (pa.scalar("Anna"),)), STRING) is None


@check_for("lockgate_file_collectors")
def words_make_an_index(world: World) -> None:
    table = world.table("hr.marked", id=[1, 2], tag=["a", "z"])
    table.append(pa.table({"id": [3, 4], "tag": ["b", "z"]}))
    table.append(pa.table({"id": [5, 6], "tag": ["a", "y"]}))
    plan = table.scan(predicate=col("tag") == "b")
    assert [step.after.files for step in plan.report.steps if step.name == "words"] == [1]
    assert len(list(Path(table.location, "words").iterdir())) == 3
    assert table.read(predicate=col("tag") == "b")["id"].to_pylist() == [3]


@check_for("lockgate_commit_participants")
def a_participant_sees_a_commit(world: World) -> None:
    world.people.append(world.people.read())
    assert world.capsys.readouterr().out == "snapshot 2\n"


@check_for("lockgate_before_change")
def a_change_is_refused(world: World) -> None:
    world.table("archive.old", id=[1])
    with pytest.raises(InputError, match=r"archive\.old is kept for good: it cannot be dropped"):
        world.catalog.drop_table("archive.old")
    world.catalog.drop_table("hr.people")


@check_for("lockgate_before_attach")
def an_application_without_audit_is_refused(world: World) -> None:
    with pytest.raises(InputError, match=r"set spark\.company\.audit"):
        plugins().before_attach({"spark.app.name": "x"})
    plugins().before_attach({"spark.company.audit": "true"})


@check_for("lockgate_lineage_sinks")
def a_sink_writes_lines(world: World) -> None:
    world.monkeypatch.chdir(world.folder)
    record = Record(Shape("INSERT", Dataset("lake.db.t", "table")), Run(1, 2))
    plugins().lineage_sinks()["notes"].write("file:/w", [record, record])
    lines = [json.loads(line) for line in (world.folder / "lineage.jsonl").read_text().splitlines()]
    assert lines == [["file:/w", record.shape.to_json(), record.run.to_json()]] * 2


@check_for("lockgate_audit_sinks")
def a_destination_writes_lines(world: World) -> None:
    world.monkeypatch.chdir(world.folder)
    plugins().audit_sinks()["notes"].write([{"id": "1"}, {"id": "2"}])
    lines = (world.folder / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["1", "2"]


@check_for("lockgate_cli_commands")
def a_command_prints_the_number_of_rows(world: World) -> None:
    assert main(["rows", "--warehouse", str(world.folder / "warehouse"), "hr.people"]) == 0
    assert world.capsys.readouterr().out == "2\n"


@check_for("lockgate_event")
def an_observer_receives_commits(world: World) -> None:
    assert plugins().events.flush()
    with world.caplog.at_level(logging.INFO, "warehouse"):
        world.people.append(world.people.read())
        assert plugins().events.flush()
    assert world.caplog.messages == [f"{world.people.location} is at snapshot 2"]
