"""The driver's control of an owner: starting it, receiving its messages, restarting it when it dies."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from lockgate.framework.keys import KeyProvider
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.server.pipe import Sender, answer_about_keys
from lockgate.lookup.server.server_messages import (
    CacheCommand,
    CacheEvent,
    Event,
    LeadingEvent,
    OpenCache,
    StartedEvent,
)

_log = logging.getLogger("lockgate.lookup")

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 5.0
# An owner that lived this long was well: the next one starts without a pause.
_WELL_AFTER_SECONDS = 10.0
_LARGEST_LOG_BYTES = 1 << 20


def cache_server_environment() -> dict[str, str]:
    """Return the environment of an owner: our modules, and an Arrow that gives memory back at once.

    While a table is loaded, Arrow would else keep for later what numpy needs now: a tenth of the peak.
    """
    modules = os.pathsep.join(path for path in sys.path if path)
    return {"MIMALLOC_PURGE_DELAY": "0", **os.environ, "PYTHONPATH": modules}


class CacheServerProcess:
    """One owner process, replaced whenever it ends until `close`, but for the time that it `rest`s.

    `opening` is the first message to each new one; `on_event` gets its messages, and `started` after a
    restart, so that unfinished work can be requested again.
    """

    def __init__(
        self,
        opening: OpenCache,
        keys: KeyProvider | None,
        log: Path,
        on_event: Callable[[Event | StartedEvent], None],
    ) -> None:
        self._opening = opening
        self._keys = keys
        self._log_path = log
        self._on_event = on_event
        self._closed = threading.Event()
        self._awake = threading.Event()
        self._awake.set()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._sender: Sender | None = None
        self.restarts = -1
        self._thread = threading.Thread(target=self._keep_running, name="lockgate-owner", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The process, None while there is none."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def send(self, message: OpenCache | CacheCommand) -> bool:
        """Send the owner a message; False if there is none at the moment."""
        sender = self._sender
        if sender is None:
            return False
        try:
            sender.send(message)
        except (OSError, ValueError):
            return False
        return True

    def rest(self) -> None:
        """End the owner and wait for it; `wake` starts another."""
        self._awake.clear()
        self._end()

    def wake(self) -> None:
        """Start an owner again that rests."""
        self._awake.set()

    def close(self) -> None:
        """End the owner and wait for it."""
        self._closed.set()
        self._awake.set()
        self._end()
        if self._thread is not threading.current_thread():
            self._thread.join(5)

    def _end(self) -> None:
        with self._lock:
            if self._sender is not None:
                self._close_quietly(self._sender)
            process = self._process
        if process is not None:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @staticmethod
    def _close_quietly(sender: Sender) -> None:
        with contextlib.suppress(OSError):  # it died first
            sender.close()

    def _keep_running(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._closed.is_set():
            self._awake.wait()
            started = time.monotonic()
            try:
                self._run_once()
            except OSError as error:  # no process, no disk for the log
                _log.warning("cannot start the owner of a lookup cache: %s", error)
            if time.monotonic() - started > _WELL_AFTER_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            if self._closed.wait(pause):
                return
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _run_once(self) -> None:
        with _open_log(self._log_path) as log, self._lock:
            if self._is_at_rest():
                return
            # -P: somebody else's module may lie in the current folder.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lockgate.lookup.server.cache_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=cache_server_environment(),
                start_new_session=True,
            )
            assert process.stdin is not None
            self._process, self._sender = process, Sender(process.stdin)
        self.restarts += 1
        self.send(self._opening)
        self._on_event({"event": "started", "pid": process.pid})
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._receive(line)
        with self._lock:
            if self._sender is not None:
                self._close_quietly(self._sender)
            self._sender = None
        code = process.wait()
        if not self._is_at_rest():
            _log.warning(
                "the owner of a lookup cache (pid %d) ended with %d; starting another", process.pid, code
            )
            # Its errors go to the log, so there is no last line to pass on.
            self._on_event({"event": "ended", "pid": process.pid, "code": code, "stderr": None})

    def _is_at_rest(self) -> bool:
        return self._closed.is_set() or not self._awake.is_set()

    def _receive(self, line: bytes) -> None:
        try:
            message: Event = json.loads(line)
        except ValueError:  # it was killed in the middle of a line
            return
        if message["event"] == "ask":
            if self._keys is not None:
                self.send(answer_about_keys(self._keys, message))
        else:
            self._on_event(message)


class LocalCacheServers:
    """The cache server of a driver that keeps its caches itself: one link, one host (see `CacheServers`)."""

    LINK = "driver"

    def __init__(
        self,
        opening: OpenCache,
        keys: KeyProvider | None,
        directory: CacheDirectory,
        listener: Callable[[str, CacheEvent], None],
    ) -> None:
        self._path = str(directory.path)
        self._listener = listener
        self._process = CacheServerProcess(
            {**opening, "directory": self._path}, keys, directory.log_path, self._relay
        )

    def send(self, link: str, message: CacheCommand) -> bool:
        """Send the owner a message; False if there is none at the moment."""
        return self._process.send(message)

    def expected(self) -> bool:
        """Return True: there is always an owner, or one is about to start."""
        return True

    def rest(self) -> bool:
        """End the owner until `wake`, and return True."""
        self._process.rest()
        self._listener(self.LINK, {"event": "gone"})
        return True

    def wake(self) -> None:
        """Start an owner again."""
        self._process.wake()

    def close(self) -> None:
        """End the owner and wait for it."""
        self._process.close()
        self._listener(self.LINK, {"event": "gone"})

    def _relay(self, event: Event | StartedEvent) -> None:
        if event["event"] != "started":
            self._listener(self.LINK, event)
            return
        # Messages wait in the pipe until it is ready.
        leading: LeadingEvent = {
            "event": "leading",
            "pid": event["pid"],
            "host": socket.gethostname(),
            "folder": self._path,
            "directory": self._path,
        }
        self._listener(self.LINK, leading)


def _open_log(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > _LARGEST_LOG_BYTES:
        path.unlink()
    return open(path, "ab")
