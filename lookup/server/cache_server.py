"""The owner of a cache: a process of its own that builds the states a driver asks for.

Run as `python -m lockgate.lookup.server.cache_server` by a driver, or by `standby` as the child of an
executor; speaks `pipe`'s messages on its standard streams. Several applications on a host may use one
cache: each has an owner, the lock lets one of them write, the others wait for its results and take over
when it dies. It can be killed at any moment.

`messages` has what both sides say.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from lockgate.errors import LockgateError
from lockgate.lookup.cache.backends import Storage
from lockgate.lookup.cache.builder import check_mark, fingerprint
from lockgate.lookup.cache.cache_key import CacheKey
from lockgate.lookup.cache.caches import note_status
from lockgate.lookup.cache.directory import CacheDirectory, sweep_caches
from lockgate.lookup.cache.version_info import mark_of
from lockgate.lookup.server.key_server import KeyServer
from lockgate.lookup.server.partial_builder import make_builder
from lockgate.lookup.server.pipe import PipeKeyProvider, Sender
from lockgate.lookup.server.standby import private_stdout, read_lines
from lockgate.lookup.spec.failures import error_to_json
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_spec import LookupSpec, cached_layout
from lockgate.lookup.spec.planned_schema import planned_table, with_nulls
from lockgate.lookup.spec.status import gauge_name

if TYPE_CHECKING:
    from lockgate.framework.store import Table
    from lockgate.lookup.cache.builder import CacheBuilder
    from lockgate.lookup.cache.version_info import CacheVersionInfo
    from lockgate.lookup.server.partial_builder import PartialBuilder
    from lockgate.lookup.server.server_messages import (
        BuildCommand,
        BuiltEvent,
        CacheCommand,
        CloseCommand,
        Event,
        HoldCommand,
        MetricsEvent,
        OpenCache,
    )
    from lockgate.lookup.server.standby import Turn

_Command: TypeAlias = "BuildCommand | HoldCommand | CloseCommand"

# How often a waiting owner tries the lock, and the holder looks for what others want.
_POLL_SECONDS = 0.1
_PROGRESS_SECONDS = 0.5
_NICENESS = 5


class CacheServer:
    """Runs the builds of one cache, in this process's main thread."""

    def __init__(
        self,
        table: Table,
        spec: LookupSpec,
        directory: CacheDirectory,
        send: Callable[[Event | MetricsEvent], None],
        commands: queue.Queue[_Command],
        turn: Turn | None = None,
    ) -> None:
        self._table = table
        self._turn = turn
        self._spec = spec
        self._send = send
        self._commands = commands
        self._directory = directory
        self._lock: IO[bytes] | None = None
        self._builder: CacheBuilder | PartialBuilder | None = None
        self._pending: list[BuildCommand] = []
        self._revived = False
        self._reported = 0.0
        self._key_server: KeyServer | None = None

    @classmethod
    def open(
        cls,
        content: OpenCache,
        keys: PipeKeyProvider,
        send: Callable[[Event | MetricsEvent], None],
        commands: queue.Queue[_Command],
        turn: Turn | None = None,
    ) -> CacheServer:
        """Open the table that the driver named."""
        from lockgate.framework.store import Catalog

        spec = LookupSpec.from_json(content["spec"])
        catalog = Catalog(
            content["warehouse"],
            keys=keys if content["has_keys"] else None,
            options=content["options"] or None,
        )
        assert content["directory"] is not None  # a standby has found it
        directory = CacheDirectory(Path(content["directory"]))
        newest = catalog.load_table(spec.identifier)
        table = planned_table(newest, content["table_id"], content["schema_id"], spec)
        return cls(with_nulls(table), spec, directory, send, commands, turn)

    def run(self) -> None:
        """Work until told to close, or the process is ended from outside."""
        try:
            self._work()
        finally:
            self._close_builder()
            self._close_key_server()
            if self._lock is not None:
                self._lock.close()

    def _work(self) -> None:
        self._elect()
        options = lookup_options(self._table.options, self._spec.options)
        sweep_caches(self._directory.path.parent, options.unused_retention)
        self._serve_key()
        self._send({"event": "ready", "pid": os.getpid(), "writer": self._lock is not None})
        while self._turn is None or self._turn.lasts():
            if not self._take_commands():
                return
            if self._was_removed():
                self._start_afresh()
            if self._lock is None and self._elect():
                self._send({"event": "ready", "pid": os.getpid(), "writer": True})
            if self._lock is None:
                self._wait_for_the_writer()
                continue
            try:
                self._write()
            except FileNotFoundError:
                if not self._was_removed():  # else the next round begins in a new folder
                    raise

    def _take_commands(self) -> bool:
        # Waits a moment for commands; False: there is no more to do.
        with contextlib.suppress(queue.Empty):
            command = self._commands.get(timeout=_POLL_SECONDS)
            while True:
                if command["op"] == "close":
                    self._directory.release(command["name"])
                    return False
                if command["op"] == "hold":
                    self._directory.hold(command["name"], command["snapshots"])
                    if command["status"] is not None:
                        note_status(self._directory, command["name"], command["status"])
                else:
                    self._pending.append(command)
                command = self._commands.get_nowait()
        return True

    def _serve_key(self) -> None:
        self._close_key_server()
        if cached_layout(self._table, self._spec).keys:
            key = CacheKey(self._directory, self._table.keys)
            self._key_server = self._directory.in_folder(lambda: KeyServer(self._directory, key.secret))

    def _close_key_server(self) -> None:
        if self._key_server is not None:
            self._key_server.close()
            self._key_server = None

    def _elect(self) -> bool:
        self._lock = self._directory.try_lock()
        return self._lock is not None

    def _was_removed(self) -> bool:
        return self._lock is not None and not self._directory.is_locked_by(self._lock)

    def _start_afresh(self) -> None:
        # Somebody removed the folder, so open files in it have no use any more.
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._close_builder()
        self._directory.ensure()
        self._serve_key()
        self._send({"event": "emptied"})

    def _close_builder(self) -> None:
        if self._builder is not None:
            self._builder.close()
            self._builder = None

    # --- with the lock -----------------------------------------------------------------------------

    def _write(self) -> None:
        self._answer_of_states()
        while self._pending and self._lock is not None:
            command = self._pending.pop(0)
            self._build(command["snapshot"], command["serve"])
        for snapshot_id, mark in self._directory.wanted():
            if self._lock is None:  # lost by now: the new holder sees the wishes too
                return
            self._build_for_others(snapshot_id, mark)

    def _answer_of_states(self) -> None:
        # States of a partial cache that an owner before published are answered by this one.
        if self._builder is not None or self._pending or self._revived:
            return
        self._revived = True
        current = self._directory.current()
        info = None if current is None else self._directory.version(current)
        if info is not None and info.storage == Storage.PARTIAL:
            self._build(info.snapshot_id, serve=False)

    def _build(self, snapshot_id: int, serve: bool) -> Exception | None:
        try:
            if self._builder is not None and not self._directory.has_layout(self._builder.layout):
                self._close_builder()  # damaged: the next builder starts with an empty cache
            if self._builder is None:
                self._builder = make_builder(self._table, self._spec, self._directory, self._progress)
            info = self._builder.build(snapshot_id, serve=serve)
        except Exception as error:  # whatever went wrong, the driver must hear of it
            if self._was_removed():
                return self._build_afresh(snapshot_id, serve)
            self._failed(snapshot_id, error)
            return error
        if self._was_removed():
            # A driver may have made the folder again before the state was published. Half a state is no
            # cache.
            return self._build_afresh(snapshot_id, serve)
        self._send(_built(info))
        self._show(info)
        removed = self._directory.sweep({snapshot_id})
        if removed:
            self._send({"event": "removed", "snapshots": removed})
        return None

    def _build_afresh(self, snapshot_id: int, serve: bool) -> Exception | None:
        self._start_afresh()
        if self._elect():
            return self._build(snapshot_id, serve)
        self._pending.append({"op": "build", "snapshot": snapshot_id, "serve": serve})
        return None  # another owner took the new folder, and builds it

    def _show(self, info: CacheVersionInfo) -> None:
        if self._turn is not None:
            values: dict[str, float] = {
                "snapshot": info.snapshot_id,
                "cacheRows": info.rows,
                "cacheBytes": info.bytes,
                "buildMillis": int(info.build_seconds * 1000),
            }
            shown: MetricsEvent = {"event": "metrics", "lookup": gauge_name(self._spec), "values": values}
            self._send(shown)

    def _failed(self, snapshot_id: int, error: Exception) -> None:
        if not isinstance(error, LockgateError):
            import traceback

            traceback.print_exc()
        # A half-used database handle may hold what failed: the next build opens it afresh.
        self._close_builder()
        with contextlib.suppress(OSError, LockgateError):
            self._directory.ensure()  # somebody may have removed parts of it
        self._send({"event": "failed", "snapshot": snapshot_id, "error": error_to_json(error)})

    def _build_for_others(self, snapshot_id: int, mark: int) -> None:
        error = self._replaced(snapshot_id, mark) or self._build(snapshot_id, serve=False)
        if error is None:
            self._directory.unwant(snapshot_id, mark)
        else:
            self._directory.refuse(snapshot_id, error_to_json(error), mark)

    def _replaced(self, snapshot_id: int, mark: int) -> Exception | None:
        # Only readers of the old snapshot get the error: the present one of the number can be built.
        try:
            check_mark(self._table, snapshot_id, mark)
        except Exception as error:
            return error
        return None

    def _progress(self, rows: int, expected: int) -> None:
        now = time.monotonic()
        if now - self._reported > _PROGRESS_SECONDS:
            self._reported = now
            self._send({"event": "progress", "rows": rows, "expected": expected})

    # --- without it --------------------------------------------------------------------------------

    def _wait_for_the_writer(self) -> None:
        for command in list(self._pending):
            snapshot_id = command["snapshot"]
            try:
                wanted = fingerprint(self._table.snapshot(snapshot_id))
            except LockgateError as error:
                self._pending.remove(command)
                self._failed(snapshot_id, error)
                continue
            info = self._directory.version(snapshot_id)
            if info is not None and info.fingerprint == wanted:
                self._pending.remove(command)
                self._send(_built(info))
                continue
            refusal = self._directory.take_refusal(snapshot_id, mark_of(wanted))
            if refusal is None:
                self._directory.want(snapshot_id, mark_of(wanted))
            else:
                self._pending.remove(command)
                self._send({"event": "failed", "snapshot": snapshot_id, "error": refusal})


