"""A refresh that cannot be done: nothing moves, the disk budget is kept, nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.framework.store.tables.table import Table
from lockgate.lookup.cache.directory import disk_usage
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
BUDGET = 1 << 20


def rows(count: int, text: str) -> pa.Table:
    return pa.table({"id": range(count), "text": [text] * count}, schema=SCHEMA)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


class World:
    """A dimension, and the lookups started on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.catalog = Catalog(str(folder / "warehouse"))
        self.catalog.create_namespace("db")
        schema = Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1"})
        self.table: Table = self.catalog.create_table("db.dim", schema)
        self.lookups: list[Lookup] = []

    def lookup(self, **given: str) -> Lookup:
        options = {"lookup.cache-dir": str(self.cache), "lookup.refresh.interval": "50 ms", **given}
        self.lookups.append(Lookup(self.catalog, self.table, make_spec(self.table, "id", options=options)))
        return self.lookups[-1]

    def ask(self, lookup: Lookup, snapshot_id: int) -> set[str | None]:
        form = AnswerForm([pa.field("text", pa.string())], many=False)
        found = answer(
            WantedState(str(lookup.directory.path), snapshot_id, 1 << 20), [pa.array(range(20))], form
        )
        return {None if line is None else line["text"][:1] for line in found.to_pylist()}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for lookup in made.lookups:
        lookup.close()


@pytest.mark.parametrize("kind", ["full", pytest.param("memory", marks=pytest.mark.long)])
def test_a_refresh_beyond_the_disk_budget_fails_before_it_writes(world: World, kind: str) -> None:
    world.table.append(rows(20, "a" * 100))
    lookup = world.lookup(**{"lookup.cache": kind, "lookup.cache-max-disk-size": f"{BUDGET} b"})
    assert lookup.pin("query", 0) == 1
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            most[0] = max(most[0], disk_usage(world.cache))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        world.table.append(rows(4000, "b" * 1000))
        until(lambda: lookup.status().failures >= 2)
    finally:
        over.set()
        watcher.join()
    status = lookup.status()
    assert "lookup.cache-max-disk-size allows" in str(status.last_error)
    assert 0 < most[0] <= BUDGET
    assert (status.served_snapshot, lookup.pin("query", 1)) == (1, 1)
    assert world.ask(lookup, 1) == {"a"}
    assert lookup.directory.versions() == [1]
    assert lookup.directory.current() == 1
    assert list(lookup.directory.versions_path.glob("building-*")) == []
    # With a larger budget the next lookup goes on from there, by the changes alone.
    lookup.close()
    larger = world.lookup(**{"lookup.cache": kind, "lookup.cache-max-disk-size": "100 mb"})
    assert larger.wait_for(2, timeout=30) == 2
    assert world.ask(larger, 2) == {"b"}
    assert not larger.status().full_load
    assert larger.status().last_error is None


def owner_of(lookup: Lookup) -> int:
    """The owner's process, once there is one: a killed one is replaced a little later."""
    found: list[int | None] = []

    def is_there() -> bool:
        found.append(lookup.status().owner_pid)
        return found[-1] is not None

    until(is_there)
    assert found[-1] is not None
    return found[-1]


@pytest.mark.long
def test_the_owner_is_nice_and_is_killed_while_it_loads(world: World) -> None:
    world.table.append(rows(60_000, "c" * 50))
    lookup = world.lookup()
    killed = 0
    # At moments spread over the load: before it, while it reads, sorts, writes, and while it is put in place.
    for pause in (0.0, 0.15, 0.3, 0.45, 0.6, 0.8):
        pid = owner_of(lookup)
        time.sleep(pause)
        if lookup.status().served_snapshot is None:
            killed += 1
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: lookup.status().owner_pid != pid)  # type: ignore[misc]  # mypy knows no defaults
    assert killed >= 1
    assert lookup.wait_for(1, timeout=60) == 1
    # An owner that has just begun has not said yet that it is nice.
    nice = min(os.getpriority(os.PRIO_PROCESS, 0) + 5, 19)  # nobody is nicer
    until(lambda: os.getpriority(os.PRIO_PROCESS, owner_of(lookup)) == nice)
    assert world.ask(lookup, 1) == {"c"}
    assert (lookup.status().rows, lookup.status().failures) == (60_000, 0)
    # What the killed ones left is gone once another state is built.
    world.table.append(rows(20, "d"))
    assert lookup.wait_for(2, timeout=60) == 2
    assert world.ask(lookup, 2) == {"d"}
    until(lambda: list(lookup.directory.versions_path.glob("building-*")) == [])
    folder = lookup.directory.path
    assert len(list(folder.glob("primary-*"))) == 1
    assert [
        path for path in folder.rglob("*") if path.suffix in (".sst", ".spill") and path.parent == folder
    ] == []


def test_a_cache_that_is_removed_while_it_loads_is_loaded_again(world: World) -> None:
    for _ in range(4):
        world.table.append(rows(100_000, "x" * 40))
    lookup = world.lookup()
    removed = threading.Event()

    def remove() -> None:
        until(lambda: bool(list(lookup.directory.path.glob("primary-*/*"))))
        shutil.rmtree(lookup.directory.path.rename(world.folder / "aside"))
        removed.set()

    remover = threading.Thread(target=remove)
    remover.start()
    assert lookup.pin("query", 0) == 4
    remover.join()
    assert removed.is_set()
    assert world.ask(lookup, 4) == {"x"}
    assert lookup.status().last_error is None
