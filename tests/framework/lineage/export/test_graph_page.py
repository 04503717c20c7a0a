"""The page in a headless browser: drawing, keys, search and buttons."""

# ruff: noqa: E501 - the script in the page is easier to read when its lines are not broken

from __future__ import annotations

import html
import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lockgate.framework.lineage.answer import Edge
from lockgate.framework.lineage.export.graph_page import page
from lockgate.framework.lineage.export.neighbourhood import near
from lockgate.framework.lineage.questions.vertices import Vertex

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this host")
ODD = '<b>"a`</script>\u2028'
IDENTITY, FILTER = 1, 256


def vertex(table: int, column: str | None = None) -> Vertex:
    return Vertex(table, "", f"db{table % 3}.t{table}", "table", column, 1, 1, "ann", is_dropped=False)


def edge(number: int, source: int, target: int, column: str = "a", kinds: int = IDENTITY) -> Edge:
    run = {"how": f"INSERT {ODD}", "who": {"user": "ann"}, "why": {"reason": "audit"}, "written": 7}
    process = {"id": number, "kind": "INSERT", "count": 2, "failed": 0, "last": 1, "opaque": (), "run": run}
    ends = vertex(source, column), vertex(target, column if kinds == IDENTITY else None)
    return Edge(1, "back", *ends, kinds, process)


def chain(length: int) -> list[Edge]:
    """A table made of the one before it, by an odd column, and by a filter."""
    found = []
    for number in range(1, length):
        found += [edge(number, number - 1, number), edge(number, number - 1, number, ODD)]
        found.append(edge(number, number - 1, number, "b", FILTER))
    return found


def shown(text: str, tmp_path: Path, script: str = "", anchor: str = "") -> tuple[str, Any]:
    """The page after a script has run in it, and what that returned."""
    path = tmp_path / "page.html"
    told = "document.body.append(Object.assign(document.createElement('pre'), {id: 'told', textContent: JSON.stringify(value)}))"
    run = f"<script>addEventListener('load', () => setTimeout(async () => {{ const value = await (async () => {{ {script} }})(); {told} }}, 300))</script>"
    path.write_text(text.replace("</html>", f"{run}</html>"), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, "--dump-dom", path.as_uri() + anchor],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    return done.stdout, json.loads(html.unescape(found[1])) if script else None


ACTIONS = """
const key = (element, name) => element.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const buttons = () => [...document.querySelectorAll("#world [role=button]")], found = {};
const button = name => buttons().find(b => b.getAttribute("aria-label") === name);
const note = () => at("note").textContent, boxes = () => document.querySelectorAll("#world .box").length;
found.first = [note(), boxes(), document.querySelectorAll(".edge").length, document.querySelectorAll(".edge.indirect").length];
found.focusable = buttons().every(b => b.tabIndex === 0 && b.getAttribute("aria-label"));
draw(); found.again = [note(), boxes()];
key(button("a"), "Enter"); found.up = document.querySelectorAll(".edge.up").length; found.down = document.querySelectorAll(".edge.down").length;
found.about = at("about").innerText;
at("indirect").checked = false; at("indirect").onchange(); found.direct = document.querySelectorAll(".edge.indirect").length;
at("find").value = "db0.t9.a"; at("find").onchange(); found.searched = at("about").querySelector("h3").textContent;
at("find").value = "nobody"; at("find").onchange(); found.unknown = note();
at("find").onfocus(); found.names = at("names").children.length;
at("table").onclick(); found.rows = at("rows").querySelectorAll("tr").length; found.headers = at("rows").querySelectorAll("th").length;
found.only = document.querySelector("main").hidden; at("table").onclick(); found.both = document.querySelector("main").hidden || !at("rows").hidden;
found.legend = at("legend").hidden; document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })); found.unpicked = [pick, at("legend").hidden];
found.svg = picture();
found.png = await new Promise(done => { save = (url, name) => done(name + " " + url.slice(0, 22)); at("png").onclick() });
at("databases").onclick(); found.databases = [note(), at("databases").getAttribute("aria-pressed")];
found.width = [document.documentElement.scrollWidth, innerWidth];
return found;
"""


@needs_browser
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    text = page("db1.t4", chain(12), [vertex(4, "a"), vertex(4, ODD)])
    assert not re.findall(r'(?:src|href)="', text)
    _, found = shown(text, tmp_path, ACTIONS)
    # Three hops either way: tables 1 to 7, with three edges between each two.
    assert found["first"][1:] == [7, 18, 6]
    assert found["first"][0].startswith("7 of 12 tables, 18 edges")
    # The first picture has only what lies near; the whole draws the same.
    assert (found["again"][0].split(",")[0], found["again"][1]) == ("7 of 12 tables", 7)
    assert found["focusable"]
    assert (found["up"] > 0, found["down"] > 0) == (True, True)
    for text in ("INSERT", ODD.strip("\u2028"), "user ann", "reason audit", "written snapshot 7"):
        assert text in found["about"]
    assert found["direct"] == 0
    assert found["searched"] == "db0.t9.a"
    assert found["unknown"] == "nothing is called nobody"
    assert found["names"] == 12
    assert (found["rows"], found["headers"]) == (1 + 33, 4)
    # The table takes the place of the picture, and Escape picks no column any more.
    assert (found["only"], found["both"]) == (True, False)
    assert (found["legend"], found["unpicked"]) == (False, [None, True])
    tree = ElementTree.fromstring(found["svg"])
    assert "var(--" not in "".join(tree.itertext())
    assert found["png"] == "lineage.png data:image/png;base64,"
    assert found["databases"] == [found["databases"][0], "true"]
    assert found["databases"][0].startswith("3 databases")
    assert found["width"][0] <= found["width"][1]


@needs_browser
@pytest.mark.slow
def test_the_view_of_databases_is_an_address(tmp_path: Path) -> None:
    dom, _ = shown(page("x", chain(12), [vertex(4)]), tmp_path, anchor="#databases")
    assert dom.count('class="box"') == 3
    assert "3 databases, 3 of 3 connections" in dom


@needs_browser
@pytest.mark.slow
def test_a_page_without_edges_says_so(tmp_path: Path) -> None:
    assert "nothing was recorded" in shown(page("x", [], []), tmp_path)[0]


def reached(edges: list[tuple[int, int, int]], near_end: int, hops: int) -> set[int]:
    found = {0}
    for _ in range(hops):
        found |= {edge[2 - near_end] for edge in edges if edge[near_end] in found}
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_neighbourhood_of_a_table(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice((1, 8, 60, 400))
    edges = [
        (chance.randrange(count), 0, chance.randrange(count)) for _ in range(chance.choice((0, 50, 900)))
    ]
    found = near(edges, count)
    expected = reached(edges, 2, found.hops) | reached(edges, 0, found.hops)
    assert found.tables[0] == 0
    assert len(set(found.tables)) == len(found.tables) <= 150
    assert set(found.tables) <= expected
    assert len(found.tables) + found.beyond == len(expected)
    assert found.hops == 1 or len(expected) <= 25


def test_the_neighbourhood_without_tables_is_empty() -> None:
    assert near([], 0).tables == ()
