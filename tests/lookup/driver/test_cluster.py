"""Owners kept by executors, which are played here by threads: elections, deaths, hosts that come and go."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from lockgate.errors import LookupCacheError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.spark.bridge.shapes import fault_in, messages_of
from lockgate.framework.store.catalog import Catalog
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.table import Table
from lockgate.lookup.cache.caches import find_caches, remove_cache
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver.cluster import DriverSite, ExecutorOwners, commands_of, owner_event
from lockgate.lookup.driver.owner_sites import Listener, LocalSite, Owners
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.driver.tables import make_spec
from lockgate.lookup.join.worker import answer
from lockgate.lookup.spec.cache_paths import ROOT_VARIABLE

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
FIELDS = [pa.field("n", pa.int64())]
KEY = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})


def rows(n: int, count: int = 50) -> pa.Table:
    return pa.table({"id": range(count), "n": [n] * count}, schema=SCHEMA)


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _close(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        assert process.stdin is not None
        process.stdin.close()


def asked(operation: str, handler: Callable[..., Any], **request: Any) -> Any:
    """Ask as the connector does, where both sides check what is declared."""
    declared = messages_of(handler)
    assert declared is not None
    assert (operation, fault_in(declared.request, request)) == (operation, None)
    answered = json.loads(json.dumps(handler(None, request)))
    assert (operation, fault_in(declared.answer, answered)) == (operation, None)
    return answered


class FakeExecutor:
    """What `io.lockgate.spark.owner.OwnerProcesses` does: runs processes, passes on what they say."""

    def __init__(self, number: str, root: Path | None) -> None:
        self.id = number
        self.root = root
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.alive = True

    def obey(self, command: dict[str, Any]) -> None:
        name = command["name"]
        if command["do"] == "start":
            before = self.processes.pop(name, None)
            if before is not None:
                _close(before)
            threading.Thread(target=self._run, args=(name, command), daemon=True).start()
        elif command["do"] == "stop":
            process = self.processes.pop(name, None)
            if process is not None:
                _close(process)
        else:
            self._say(name, command["message"])

    def _say(self, name: str, message: dict[str, Any]) -> None:
        process = self.processes.get(name)
        if process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()

    def _run(self, name: str, command: dict[str, Any]) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        if self.root is not None:
            environment[ROOT_VARIABLE] = str(self.root)
        while self.alive:
            process = subprocess.Popen(
                command["command"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
            self.processes[name] = process
            self._say(name, command["opening"])
            assert process.stdout is not None
            assert process.stderr is not None
            with process.stdout, process.stderr:
                for line in process.stdout:
                    self._said(name, json.loads(line))
                errors = process.stderr.read().decode().strip().splitlines()
            code = process.wait()
            _close(process)
            if self.processes.get(name) is not process or not self.alive:
                return
            last = errors[-1] if errors else ""
            self._said(name, {"event": "ended", "pid": process.pid, "code": code, "stderr": last})
            time.sleep(0.05)

    def _said(self, name: str, event: dict[str, Any]) -> None:
        if self.alive and event["event"] != "metrics":
            for reply in asked("lookup.event", owner_event, executor=self.id, name=name, event=event):
                self._say(name, reply)

    def kill(self) -> None:
        """End as an executor does that is killed: its processes lose their lease."""
        self.alive = False
        for process in self.processes.values():
            _close(process)
        for process in self.processes.values():
            process.wait(20)


class FakeExecutors:
    """What `io.lockgate.spark.owner.Executors` is to Python."""

    def __init__(self) -> None:
        self.members: dict[str, FakeExecutor] = {}
        self.called: set[str] = set()
        self.hurried: list[bool] = []
        self.everything: list[str] = []
        self.silent: dict[str, int] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._deliver, daemon=True)
        self._thread.start()

    def add(self, number: str, root: Path | None = None) -> FakeExecutor:
        self.members[number] = FakeExecutor(number, root)
        return self.members[number]

    def remove(self, number: str) -> None:
        self.members.pop(number).kill()

    def call(self, number: str) -> bool:
        if number not in self.members:
            return False
        self.called.add(number)
        return True

    def census(self) -> str:
        return json.dumps({number: self.silent.get(number, 0) for number in list(self.members)})

    def hurry(self, run: bool) -> None:
        self.hurried.append(run)

    def close(self) -> None:
        time.sleep(0.05)
        self._closed = True
        self._thread.join()
        for number in list(self.members):
            self.remove(number)

    def _deliver(self) -> None:
        while not self._closed:
            for number, member in list(self.members.items()):
                if number in self.called:
                    self.called.discard(number)
                    for command in asked("lookup.poll", commands_of, executor=number)["commands"]:
                        self.everything.append(json.dumps(command))
                        member.obey(command)
            time.sleep(0.01)


class FakeSite(LocalSite):
    """A cluster without Spark."""

    local = False

    def __init__(self, executors: FakeExecutors, python: str = sys.executable) -> None:
        self._executors = executors
        self._python = python

    def start(self, opening: Any, keys: Any, directory: CacheDirectory, listener: Listener) -> Owners:
        return ExecutorOwners(self._executors, self._python, opening, keys, listener)


class World:
    """A warehouse, executors, and the lookups started on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.executors = FakeExecutors()
        self.catalog = Catalog(str(folder / "warehouse"))
        self.lookups: list[Lookup] = []

    def create(self, **options: str) -> Table:
        schema = Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1", **options})
        self.catalog.create_namespace("db", ignore_if_exists=True)
        return self.catalog.create_table("db.dim", schema)

    def lookup(self, python: str = sys.executable, **options: str) -> Lookup:
        table = self.catalog.load_table("db.dim")
        folder = str(self.folder / "cache")
        given = {"lookup.cache-dir": folder, "lookup.refresh.interval": "50 ms", **options}
        started = Lookup(
            self.catalog, table, make_spec(table, "id", options=given), FakeSite(self.executors, python)
        )
        self.lookups.append(started)
        return started

    def ask(self, lookup: Lookup, snapshot_id: int, root: Path | None = None, wait: float = 60.0) -> set[Any]:
        """What tasks on a host find."""
        path = str((root or self.folder / "cache") / lookup.directory.path.name)
        found = answer(path, snapshot_id, [pa.array(range(50))], FIELDS, False, 1 << 20, wait)
        return {None if line is None else line["n"] for line in found.to_pylist()}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for lookup in made.lookups:
        lookup.close()
    made.executors.close()


