"""Commands of plugins: the example of the documentation, and plugins that are broken."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.cli.main import main
from lockgate.errors import PluginError
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog
from lockgate.framework.store.schema.schema import Schema

DOCS = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"


@pytest.fixture
def example() -> Iterator[None]:
    """Registers the plugin of the documentation."""
    blocks = re.findall(r"```python\n((?:(?!```).)*?def make_rows.*?)```", DOCS.read_text(), re.DOTALL)
    module = types.ModuleType("example")
    exec(blocks[0], module.__dict__)
    plugins().register(module, "example")
    yield
    plugins().unregister("example")


def broken(answer: object) -> types.SimpleNamespace:
    @hookimpl
    def lockgate_cli_commands() -> object:
        return answer

    return types.SimpleNamespace(lockgate_cli_commands=lockgate_cli_commands)


def test_the_example_of_the_documentation_runs(
    example: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    catalog.create_table("db.t", Schema.from_arrow(rows.schema)).append(rows)
    assert main(["rows", "--warehouse", str(tmp_path), "db.t"]) == 0
    assert capsys.readouterr().out == "3\n"
    assert main(["rows", "--warehouse", str(tmp_path), "db.u"]) == 1
    assert "db.t" in capsys.readouterr().err, "the error of Lockgate is one line with the nearest name"


def help_of(capsys: pytest.CaptureFixture[str], *texts: str) -> str:
    with pytest.raises(SystemExit) as end:
        main([*texts, "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_help_has_a_line_for_each_command(example: None, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(capsys)
    assert re.search(r"^ +rows +count the rows of a table$", text, re.MULTILINE)
    assert re.search(r"^ +policy +test policies of Apache Ranger", text, re.MULTILINE)
    assert re.search(r"^ +lineage +ask where columns come from", text, re.MULTILINE)
    assert "broken" not in text
    assert "Count the rows of a table." in help_of(capsys, "rows")


def fails(_: object) -> None:
    raise ValueError("100 % broken")


def does_nothing(_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("rows", "expected a mapping"),
        ({"keys": does_nothing}, "already has this command"),
        ({"rows": fails}, "ValueError: 100 % broken"),
    ],
)
def test_help_names_a_plugin_that_is_broken(
    answer: object, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plugins().register(broken(answer), "broken")
    try:
        text = help_of(capsys)
    finally:
        plugins().unregister("broken")
    assert "broken plugins:" in text
    assert reason in text
    assert "make, list and roll" in text
    if isinstance(answer, dict):
        assert re.search(r"^ +lineage +ask", text, re.MULTILINE), "one broken plugin hides no other"


def test_help_names_a_plugin_that_cannot_be_imported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise PluginError("plugin 'acme' from distribution 'acme' cannot be imported", "acme")

    monkeypatch.setattr("lockgate.framework.plugins.plugins", fail)
    assert "plugin 'acme' from distribution 'acme' cannot be imported" in help_of(capsys)
    assert main(["rows"]) == 1
    assert "'acme'" in capsys.readouterr().err


def test_a_command_that_sets_no_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    plugins().register(broken({"idle": does_nothing}), "broken")
    try:
        assert main(["idle"]) == 1
    finally:
        plugins().unregister("broken")
    assert "the command 'idle' of a plugin" in capsys.readouterr().err


@pytest.mark.parametrize("answer", ["rows", {"rows": 1}, {"keys": print}, {"rows": fails}])
def test_a_broken_plugin_stops_no_command_of_ours(
    answer: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugins().register(broken(answer), "broken")
    try:
        Catalog(str(tmp_path)).create_namespace("db")
        assert main(["tables", "--warehouse", str(tmp_path)]) == 0
        assert main(["rows"]) == 1
        assert "plugin" in capsys.readouterr().err
    finally:
        plugins().unregister("broken")
