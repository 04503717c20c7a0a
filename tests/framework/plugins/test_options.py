"""Options that plugins declare are validated, and refused where they are misspelt."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import OptionError, PluginError
from lockgate.framework.options.option import Option, at_least
from lockgate.framework.options.table_options import TableOptions, known_options
from lockgate.framework.plugins import (
    answering_session,
    check_session_options,
    check_setting_names,
    hookimpl,
    plugins,
    session_option,
)
from lockgate.framework.spark.context.open_catalogs import Catalogs, KeyScopes
from lockgate.framework.store import Catalog
from lockgate.framework.store.scan.snapshot_selection import Selection, selection_of
from lockgate.framework.store.schema.schema import Schema

DOCS = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
DEPTH = Option("audit.depth", at_least(1), 3, "depth of the audit")


def test_unknown_settings_are_refused() -> None:
    check_setting_names(["spark.lockgate.governed", "spark.lockgate.lineage.on-drop", "spark.other"])
    with pytest.raises(OptionError, match=r"did you mean 'spark\.lockgate\.governed'"):
        check_setting_names(["spark.lockgate.governned"])


@pytest.fixture
def declare() -> Iterator[Callable[[Any], None]]:
    """Register a plugin that declares options."""
    names: list[str] = []

    def register(answer: Any) -> None:
        @hookimpl
        def lockgate_options() -> Any:
            return answer

        names.append(f"declares {len(names)}")
        plugins().register(types.SimpleNamespace(lockgate_options=lockgate_options), names[-1])

    yield register
    for name in names:
        plugins().unregister(name)


def test_options_of_tables(declare: Callable[[Any], None]) -> None:
    with pytest.raises(OptionError, match=r"unknown option 'audit\.depth'"):
        TableOptions({"audit.depth": "4"})
    declare({"table": [DEPTH]})
    assert TableOptions({"audit.depth": "4"}).get_option(DEPTH) == 4
    assert known_options()["audit.depth"] is DEPTH
    with pytest.raises(OptionError, match=r"'audit\.depth' cannot be '0': expected 1 or more"):
        TableOptions({"audit.depth": "0"})
    with pytest.raises(OptionError, match=r"did you mean 'audit\.depth'"):
        TableOptions({"audit.dept": "4"})


def test_options_of_catalogs(declare: Callable[[Any], None], tmp_path: Path) -> None:
    declare({"catalog": [DEPTH]})
    opened = Catalog(tmp_path / "w", options={"audit.depth": "4"})
    assert opened.options == {"audit.depth": "4"}
    assert opened.file_system_options == {}
    with pytest.raises(OptionError, match="expected 1 or more"):
        Catalog(tmp_path / "w", options={"audit.depth": "0"})
    of_spark = Catalogs(KeyScopes())
    given = {"warehouse": str(tmp_path / "w"), "audit.depth": "5"}
    assert of_spark.open("lake", given, dict).catalog.options == {"audit.depth": "5"}
    with pytest.raises(OptionError, match=r"lake\.audit\.dept.*did you mean 'audit\.depth'"):
        of_spark.open("lake", {**given, "audit.dept": "5"}, dict)


def test_options_of_reads(declare: Callable[[Any], None], tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "w")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    declare({"read": [DEPTH]})
    assert selection_of(table, {"audit.depth": "7"}) == Selection()
    with pytest.raises(OptionError, match="expected 1 or more"):
        selection_of(table, {"AUDIT.DEPTH": "0"})
    with pytest.raises(OptionError, match=r"did you mean 'audit\.depth'"):
        selection_of(table, {"audit.dept": "1"})
    with pytest.raises(OptionError, match="in Spark's scans"):
        selection_of(table, {"scan.snapshot-source": "pin"})


def test_options_of_sessions(declare: Callable[[Any], None]) -> None:
    confs = {"spark.lockgate.audit.depth": "4"}
    with answering_session(lambda key: confs.get(key, "")):
        with pytest.raises(OptionError, match=r"no plugin declares 'audit\.depth' for sessions"):
            session_option(DEPTH)
        check_session_options()
        declare({"session": [DEPTH]})
        assert session_option(DEPTH) == 4
        confs["spark.lockgate.audit.depth"] = "0"
        with pytest.raises(OptionError, match="expected 1 or more"):
            check_session_options()
        confs.clear()
        assert session_option(DEPTH) == DEPTH.default
    assert session_option(DEPTH) == DEPTH.default


@pytest.mark.parametrize(
    "answer",
    [
        [DEPTH],
        {"lake": [DEPTH]},
        {"table": ["audit.depth"]},
        {"table": [DEPTH, Option("audit.depth", str, "", "another one")]},
        {"table": [Option("depth", str, "", "no word of its plugin")]},
        {"table": [Option("file.format", str, "", "one of Lockgate's own")]},
        {"table": [Option("audit.depth", str, "", "")]},
    ],
)
def test_malformed_declarations_are_refused(declare: Callable[[Any], None], answer: Any) -> None:
    declare(answer)
    with pytest.raises(PluginError, match="lockgate_options"):
        plugins().options("table")


def test_two_plugins_with_the_same_option(declare: Callable[[Any], None]) -> None:
    declare({"table": [DEPTH]})
    declare({"table": [Option("audit.depth", str, "", "another one")]})
    with pytest.raises(PluginError, match=r"both add 'table audit\.depth'"):
        known_options()


def test_the_example_of_the_documentation() -> None:
    text = DOCS.read_text().split("### lockgate_options()")[1]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    module = types.ModuleType("audit")
    exec(compile(code[1], str(DOCS), "exec"), vars(module))
    plugins().register(module, "audit")
    try:
        assert TableOptions({"audit.sample": "0.5"}).get_option(module.__dict__["SAMPLE"]) == 0.5
        with pytest.raises(OptionError, match="from 0 to 1"):
            TableOptions({"audit.sample": "2"})
    finally:
        plugins().unregister("audit")