def pids(lookup: Lookup) -> list[int | None]:
    return [host.owner_pid for host in lookup.status().hosts]


def test_executors_of_a_host_share_a_cache_and_take_over(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1")
    world.executors.add("2")
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    assert world.ask(lookup, 1) == {1}
    until(lambda: [host.executors for host in lookup.status().hosts] == [("1", "2")])
    (owner,) = pids(lookup)
    assert owner is not None
    os.kill(owner, signal.SIGKILL)
    until(lambda: pids(lookup)[0] not in (None, owner))
    table.append(rows(2))
    assert lookup.wait_for(2, timeout=60) == 2
    (second,) = pids(lookup)
    leader = next(
        number
        for number, member in world.executors.members.items()
        if second in [process.pid for process in member.processes.values()]
    )
    world.executors.remove(leader)
    table.append(rows(3))
    assert lookup.wait_for(3, timeout=60) == 3
    status = lookup.status()
    assert [len(host.executors) for host in status.hosts] == [1]
    assert status.owner_restarts >= 2
    assert world.ask(lookup, lookup.pin("query", 1)) == {3}
    assert (status.last_error, status.failures) == (None, 0)


def test_a_batch_is_given_what_every_host_has(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1))
    roots = [tmp_path / "one", tmp_path / "two"]
    for number, root in enumerate(roots):
        world.executors.add(str(number), root)
    lookup = world.lookup()
    lookup.pin("query", 0)
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [1, 1])
    slow = lookup.status().hosts[1]
    assert slow.owner_pid is not None
    os.kill(slow.owner_pid, signal.SIGSTOP)
    table.append(rows(2))
    until(lambda: lookup.status().hosts[0].served_snapshot == 2)
    assert lookup.pin("query", 1) == 1
    assert lookup.status().served_snapshot == 1
    os.kill(slow.owner_pid, signal.SIGCONT)
    assert lookup.wait_for(2, timeout=60) == 2
    assert lookup.pin("query", 2) == 2
    for root in roots:
        assert world.ask(lookup, 1, root) == {1}
        assert world.ask(lookup, 2, root) == {2}


@pytest.mark.long
def test_a_host_that_is_lost_holds_nothing_up(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1", tmp_path / "one")
    world.executors.add("2", tmp_path / "two")
    lookup = world.lookup()
    lookup.pin("query", 0)
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [1, 1])
    # One is silent, as when its machine is: nobody says that it has gone.
    world.executors.silent["2"] = 60_000
    until(lambda: len(lookup.status().hosts) == 1)
    table.append(rows(2))
    assert lookup.wait_for(2, timeout=60) == 2
    # It comes back, and is brought to where the others are.
    world.executors.silent.clear()
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [2, 2])


