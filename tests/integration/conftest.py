"""Users under policies, and lineage in an index of its own."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from governed_foreign import Hiding
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


@pytest.fixture
def foreign_table(lake: Lake) -> Iterator[Callable[..., str]]:
    """Tables of Spark's own catalog with people, made by their names."""
    from governed_foreign import COLUMNS
    from governed_world import ROWS

    names: list[str] = []

    def make(name: str, using: str = "parquet") -> str:
        names.append(f"spark_catalog.default.{name}")
        lake.sql(f"CREATE TABLE {names[-1]} ({COLUMNS}) USING {using}")
        lake.sql(f"INSERT INTO {names[-1]} VALUES {ROWS}")
        return names[-1]

    yield make
    for name in names:
        lake.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def hiding(world: World, tmp_path: Path) -> Iterator[Hiding]:
    """A plugin that hides parts of the files below `tmp_path / 'in'`; the policies have no opinion."""
    from governed_foreign import Hiding

    from lockgate.framework.plugins import plugins

    world.authorizer.governs_others = False
    found = Hiding((tmp_path / "in").resolve())
    plugins().register(found, "hiding")
    yield found
    plugins().unregister("hiding")


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


# --- the index database ---


@pytest.fixture
def made() -> Iterator[dict[str, bytes]]:
    """The segments that collectors made, by file."""
    found: dict[str, bytes] = {}

    from lockgate.framework.plugins import hookimpl, plugins

    class Watching:
        def prepare(self, request: Any) -> None:
            found.update(
                {file: each["segment"] for file, each in request.collected.items() if "segment" in each}
            )

        def committed(self, snapshot: object) -> None: ...

        def aborted(self) -> None: ...

    @hookimpl
    def lockgate_commit_participants(table: object) -> list[Any]:
        return [Watching()]

    plugin = types.SimpleNamespace(lockgate_commit_participants=lockgate_commit_participants)
    plugins().register(plugin, "watching")
    yield found
    plugins().unregister("watching")


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that commits have read of files, for each file."""
    from lockgate.framework.store.commit import file_collectors, task_keys

    found: list[list[str]] = []
    made_of = file_collectors.made_of

    def noted(table: Any, message: Any, file: Any, collections: Any) -> Any:
        found.append(collections.columns)
        return made_of(table, message, file, collections)

    monkeypatch.setattr(file_collectors, "made_of", noted)
    monkeypatch.setattr(task_keys, "made_of", noted)
    return found


@pytest.fixture
def by_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come in files of their own, however few there are."""
    from lockgate.framework.store.write import write_session

    monkeypatch.setattr(write_session, "INLINE_BYTES", 0)
