"""The page of a check, also in a browser without a window."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lockgate.framework.governance.points.point import Point
from lockgate.framework.governance.statement_checks import Check, PointAnswer

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this host")
ODD = "<script>document.title='run'</script>&\"'"


def example() -> Check:
    """A check of a statement with one point of each kind, and with texts that are markup."""
    name, salary = Point("db", "people", "name"), Point("db", "people", "salary")
    rows = Point("db", "people", ODD, {"dept": frozenset({ODD})})
    need = "select on column db.people.salary in service lake"
    answers = (
        PointAnswer(name, ("policy 7",)),
        PointAnswer(rows, ("policy 7", "policy 9"), ("rows", f"values of column {ODD}")),
        PointAnswer(salary, missing=(need,)),
    )
    statement = f"SELECT name, salary FROM people WHERE dept = '{ODD}'"
    other = "insert on table db.copy in service lake"
    points = tuple(each.point for each in answers)
    ask = ("ask by CALL sys.request_access(table => 'db.people')",)
    return Check("ann", points, (need, other), ask, {}, answers, (other,), statement)


def test_the_page_has_everything_and_loads_nothing() -> None:
    text = example().page()
    assert not re.findall(r"(?:src|href)=|<script|url\(|@import", text)
    for part in ("may not", "policy 7, policy 9", "column name of db.people", "insert on table db.copy"):
        assert part in text
    assert "3 points, 1 without a grant" in text
    assert "Where to apply" in text
    assert ODD not in text
    allowed = Check("ann", sql="SELECT 1")
    assert "may</span> run" in allowed.page()
    assert "It reads no table." in allowed.page()
    assert "Where to apply" not in allowed.page()
    assert ODD not in repr(example()), "the statement may hold values of encrypted columns"


def browser(path: Path, *arguments: str) -> str:
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    done = subprocess.run(
        [*command, *arguments, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


# Told in the title, by a script of the test's own.
MEASURE = """<script>addEventListener('load', () => {
  const cells = [...document.querySelectorAll('tbody tr')].map(row => row.children[2].innerText);
  document.title = JSON.stringify([cells, document.querySelectorAll('th').length,
    document.documentElement.scrollWidth <= innerWidth, document.querySelector('pre').innerText]);
})</script>"""


@needs_browser
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_in_a_browser(tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    path.write_text(example().page().replace("</html>", f"{MEASURE}</html>"), encoding="utf-8")
    shown = browser(path, "--dump-dom", f"--window-size={width},900")
    title = re.search(r"<title>(.*?)</title>", shown, re.DOTALL)
    assert title is not None
    found = title[1].replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    assert '"everything"' in found
    assert '"nothing"' in found
    assert "some of its rows and masks of its values" in found
    assert ",4,true," in found, "four columns, and no scrolling to the side"
    assert "SELECT name, salary FROM people WHERE dept = '<script>" in found, "markup is shown as text"
