"""Exports of lineage: graphs as text, the page, events, entities, the command line."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from lineage_edges import everything

from lockgate import procedures
from lockgate.cli.main import main
from lockgate.errors import InputError
from lockgate.framework.lineage import Dataset, EdgeKind, Record, Run, Shape
from lockgate.framework.lineage.answer import Lineage, answer
from lockgate.framework.lineage.export import atlas, openlineage
from lockgate.framework.lineage.export.openlineage_import import record_of
from lockgate.framework.lineage.model.edge_kinds import parse_kinds
from lockgate.framework.lineage.readable import Readable
from lockgate.framework.lineage.warehouse_lineage import WarehouseLineage, address_of, lineage_of
from lockgate.framework.store import Catalog

ODD = '<b>"a`</script>\u2028'
SHAPES = [
    Shape(
        "INSERT",
        Dataset.table("hr", "a"),
        (Dataset("file:/in", "file"),),
        (("x", 0, "x", 1), (ODD, 0, "y", 2)),
    ),
    Shape(
        "MERGE",
        Dataset.table("hr", "b"),
        (Dataset.table("hr", "a"),),
        (
            ("x", 0, "x", 1),
            ("n", 0, "x", int(EdgeKind.MASKED_AGGREGATION)),
            ("c", 0, ODD, int(EdgeKind.CONDITIONAL)),
        ),
        rows=((0, "x", int(EdgeKind.JOIN | EdgeKind.FILTER)),),
    ),
]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("hr")
    journal = lineage_of(catalog).journal
    for number, shape in enumerate(SHAPES):
        failed = int(number == 1)
        journal.add(
            Record(shape, Run(1000, 2000, how="SELECT ?", who={"user": "ann"}, written=4, failed=failed))
        )
    journal.flush()
    return catalog


@pytest.fixture
def lineage(catalog: Catalog) -> WarehouseLineage:
    return lineage_of(catalog)


def traced(lineage: WarehouseLineage, name: str = "hr.b", **options: Any) -> Lineage:
    with lineage.reading() as database:
        return answer(database, name, Readable(lineage.catalog), catalog="lake", **options)


def test_edges_are_a_table(lineage: WarehouseLineage) -> None:
    edges = traced(lineage, "hr.b.x").edges.to_pylist()
    assert [(each["depth"], each["source"], each["target"], each["kinds"]) for each in edges] == [
        (1, "hr.a.x", "hr.b.x", ["identity"]),
        (2, "file:/in#x", "hr.a.x", ["identity"]),
    ]
    assert edges[0]["process"] == "MERGE"
    assert edges[0]["last_run"].isoformat() == "1970-01-01T00:00:02+00:00"


def test_malformed_queries(lineage: WarehouseLineage) -> None:
    for wrong in ({"direction": "up"}, {"depth": 0}, {"kinds": "drect"}):
        with pytest.raises(InputError):
            traced(lineage, **wrong)


def test_graphs_quote_names(lineage: WarehouseLineage) -> None:
    found = traced(lineage, kinds="all")
    dot = found.to_dot()
    assert dot.count(" -> ") == len(found)
    assert '\\"a``' in dot
    assert '"' not in re.sub(r'\["[^"]*"\]|\|"[^"]*"\|', "", found.to_mermaid())
    tree = ElementTree.fromstring(found.to_graphml())
    names = [each.text for each in tree.iter("{http://graphml.graphdrawing.org/xmlns}data")]
    assert any(name and "</script>" in name for name in names)
    assert "</script>" not in found._repr_html_()


def test_other_tools_read_the_graphs(lineage: WarehouseLineage, tmp_path: Path) -> None:
    import networkx

    found = traced(lineage, kinds="all")
    expected = sorted((each["source"], each["target"], ", ".join(each["kinds"])) for each in rows_of(found))
    (tmp_path / "g.graphml").write_text(found.to_graphml(), encoding="utf-8")
    graph = networkx.read_graphml(tmp_path / "g.graphml")
    assert graph.is_directed()
    names = networkx.get_node_attributes(graph, "name")
    edges = [(names[a], names[b], kinds) for a, b, kinds in graph.edges(data="kinds")]
    assert sorted(edges) == expected
    string = r'"((?:[^"\\]|\\.)*)"'
    line = re.compile(rf"  {string} -> {string} \[label={string}\];")
    head, order, *lines, end, last = found.to_dot().split("\n")
    assert (head, order, end, last) == ("digraph lineage {", "  rankdir=LR;", "}", "")
    quoted = [each.groups() for each in map(line.fullmatch, lines) if each]
    assert sorted(tuple(re.sub(r"\\(.)", r"\1", one) for one in each) for each in quoted) == expected
    nodes = dict(re.findall(r'^  (n\d+)\["(.*)"\]$', found.to_mermaid(), re.MULTILINE))
    arrows = re.findall(r'^  (n\d+) -->\|"(.*)"\| (n\d+)$', found.to_mermaid(), re.MULTILINE)

    def plain(text: str) -> str:
        return text.replace("#quot;", '"').replace("#35;", "#")

    assert sorted((plain(nodes[a]), plain(nodes[b]), plain(kinds)) for a, kinds, b in arrows) == expected


def rows_of(found: Lineage) -> list[dict[str, Any]]:
    return [each.row() for each in found.found]


def test_notebooks_show_a_table(lineage: WarehouseLineage) -> None:
    found = traced(lineage, kinds="all")
    table = ElementTree.fromstring(found._repr_html_())
    cells = [[cell.text for cell in row] for row in table.iter("tr")]
    assert cells[0] == ["depth", "source", "target", "kinds", "process"]
    assert [row[1:4] for row in cells[1:]] == [
        [each["source"], each["target"], ", ".join(each["kinds"])] for each in rows_of(found)
    ]


def test_the_page_is_one_file(lineage: WarehouseLineage, tmp_path: Path) -> None:
    text = traced(lineage, kinds="all").to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == text
    assert text.count("</script>") == 4
    assert not re.findall(r'(?:src|href)="', text)
    data = json.loads(re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0])
    assert [each["name"] for each in data["tables"]] == ["hr.b", "hr.a", "file:/in"]
    assert ODD in data["tables"][1]["columns"]
    told = json.loads(re.findall(r'id="processes">(.*?)</script>', text, re.DOTALL)[0])
    assert told[0]["how"] == "SELECT ?"
    # Six numbers an edge, with columns that are there.
    assert len(data["edges"]) == 6 * 6
    for at in range(0, len(data["edges"]), 6):
        for table, column in (data["edges"][at : at + 2], data["edges"][at + 2 : at + 4]):
            assert -1 <= column < len(data["tables"][table]["columns"])


def test_events_of_openlineage(catalog: Catalog, lineage: WarehouseLineage) -> None:
    with lineage.reading() as database:
        found = list(openlineage.events(database, address_of(catalog), everything(database)))
    assert [each["eventType"] for each in found] == ["START", "COMPLETE", "START", "FAIL"]
    for event in found:
        uuid.UUID(event["run"]["runId"])
        assert event["eventTime"].endswith("Z")
        assert {"producer", "schemaURL", "job", "run", "inputs", "outputs"} <= set(event)
    merge = found[3]["outputs"][0]
    assert (merge["namespace"], merge["name"]) == (address_of(catalog), "hr.b")
    columns = merge["facets"]["columnLineage"]
    [count] = columns["fields"]["n"]["inputFields"]
    assert count["transformations"] == [
        {"type": "DIRECT", "subtype": "AGGREGATION", "description": "", "masking": True}
    ]
    assert [each["subtype"] for each in columns["dataset"][0]["transformations"]] == ["FILTER", "JOIN"]
    assert merge["facets"]["version"]["datasetVersion"] == "4"
    assert found[3]["run"]["facets"]["errorMessage"]["message"] == "failed"


def test_exported_events_are_imported(catalog: Catalog, lineage: WarehouseLineage) -> None:
    address = address_of(catalog)
    with lineage.reading() as database:
        found = [
            record_of(event, address) for event in openlineage.events(database, address, everything(database))
        ]
    shapes = [each.shape for each in found if each is not None]
    for shape, original in zip(shapes, SHAPES, strict=True):
        assert (shape.target, shape.inputs) == (original.target, original.inputs)
        assert sorted(shape.edges) == sorted(original.edges)
        assert shape.rows == original.rows


def test_atlas_entities_contain_all_their_references(catalog: Catalog, lineage: WarehouseLineage) -> None:
    with lineage.reading() as database:
        message = atlas.entities(database, address_of(catalog), everything(database))
    known = {each.get("guid") for each in message["entities"]} | set(message["referredEntities"])
    types = {each["name"]: each for each in atlas.ATLAS_TYPES["entityDefs"]}
    own = {"qualifiedName", "name", "inputs", "outputs"}
    for each in [*message["entities"], *message["referredEntities"].values()]:
        attributes = {one["name"] for one in types[each["typeName"]]["attributeDefs"]}
        assert set(each["attributes"]) <= attributes | own
        values = [
            value
            for found in each["attributes"].values()
            for value in (found if isinstance(found, list) else [found])
        ]
        assert all(value["guid"] in known for value in values if isinstance(value, dict))
    kinds = {
        each["attributes"]["dependencyType"] for each in message["entities"] if "column" in each["typeName"]
    }
    assert kinds == {"SIMPLE", "EXPRESSION"}


def test_the_command_line(
    catalog: Catalog, lineage: WarehouseLineage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        code = main(["lineage", *arguments, "--warehouse", catalog.warehouse])
        out, error = capsys.readouterr()
        assert code == 0, error
        return out

    assert "hr.b.x <- hr.a.x (MERGE: identity)" in run("trace", "hr.b.x")
    assert json.loads(run("trace", "hr.b.x", "--format", "json").splitlines()[0])["source"] == "hr.a.x"
    assert run("trace", "hr.b.x", "--format", "mermaid").startswith("flowchart LR")
    assert "hr.b.x" in run("impact", "hr.a.x")
    assert "key" in run("plaintext")
    run("page", "hr.b", "--output", str(tmp_path / "p.html"))
    assert (tmp_path / "p.html").exists()
    run("export", "--format", "openlineage", "--output", str(tmp_path / "events"))
    assert "referredEntities" in run("export", "--format", "atlas")
    assert "2 runs imported" in run("import", str(tmp_path / "events"))
    assert "IMPORTED" in run("trace", "hr.b.x")
    assert "lockgate_process" in run("export", "--format", "atlas-types")
    (tmp_path / "wrong").write_text('{"eventType": "COMPLETE"}\n')
    assert main(["lineage", "import", str(tmp_path / "wrong"), "--warehouse", catalog.warehouse]) == 1
    assert "wrong:1" in capsys.readouterr().err
    assert main(["lineage", "trace", "hr.b", "--warehouse", str(tmp_path / "nowhere")]) == 1
    assert "there is no warehouse at" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", ["trace", "impact", "plaintext", "page", "export", "import"])
def test_the_help_of_a_command_describes_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["lineage", command, "--help"])
    assert ended.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"usage: lockgate lineage {command}" in out
    # A sentence, and a text for each option.
    assert re.search(r"\] (?:NAME|FILE)? ?[A-Z][a-z]+ [^.]+\. ", out) or re.search(
        r" [A-Z][a-z]+ [^.]+\. ", out
    )
    assert not re.search(r"(--[a-z]+(?: [A-Z]+)?) (?=--|$)", out.partition("options:")[2])
    for kinds in re.findall(r"a list such as ([a-z,]+)", out):
        parse_kinds(kinds)


def test_procedures_without_spark(catalog: Catalog, lineage: WarehouseLineage) -> None:
    context = procedures.ProcedureContext(catalog)
    rows = procedures.call(context, "impact", table="lake.hr.a", column="x").to_dicts()
    assert {(each["reader"], each["kinds"]) for each in rows} >= {
        ("hr.b.x", "identity"),
        ("hr.b", "filter,join"),
    }
    assert procedures.call(context, "lineage", "hr.b.x", depth=1).to_dicts()[0]["source"] == "hr.a.x"
    planned = procedures.call(context, "compact_lineage", dry_run=True).to_dicts()[0]
    assert planned["processes"] in (0, 2)
    assert procedures.call(context, "plaintext").rows == ()


def test_procedures_are_documented() -> None:
    from lockgate.framework.lineage.lineage_procedures import PROCEDURES

    text = (Path(__file__).parents[4] / "docs" / "lineage.md").read_text()
    assert all(f"CALL lake.sys.{each.name}(" in text for each in PROCEDURES)
