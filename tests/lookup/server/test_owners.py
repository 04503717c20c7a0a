"""Owners of caches come and go: killed, shared by drivers, at the end of a driver; nothing is lost."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from lookup_world import World, ask, ask_folder, rows, until

from lockgate.errors import (
    CorruptFileError,
    LookupCacheError,
)
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver import lookup_registry, service
from lockgate.lookup.driver.cache_hosts import LocalCacheHost
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.server.cache_server import CacheServer
from lockgate.lookup.server.version_wait import is_ready


@pytest.mark.long
def test_killing_the_owner_again_and_again_loses_nothing(world: World) -> None:
    table = world.create()
    table.append(rows(range(2000), 0))
    lookup = world.lookup()
    for n in range(1, 6):
        table.append(rows(range(2000), n))
        pid = lookup.status().owner_pid
        if pid is not None:
            time.sleep(0.03 * n)
            # The one that was killed before may still be in the status.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        snapshot = lookup.pin("query", n)
        values = set(ask(lookup, snapshot, list(range(2000))))
        assert values == {snapshot - 1}, "a batch saw parts of two snapshots"
    latest = lookup.wait_for(6, timeout=30)
    assert set(ask(lookup, latest, list(range(2000)))) == {5}
    assert lookup.status().owner_restarts >= 1


def test_a_killed_owner_is_replaced(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    lookup.pin("query", 0)
    pid = lookup.status().owner_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: lookup.status().owner_pid not in (None, pid))
    table.append(rows(range(10), 2))
    assert lookup.wait_for(2, timeout=20) == 2


def test_the_owner_ends_with_its_driver(world: World) -> None:
    world.create().append(rows(range(10), 1))
    lookup = world.lookup()
    lookup.pin("query", 0)
    pid = lookup.status().owner_pid
    assert pid is not None
    lookup.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


DRIVER = """
import sys, time
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.spec.lookup_spec import cache_id
from lockgate.lookup.driver.lookup_tables import make_spec

