"""The process that an executor starts for a lookup: it waits for its turn, then owns the host's cache.

Run as `python -m lockgate.lookup.server.standby`, with `pipe`'s messages on its standard streams. The
executors of an application that share a host elect one of these processes by a lock in the cache's folder;
the others wait in a few megabytes, for nothing large is loaded before. When the owner or its executor is
killed, the lock is free at once and the next takes over. The pipe from the executor is the lease, for waiting
ones as well.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING

from lockgate.lookup.spec import cache_paths

if TYPE_CHECKING:
    # Imported for types alone: a process that waits must be small.
    from lockgate.lookup.server.server_messages import CacheCommand, LeadingEvent, OpenCache, WaitingEvent

_POLL_SECONDS = 0.1
_NICENESS = 5


def main() -> None:
    """Serve the executor on the standard streams."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    stdout = private_stdout()
    opening: OpenCache = json.loads(sys.stdin.buffer.readline())
    inbox: queue.Queue[CacheCommand] = queue.Queue()
    threading.Thread(target=read_lines, args=(sys.stdin.buffer, inbox), daemon=True).start()
    folder = cache_paths.local_path(opening["location"])
    lock = _wait_for_turn(folder, opening["name"], stdout)

    from lockgate.lookup.server.cache_server import serve

    serve({**opening, "directory": str(folder)}, inbox, stdout, Turn(folder, opening["name"], lock))


class Turn:
    """The turn of this process to own a folder's cache, as the only one of its application."""

    def __init__(self, folder: Path, name: str, lock: IO[bytes]) -> None:
        self._path = cache_paths.election_lock(folder, name)
        self._lock = lock

    def lasts(self) -> bool:
        """Return False once somebody removed the folder, where others may have been elected since."""
        return cache_paths.is_lock_of(self._path, self._lock)


def _wait_for_turn(folder: Path, name: str, stdout: IO[bytes]) -> IO[bytes]:
    announced = None
    while True:
        cache_paths.cache_folder(folder)
        token = cache_paths.folder_token(folder)
        host, directory = socket.gethostname(), str(folder)
        lock = cache_paths.try_lock(cache_paths.election_lock(folder, name))
        if lock is not None:
            _log_into(folder)
            cache_paths.sweep_elections(folder)
            _say(
                stdout,
                {
                    "event": "leading",
                    "pid": os.getpid(),
                    "host": host,
                    "folder": token,
                    "directory": directory,
                },
            )
            return lock
        if announced != token:
            announced = token
            _say(
                stdout,
                {
                    "event": "waiting",
                    "pid": os.getpid(),
                    "host": host,
                    "folder": token,
                    "directory": directory,
                },
            )
        time.sleep(_POLL_SECONDS)


def read_lines(stream: IO[bytes], inbox: queue.Queue[CacheCommand]) -> None:
    """Put each message into `inbox`, and end the process with the stream."""
    for line in stream:
        inbox.put(json.loads(line))
    # The lease ended. States are published whole, so there is nothing to tidy up: leave at once.
    os._exit(0)


def _say(stdout: IO[bytes], message: LeadingEvent | WaitingEvent) -> None:
    stdout.write(json.dumps(message).encode() + b"\n")
    stdout.flush()


def _log_into(folder: Path) -> None:
    # Errors go to the cache's log from here on; before, to the executor's.
    sys.stderr.flush()
    log = os.open(folder / "owner.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 2)
    os.close(log)


def private_stdout() -> IO[bytes]:
    """Keep standard output for messages: whatever a library prints goes to the log instead."""
    sys.stdout.flush()
    private = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return private


if __name__ == "__main__":
    warnings.simplefilter("default")
    main()
