"""The example of a hunt: a stream writes events into an indexed table, and each search finds all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lockgate import Lake

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture(autouse=True)
def examples_importable() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def test_a_hunt_while_events_come(lake: Lake, database: str, tmp_path: Path) -> None:
    from hunt.hunt import HUNTS, run

    sightings = run(lake, tmp_path, table=f"{database}.hunted", count=8, size=40, every=4)
    assert [each.hunt for each in sightings] == [*HUNTS, *HUNTS]
    for each in sightings:
        assert each.found == each.truth, each
    first, last = sightings[:3], sightings[3:]
    assert [each.found for each in first] == [1, 1, 1]
    assert [each.found for each in last] == [1, 2, 2]
    # Each batch is a file or two; those without a sighting are skipped.
    assert all(each.read == each.found and each.skipped >= 6 for each in last), last
