"""Executors of a cluster, played by threads: they run owners, report, and die."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.spark.messages.shapes import fault_in, messages_of
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.framework.store.tables.table import Table
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver.cache_hosts import CacheServers, Listener, LocalCacheHost
from lockgate.lookup.driver.cluster import ExecutorCacheServers, cache_server_event, commands_of
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer
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
    """Plays `io.lockgate.spark.lookup.owner.CacheServerProcesses`: runs processes, passes messages on."""

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
            for reply in asked("lookup.event", cache_server_event, executor=self.id, name=name, event=event):
                self._say(name, reply)

    def kill(self) -> None:
        """End as an executor does that is killed: its processes lose their lease."""
        self.alive = False
        for process in self.processes.values():
            _close(process)
        for process in self.processes.values():
            process.wait(20)


class FakeExecutors:
    """What `io.lockgate.spark.lookup.owner.Executors` is to Python."""

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


class FakeCacheHost(LocalCacheHost):
    """A cluster without Spark."""

    local = False

    def __init__(self, executors: FakeExecutors, python: str = sys.executable) -> None:
        self._executors = executors
        self._python = python

    def start(self, opening: Any, keys: Any, directory: CacheDirectory, listener: Listener) -> CacheServers:
        return ExecutorCacheServers(self._executors, self._python, opening, keys, listener)


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
            self.catalog, table, make_spec(table, "id", options=given), FakeCacheHost(self.executors, python)
        )
        self.lookups.append(started)
        return started

    def ask(self, lookup: Lookup, snapshot_id: int, root: Path | None = None, wait: float = 60.0) -> set[Any]:
        """What tasks on a host find."""
        path = str((root or self.folder / "cache") / lookup.directory.path.name)
        wanted = WantedState(path, snapshot_id, 1 << 20, wait)
        found = answer(wanted, [pa.array(range(50))], AnswerForm(FIELDS, many=False))
        return {None if line is None else line["n"] for line in found.to_pylist()}