def _built(info: CacheVersionInfo) -> BuiltEvent:
    return {"event": "built", "snapshot": info.snapshot_id, "info": info.to_json()}


def _distribute(
    inbox: queue.Queue[CacheCommand], keys: PipeKeyProvider, commands: queue.Queue[_Command]
) -> None:
    while True:
        message = inbox.get()
        if message["op"] == "answer" or message["op"] == "refuse":  # mypy narrows by no tuple
            keys.answer(message)
        else:
            commands.put(message)


def main() -> None:
    """Serve the driver on the standard streams."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the driver, which decides
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    stdout = private_stdout()
    inbox: queue.Queue[CacheCommand] = queue.Queue()
    opening: OpenCache = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=read_lines, args=(sys.stdin.buffer, inbox), daemon=True).start()
    serve(opening, inbox, stdout)


def serve(
    opening: OpenCache, inbox: queue.Queue[CacheCommand], stdout: IO[bytes], turn: Turn | None = None
) -> None:
    """Own the cache that `opening` names until told to close, or the turn is over."""
    sender = Sender(stdout)
    warnings.showwarning = lambda message, category, *rest: sender.send(
        {"event": "warning", "category": category.__name__, "message": str(message)}
    )
    keys = PipeKeyProvider(sender.send)
    commands: queue.Queue[_Command] = queue.Queue()
    threading.Thread(target=_distribute, args=(inbox, keys, commands), daemon=True).start()
    try:
        owner = CacheServer.open(opening, keys, sender.send, commands, turn)
    except Exception as error:  # the driver must hear of it, whatever it is
        sender.send({"event": "failed", "snapshot": None, "error": error_to_json(error)})
        sys.exit(1)
    owner.run()


if __name__ == "__main__":
    main()
