"""Holes tried on tables of every kind, as statements and as DataFrames, by two users in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from effort import examples
from governed_hole_cases import HOLES
from governed_holes import (
    KINDS,
    ROWS,
    TABLES,
    USERS,
    Hole,
    limits,
    make_folder,
    names,
    outcome,
    preparations,
    statements,
    wrong,
)
from governed_world import World

if TYPE_CHECKING:
    from lockgate import Lake


@pytest.fixture(scope="module")
def files(lake: Lake, lake_folder: Path) -> Iterator[str]:
    """The folder of one of the tables, which hold the same rows."""
    for statement in preparations(TABLES):
        lake.sql(statement)
    make_folder(lake_folder / "folders" / "holes")
    yield str(lake_folder / "spark-warehouse" / "holes")
    lake.sql(f"DROP TABLE {TABLES['files']}")
    lake.catalog.drop_namespace("holes", cascade=True)


def tried(world: World, files: str, hole: Hole, kind: str, users: Sequence[str] = USERS) -> list[str]:
    """Return what is wrong, for each user in turn."""
    found = []
    for user in users:
        table = TABLES[kind]
        texts = statements(hole, names(table, user, files))
        rows = outcome(world.session(user), texts, frame_of=table if hole.frame else None)
        if text := wrong(hole, user, rows):
            found.append(f"{kind}, {user}: {hole.text} {text[:400]}")
    return found


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_hole_shows_what_is_hidden(world: World, files: str, kind: str) -> None:
    """One user tries a hole on tables of two kinds, the other on the rest; with `--slow` both try all."""
    world.put(*limits(TABLES))
    wrongs = []
    for number, hole in enumerate(HOLES):
        turn = (number + KINDS.index(kind)) % len(USERS)
        users = USERS if examples(2) > 2 else USERS[turn : turn + 1]
        wrongs += tried(world, files, hole, kind, users) if kind in hole.kinds else []
    assert not wrongs, "\n".join(wrongs)
    stored = [tuple(map(str, row)) for row in ROWS]
    assert [tuple(map(str, row)) for row in world.sql(f"SELECT * FROM {TABLES[kind]}", "root")] == stored


@pytest.mark.parametrize("hole", HOLES[::12], ids=lambda hole: hole.text)
def test_some_holes(world: World, files: str, hole: Hole) -> None:
    world.put(*limits(TABLES))
    kinds = [kind for kind in KINDS if kind in hole.kinds]
    assert tried(world, files, hole, kinds[HOLES.index(hole) % len(kinds)]) == []