@pytest.mark.long
def test_an_executor_that_comes_later_waits_for_what_batches_use(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1", tmp_path / "one")
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    for n in range(2, 6):
        table.append(rows(n))
        lookup.wait_for(n, timeout=60)
    world.executors.add("2", tmp_path / "two")
    assert lookup.pin("query", 1) == 5
    # Its task asks for the snapshot of its batch, also for one that nobody else needs any more.
    assert world.ask(lookup, 5, tmp_path / "two") == {5}
    assert world.ask(lookup, 3, tmp_path / "two") == {3}
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [5, 5])


def test_without_executors_a_batch_is_planned_and_its_tasks_wait(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    assert lookup.status().hosts == ()
    with pytest.raises(LookupCacheError, match=r"no owner builds .* so snapshot 1 never comes"):
        world.ask(lookup, 1, wait=0.2)
    world.executors.add("1")
    assert world.ask(lookup, 1) == {1}
    assert world.executors.hurried == [True]


def test_a_python_without_lockgate_is_told(world: World) -> None:
    world.create().append(rows(1))
    world.executors.add("1")
    lookup = world.lookup(python="/bin/false")
    with pytest.raises(LookupCacheError, match=r"ended 3 times before it was ready \(exit code 1\)"):
        lookup.pin("query", 0)
    assert str(lookup.status().last_error).startswith("1: the owner of the lookup cache of db.dim ended")


def test_the_error_of_a_host_reaches_the_batch_and_the_task(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1, 5000))
    world.executors.add("1")
    lookup = world.lookup(**{"lookup.cache-max-disk-size": "1 kb"})
    with pytest.raises(LookupCacheError, match=r"lookup\.cache-max-disk-size"):
        lookup.pin("query", 0)
    with pytest.raises(LookupCacheError, match=r"lookup\.cache-max-disk-size"):
        world.ask(lookup, 1)
    (host,) = lookup.status().hosts
    assert host.failures >= 1
    assert "lookup.cache-max-disk-size" in str(host.last_error)


def test_keys_come_from_the_driver_and_lie_nowhere(world: World) -> None:
    world.catalog = Catalog(str(world.folder / "warehouse"), keys=KEY)
    table = world.create(**{"orc.encrypt": "pii:n", "orc.mask": "nullify:n"})
    table.append(rows(1))
    world.executors.add("1")
    lookup = world.lookup()
    assert world.ask(lookup, lookup.pin("query", 0)) == {1}
    (pid,) = pids(lookup)
    for secret in ("0123456789abcdef", "MDEyMzQ1Njc4OWFiY2RlZg=="):
        assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        assert not [command for command in world.executors.everything if secret in command]


@pytest.mark.long
def test_a_folder_that_is_removed_is_built_again(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    for number in ("1", "2"):
        world.executors.add(number)
    lookup = world.lookup()
    lookup.pin("query", 0)
    (cache,) = find_caches(lookup.directory.path)
    remove_cache(cache)
    table.append(rows(2))
    until(lambda: lookup.status().served_snapshot == 2)
    assert world.ask(lookup, 2) == {2}
    until(lambda: [host.executors for host in lookup.status().hosts] == [("1", "2")])


@pytest.mark.long
def test_the_next_application_uses_the_cache(world: World) -> None:
    world.create().append(rows(1))
    world.executors.add("1")
    first = world.lookup()
    first.pin("query", 0)
    built = first.status().built_millis
    first.close()
    second = world.lookup()
    assert second.pin("query", 0) == 1
    assert second.status().built_millis == built


@pytest.mark.long
def test_two_applications_share_a_host(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1")
    lookups = [world.lookup(), world.lookup()]
    for lookup in lookups:
        assert lookup.pin("query", 0) == 1
    table.append(rows(2))
    for lookup in lookups:
        assert lookup.wait_for(2, timeout=60) == 2
    lookups[0].close()
    table.append(rows(3))
    assert lookups[1].wait_for(3, timeout=60) == 3


def test_an_application_ends_when_its_context_is_stopped() -> None:
    context = Mock()
    jvm_context = context._jsc.sc.return_value
    jvm_context.isStopped.return_value = False
    site = DriverSite(context)
    assert not site.ended()
    jvm_context.isStopped.return_value = True
    assert site.ended()
    jvm_context.isStopped.side_effect = ConnectionRefusedError
    assert site.ended()
    context._jsc = None
    assert site.ended()
