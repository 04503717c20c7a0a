"""Names with dots, spaces, quotes and other signs, from the statement to traces, pages and exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockgate.cli.main import main
from lockgate.framework.lineage.model.names import quoted
from lockgate.framework.lineage.pending_statements import wait_for_records
from lockgate.framework.lineage.warehouse import address_of, flush_at

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = [
    pytest.mark.usefixtures("own_index"),
    pytest.mark.filterwarnings("ignore::lockgate.errors.LineageWarning"),
]

# Each is a column; the target's have an `x` in front.
ODD = ("a.b", "two words", "tick`ed", 'quo"ted', "it's", "<b>&#", "back\\slash", "ü@7", "x.")


@pytest.fixture
def odd(lake: Lake, table: Callable[[str], str], tmp_path: Path) -> tuple[str, str, str]:
    """A table with odd columns, a table of theirs through an odd view, and a file below an odd path."""
    source, target, out = table("od-d").removeprefix("lake."), table("made"), tmp_path / "an #odd.path"
    written = f"lake.{source.partition('.')[0]}.`od-d`"
    lake.sql(f"CREATE TABLE {written} ({', '.join(f'{_sql(name)} STRING' for name in ODD)})")
    lake.sql(f"CREATE OR REPLACE TEMPORARY VIEW `odd. view` AS SELECT * FROM {written}")
    columns = ", ".join(f"{_sql(name)} AS {_sql('x' + name)}" for name in ODD)
    lake.sql(f"CREATE TABLE {target} AS SELECT {columns} FROM `odd. view`")
    lake.table(target).write.json(str(out))
    return source, target.removeprefix("lake."), f"file:{out}"


def _sql(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def test_odd_names_are_traced(lake: Lake, odd: tuple[str, str, str]) -> None:
    source, target, out = odd
    for name in ODD:
        copy = _sql("x" + name)
        [edge] = lake.lineage(f"{target}.{copy}").found
        assert (edge.source.table, edge.source.column, edge.target.column) == (source, name, "x" + name)
        # What an answer calls a column can be asked for.
        forward = lake.lineage(edge.source.qualified, "forward").found
        made = {
            f"spark_catalog/`odd. view`.{quoted(name)}": 1,
            f"{target}.{quoted('x' + name)}": 1,
            f"{out}#{quoted('x' + name)}": 2,
        }
        assert {each.target.qualified for each in forward} == made.keys()
        for asked, steps in made.items():
            back = lake.lineage(asked).found
            assert (len(back), back[-1].source.qualified) == (steps, edge.source.qualified)


def test_odd_names_in_commands_pages_and_exports(
    lake: Lake, odd: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, _ = odd
    wait_for_records(lake.spark)
    flush_at(address_of(lake.catalog))
    base = ["--warehouse", str(lake.catalog.warehouse)]
    for name in ODD:
        assert main(["lineage", "trace", *base, f"{target}.{_sql('x' + name)}", "--format", "json"]) == 0
        [line] = capsys.readouterr().out.splitlines()
        assert json.loads(line)["source"] == f"{source}.{quoted(name)}"
    page = tmp_path / "page.html"
    assert main(["lineage", "page", *base, target, "--direction", "both", "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    for name in ODD:
        assert json.dumps(name, ensure_ascii=False).replace("<", "\\u003c") in text
    assert main(["lineage", "export", *base, "--format", "openlineage"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    fields = {
        column: [each["field"] for each in found["inputFields"]]
        for event in events
        for output in event["outputs"]
        if output["name"] == target
        for column, found in output["facets"].get("columnLineage", {}).get("fields", {}).items()
    }
    assert fields == {"x" + name: [name] for name in ODD}
    assert main(["lineage", "export", *base, "--format", "atlas"]) == 0
    entities = capsys.readouterr().out
    assert [name for name in ODD if json.dumps(quoted("x" + name))[1:-1] not in entities] == []


def test_an_odd_column_keeps_its_history_when_renamed(lake: Lake, odd: tuple[str, str, str]) -> None:
    source, target, _ = odd
    lake.sql(f"ALTER TABLE lake.{target} RENAME COLUMN {_sql('xa.b')} TO {_sql('new. name')}")
    found = lake.lineage(f"{target}.{_sql('new. name')}").found
    assert [each.source.qualified for each in found] == [f"{source}.`a.b`"]
