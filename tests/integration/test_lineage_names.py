"""Names with dots, spaces, quotes and other signs, from the statement to traces, pages and exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockgate.cli.main import main
from lockgate.errors import PlaintextWarning
from lockgate.framework.lineage.model.names import column_text, quoted
from lockgate.framework.lineage.pending_statements import wait_for_records
from lockgate.framework.lineage.warehouse_lineage import address_of, flush_at
from lockgate.lineage import declare

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = [
    pytest.mark.usefixtures("own_index"),
    pytest.mark.filterwarnings("ignore::lockgate.errors.LineageWarning"),
]

# Each is a column; the target's have an `x` in front.
ODD = ("a.b", "/slash", "*", "two words", "tick`ed", 'quo"ted', "it's", "<b>&#", "back\\slash", "ü@7", "x.")


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
        texts = (column_text([name]), column_text(["x" + name]))
        assert (edge.source.table, edge.source.column, edge.target.column) == (source, *texts)
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
        shown = column_text([name])
        assert json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c") in text
    assert main(["lineage", "export", *base, "--format", "openlineage"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    fields = {
        column: [each["field"] for each in found["inputFields"]]
        for event in events
        for output in event["outputs"]
        if output["name"] == target
        for column, found in output["facets"].get("columnLineage", {}).get("fields", {}).items()
    }
    assert fields == {column_text(["x" + name]): [column_text([name])] for name in ODD}
    assert main(["lineage", "export", *base, "--format", "atlas"]) == 0
    entities = capsys.readouterr().out
    assert [name for name in ODD if json.dumps(quoted("x" + name))[1:-1] not in entities] == []


def test_an_odd_column_keeps_its_history_when_renamed(lake: Lake, odd: tuple[str, str, str]) -> None:
    source, target, _ = odd
    lake.sql(f"ALTER TABLE lake.{target} RENAME COLUMN {_sql('xa.b')} TO {_sql('new. name')}")
    found = lake.lineage(f"{target}.{_sql('new. name')}").found
    assert [each.source.qualified for each in found] == [f"{source}.`a.b`"]


def test_a_column_is_not_the_member_that_it_is_named_like(lake: Lake, table: Callable[[str], str]) -> None:
    """Column `a.b`, and member b of column a: each has its own lineage, also when it is declared."""
    source, target, declared = table("both"), table("made"), table("declared")
    lake.sql(f"CREATE TABLE {source} (a STRUCT<b: STRING, `c.d`: STRING>, `a.b` STRING)")
    columns = "a.b AS member, `a.b` AS own, a.`c.d` AS deep"
    lake.sql(f"CREATE TABLE {target} AS SELECT {columns} FROM {source}")
    name = source.removeprefix("lake.")
    for column, origin in {"member": "a.b", "own": "`a.b`", "deep": "a.`c.d`"}.items():
        [edge] = lake.lineage(f"{target}.{column}").found
        assert edge.source.qualified == f"{name}.{origin}"
        [forward] = lake.lineage(f"{source}.{origin}", "forward").found
        assert forward.target.column == column
    rows = lake.spark.createDataFrame([("x", "y")], "`o.wn` STRING, m STRING")
    given = declare(rows, {"o.wn": [f"{source}.`a.b`"], "m": [f"{source}.a.b", "file:/in#s.`t.u`"]})
    given.writeTo(declared).create()
    found = {
        column: {edge.source.qualified for edge in lake.lineage(f"{declared}.{column}", depth=1).found}
        for column in ("`o.wn`", "m")
    }
    assert found == {"`o.wn`": {f"{name}.`a.b`"}, "m": {f"{name}.a.b", "file:/in#s.`t.u`"}}


def test_encryption_of_a_member_is_not_that_of_a_column(lake: Lake, table: Callable[[str], str]) -> None:
    source, target = table("keyed"), table("made")
    lake.sql(
        f"CREATE TABLE {source} (a STRUCT<b: STRING>, `a.c` STRING, `/slash` STRING) "
        "TBLPROPERTIES ('orc.encrypt' = 'pii:a,`/slash`')"
    )
    lake.sql(f"CREATE TABLE {target} (m STRING, c STRING, `/s` STRING)")
    with pytest.warns(PlaintextWarning):
        lake.sql(f"INSERT INTO {target} SELECT a.b, `a.c`, `/slash` FROM {source}")
    found = {row.target for row in lake.sql("CALL lake.sys.plaintext(key => 'pii')").collect()}
    made = target.removeprefix("lake.")
    assert {f"{made}.m", f"{made}.`/s`"} <= found
    assert f"{made}.c" not in found
    again = f"CREATE TABLE {table('again')} AS SELECT `/s` AS `/t`, m, c FROM {target}"
    lake.spark.conf.set("spark.lockgate.lineage.on-plaintext", "refuse")
    try:
        with pytest.raises(Exception, match=r"/t \(from .*made\./s, a copy of .*keyed\.`/slash`\); m \(from"):
            lake.sql(again)
    finally:
        lake.spark.conf.unset("spark.lockgate.lineage.on-plaintext")
