"""The page on the architecture shows the house as it is."""

from __future__ import annotations

from floors_picture import PICTURE, draw
from house import FLOORS, ROOMS, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_picture_is_what_the_imports_say() -> None:
    assert PICTURE.read_text() == draw(), "run: ./dev docs"


def test_the_page_names_every_part_and_room() -> None:
    parts = {part.removeprefix("framework.") for floor in FLOORS for part in floor} - {"", "version"}
    assert {part for part in parts if f"`{part}" not in PAGE} == set()
    for part in ("framework.orc", "framework.store", "lookup"):
        assert {room for room in ROOMS[part] if f"`{room}/`" not in PAGE} == set(), part