catalog = Catalog(sys.argv[1])
table = catalog.load_table("db.dim")
lookup = Lookup(catalog, table, make_spec(table, "id", options={"lookup.cache-dir": sys.argv[2]}))
lookup.pin("query", 0)
print(lookup.status().owner_pid, flush=True)
time.sleep(600)
"""


@pytest.mark.long
def test_the_owner_ends_when_its_driver_is_killed(world: World) -> None:
    world.create().append(rows(range(10), 1))
    folders = [str(world.folder / "warehouse"), str(world.folder / "cache")]
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, *folders], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    owner = int(driver.stdout.readline())
    driver.kill()
    driver.wait()
    driver.stdout.close()

    def ended() -> bool:
        status = Path(f"/proc/{owner}/stat")
        # Nobody waits for an orphan in some containers: a zombie has ended too.
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"

    until(ended)
    assert world.lookup().pin("query", 0) == 1


@pytest.mark.long
def test_an_idle_lookup_ends_by_itself_and_starts_again(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    options = {"lookup.cache-dir": str(world.folder / "cache"), "lookup.refresh.interval": "20 ms"}
    spec = make_spec(table, "id", options={**options, "lookup.cache-file-retention": "1 s"})
    try:
        first = lookup_registry.lookup_for(world.catalog, table, spec)
        assert first.pin(None, None) == 1
        until(lambda: first.status().owner_pid is None)
        second = lookup_registry.lookup_for(world.catalog, table, spec)
        assert second is not first
        assert second.pin(None, None) == 1
    finally:
        lookup_registry.close_all()


def test_a_lookup_of_batch_queries_ends_soon_after_the_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup, kept = world.lookup(), world.lookup(**{"lookup.cache": "partial"})
    running = [True, True]
    monkeypatch.setattr(service, "_BATCH_SECONDS", 0.0)
    for each in (lookup, kept):
        each.note_use(lambda: running[0])
        each.note_use(lambda: running[1])
        assert each.pin(None, None) == 1
        assert not each._is_idle()
        running[0] = False
        assert not each._is_idle()
    pid = lookup.status().owner_pid
    assert pid is not None
    running[1] = False
    until(lambda: lookup.closed)
    until(lambda: not psutil.pid_exists(pid))
    assert ask(lookup, 1, [3]) == [1], "its cache stays"
    assert not kept._is_idle(), "its rows are in the owner's memory"

    again = world.lookup()
    again.note_use(lambda: False)
    again.note_use(None)
    assert again.pin(None, None) == 1
    assert not again._is_idle(), "a stream uses it, too"


def test_a_cache_that_is_removed_while_it_runs_is_built_again(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    shutil.rmtree(lookup.directory.path.rename(world.folder / "aside"))
    assert lookup.pin("query", 1) == 1
    assert ask(lookup, 1, [3]) == [1]
    table.append(rows(range(10), 2))
    assert lookup.wait_for(2, timeout=20) == 2
    assert ask(lookup, lookup.pin("query", 2), [3]) == [2]


def test_a_state_built_into_a_removed_cache_is_never_reported(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    spec = make_spec(table, "id", options={"lookup.cache-dir": str(world.folder / "cache")})
    directory = CacheDirectory.create(world.folder / "cache", "db.dim")
    commands: queue.Queue[dict[str, Any]] = queue.Queue()
    complete = []

    def hear(message: dict[str, Any]) -> None:
        if message["event"] != "built":
            return
        complete.append(ask_folder(directory.path, 1, [3]))
        if len(complete) == 1:  # while the next build is on its way
            shutil.rmtree(directory.path.rename(world.folder / "aside"))
            directory.hold("driver", [1])
        else:
            commands.put({"op": "close", "name": "driver"})

    for _ in range(2):
        commands.put({"op": "build", "snapshot": 1, "serve": True})
    CacheServer(table, spec, directory, hear, commands).run()
    assert complete == [[1], [1]]


def test_a_state_without_a_layout_is_not_there(world: World) -> None:
    """A folder that was removed can be made again by a driver, and its old owner may yet put a state in."""
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    assert is_ready(lookup.directory, 1)
    (lookup.directory.path / "LAYOUT.json").unlink()
    assert not is_ready(lookup.directory, 1)


@pytest.mark.long
def test_two_drivers_share_a_cache_and_the_second_takes_over(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    first, second = world.lookup(), world.lookup()
    assert first.directory.path == second.directory.path
    assert (first.pin("a", 0), second.pin("b", 0)) == (1, 1)
    table.append(rows(range(10), 2))
    assert second.wait_for(2, timeout=20) == 2
    first.close()
    table.append(rows(range(10), 3))
    assert second.wait_for(3, timeout=20) == 3
    assert ask(second, second.pin("b", 1), [1]) == [3]


def test_a_failure_of_the_writer_reaches_the_other_driver(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    first = world.lookup(**{"lookup.refresh.interval": "1 h"})
    first.pin("query", 0)
    second = world.lookup(**{"lookup.refresh.interval": "1 h"})
    assert second.pin("query", 0) == 1
    table.append(rows(range(10), 2))
    for file in Path(table.location).glob("bucket-0/*"):
        file.write_bytes(b"broken")
    with pytest.raises(CorruptFileError, match="bucket-0"):
        second.wait_for(None, timeout=20)


def test_an_owner_that_cannot_start_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create().append(rows(range(10), 1))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    lookup = world.lookup()
    with pytest.raises(LookupCacheError, match=r"ended 3 times before it was ready \(exit code 1\)"):
        lookup.pin("query", 0)


class EndingCacheHost(LocalCacheHost):
    """An application that can end."""

    over = False

    def ended(self) -> bool:
        return self.over


def test_a_lookup_ends_with_the_application_that_asked(world: World) -> None:
    world.create().append(rows(range(3), 0))
    cache_host = EndingCacheHost()
    lookup = world.lookup(cache_host)
    assert lookup.pin("query", 0) == 1
    owner = lookup.status().owner_pid
    assert owner is not None
    assert Path(f"/proc/{owner}").exists()
    assert lookup.touch()
    cache_host.over = True
    assert not lookup.touch()
    until(lambda: lookup.closed and not Path(f"/proc/{owner}").exists())
