"""The page on the architecture shows the house as it is."""

from __future__ import annotations

import re

import pytest
from floors_picture import PICTURE, draw
from house import ROOT, floors, imports, part_of, rooms

CONNECTOR = ROOT / "framework/spark/java/io/lockgate/spark"
PARTS = sorted({part_of(module) for module in imports().modules} - {"", "framework"})
PAGE = (ROOT / "docs" / "architecture.md").read_text()
# Files and folders in backquotes; `J/` stands for the connector's folder.
NAMED = re.compile(r"`((?:J|docs|framework|lookup|procedures|pushdown|src|tests)/[\w./-]*)`")


def test_the_picture_is_what_the_imports_say() -> None:
    assert PICTURE.read_text() == draw(), "run: ./dev docs"


def test_every_part_is_on_a_floor() -> None:
    assert sorted(part for floor in floors() for part in floor) == PARTS


def test_the_page_names_every_part() -> None:
    parts = {part.removeprefix("framework.") for part in PARTS} - {"version"}
    assert {part for part in parts if f"`{part}" not in PAGE} == set()


@pytest.mark.parametrize("part", [part for part in PARTS if rooms(part)])
def test_the_row_of_a_part_names_its_rooms(part: str) -> None:
    name = part.removeprefix("framework.")
    # A room with rooms of its own, as `ranger` has, names them in the same row.
    below = {
        inner for room in rooms(part) for inner in rooms(f"{part}.{room}") if len(rooms(f"{part}.{room}")) > 2
    }
    row = next(holds for names, holds in rows("part") if f"`{name}`" in names)
    assert {room for room in {*rooms(part), *below} if f"`{room}/`" not in row} == set()


def test_the_page_names_every_package_of_the_connector() -> None:
    named = [package for names, _ in rows("package") for package in re.findall(r"`(\w+)`", names)]
    assert sorted(named) == sorted(path.name for path in CONNECTOR.iterdir() if path.is_dir())


@pytest.mark.parametrize("page", ["architecture.md", "how-to-change.md"])
def test_files_that_a_page_names_are_there(page: str) -> None:
    named = NAMED.findall((ROOT / "docs" / page).read_text())
    paths = {name: CONNECTOR / name[2:] if name.startswith("J/") else ROOT / name for name in named}
    assert len(paths) > 50
    assert [name for name, path in paths.items() if not path.exists()] == []


def test_each_life_is_ten_steps() -> None:
    lives = PAGE.split("\n## Lives\n")[1].split("\n## ")[0].split("\n### ")[1:]
    steps = {life.splitlines()[0]: re.findall(r"^(\d+)\. ", life, re.MULTILINE) for life in lives}
    assert list(steps) == [f"The life of a {what}" for what in ("query", "filter", "commit", "lookup")] + [
        "The life of a governed statement"
    ]
    assert all(numbers == [str(number) for number in range(1, 11)] for numbers in steps.values())


def rows(first: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this head."""
    table = PAGE.split(f"\n| {first} |")[1].split("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
