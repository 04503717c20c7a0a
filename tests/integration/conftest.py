"""Users under policies, and lineage in an index of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from governed_world import World

    from lockgate import Lake


# --- governance ---


@pytest.fixture(scope="module")
def people(lake: Lake, shared_table: Callable[[str], str]) -> str:
    """A table of people, for users with different rights."""
    from governed_world import make_people

    return make_people(lake, shared_table("people"))


@pytest.fixture
def world(lake: Lake, tmp_path: Path) -> Iterator[World]:
    """Sessions of users and their policies, none at first."""
    from governed_world import governed

    with governed(lake, tmp_path / "policies.json") as found:
        yield found


@pytest.fixture
def limited(world: World, people: str) -> World:
    """A world in which ann sees some rows of `people`, and masks of some columns."""
    from governed_world import limit

    return limit(world, people)


# --- lineage ---


@pytest.fixture
def own_index(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the index of lineage among the files of this run."""
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path_factory.getbasetemp() / "lineage"))


@pytest.fixture
def all_statements(lake: Lake) -> Iterator[None]:
    """Record queries too, not only statements that write."""
    lake.spark.conf.set("spark.lockgate.lineage", "all")
    yield
    lake.spark.conf.unset("spark.lockgate.lineage")
