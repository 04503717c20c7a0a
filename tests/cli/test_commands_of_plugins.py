"""Commands of plugins: the example of the documentation, and plugins that are broken."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.cli.main import main
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


def test_help_names_the_command(example: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "rows" in capsys.readouterr().out


@pytest.mark.parametrize("answer", ["rows", {"rows": 1}, {"keys": print}])
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
