"""The driver's Python listening to its own JVM: a Unix domain socket in a folder of this user alone.

Three checks keep others out, one after the other: the folder's mode (0700, on every part of its path), the
peer's user as the kernel reports it, and a secret of 256 bits. The secret travels as it is: both ends already
know that the other belongs to this user, and nobody else can read such a socket, so a challenge would add
nothing. It distinguishes the JVM of this driver from other processes of the user.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import logging
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lockgate.errors import BridgeError, LockgateError, UnsafePathError
from lockgate.framework.io import check_private_socket, is_own_peer, make_private_folder
from lockgate.framework.spark.bridge.transport import Frames

_PREFIX = "lockgate-bridge-"
_SOCKET = "socket"
# The name of a socket has at most 107 bytes on Linux, 103 elsewhere.
_LONGEST_ADDRESS = 103
_HELLO_SECONDS = 10.0
_LONGEST_HELLO = 256
# The connector has at most 1,024 questions open, and keeps a few connections.
_MOST_CONNECTIONS = 1100
# A folder without a listener is left alone for this time: its process may be about to listen.
_LEFT_BEHIND_SECONDS = 60.0

_log = logging.getLogger("lockgate.spark")


class BridgeServer:
    """Answers this user's JVM: `answer` gets the bytes of each question, in a thread for each connection.

    `thread_ends` is called at the end of each of these threads.
    """

    def __init__(self, answer: Callable[[bytes], bytes], thread_ends: Callable[[], None]) -> None:
        self._answer = answer
        self._thread_ends = thread_ends
        self.pid = os.getpid()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self.secret = secrets.token_hex(32)
        self.folder = _make_folder()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.folder / _SOCKET))
        (self.folder / _SOCKET).chmod(0o600)
        self._socket.listen(128)
        threading.Thread(target=self._accept, name="lockgate-bridge", daemon=True).start()

    def __repr__(self) -> str:
        return f"BridgeServer({str(self.folder)!r})"

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        return len(self._open)

    def close(self) -> None:
        """End all connections and remove the folder, unless this is a fork of the process that made it."""
        if os.getpid() != self.pid:
            return
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        _remove(self.folder)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:  # closed
                    return
                time.sleep(0.05)  # no descriptors left: some will come free
                continue
            if not is_own_peer(connection) or not self._admit(connection):
                connection.close()

    def _admit(self, connection: socket.socket) -> bool:
        with self._lock:
            if len(self._open) >= _MOST_CONNECTIONS:
                return False
            self._open.add(connection)
        name = f"lockgate-bridge-{next(self._numbers)}"
        thread = threading.Thread(target=self._serve, args=(connection,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left
            with self._lock:
                self._open.discard(connection)
            return False
        return True

    def _serve(self, connection: socket.socket) -> None:
        frames = Frames(connection, self.folder, name := secrets.token_hex(16))
        try:
            with connection:
                if self._is_greeted(connection, frames):
                    frames.send(name.encode())
                    while (question := frames.receive()) is not None:
                        frames.send(self._answer(question))
        except OSError:
            pass  # the other end is gone
        except LockgateError as error:
            _log.warning("a connection of the bridge was closed: %s", error)
        finally:
            with self._lock:
                self._open.discard(connection)
            frames.forget_files()
            self._thread_ends()

    def _is_greeted(self, connection: socket.socket, frames: Frames) -> bool:
        connection.settimeout(_HELLO_SECONDS)
        hello = frames.receive(_LONGEST_HELLO)
        if hello is None:  # it only tried whether this process listens
            return False
        if not hmac.compare_digest(hello, self.secret.encode()):
            _log.warning("a process of this user that does not know the bridge's secret was refused")
            return False
        connection.settimeout(None)
        return True


# --- the folder ----------------------------------------------------------------------------------


def _make_folder() -> Path:
    reasons = []
    for parent in dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"]):  # noqa: S108 - a private folder of a random name is made in it
        folder = Path(parent).absolute() / f"{_PREFIX}{os.geteuid()}-{secrets.token_hex(8)}"
        if len(os.fsencode(folder / _SOCKET)) > _LONGEST_ADDRESS:
            reasons.append(f"{parent} is too long for the name of a socket")
            continue
        try:
            made = make_private_folder(folder)
        except (OSError, UnsafePathError) as error:
            reasons.append(str(error))
            continue
        if len(os.fsencode(made / _SOCKET)) <= _LONGEST_ADDRESS:  # links on the way may have made it longer
            _sweep(made)
            return made
        made.rmdir()
        reasons.append(f"{made} is too long for the name of a socket")
    raise BridgeError(
        "the connector cannot reach Python, because there is no folder for a socket: "
        f"{'; '.join(reasons)}; set "
        "TMPDIR to a folder with a short path that only you can write to"
    )


def _sweep(own: Path) -> None:
    """Remove siblings of `own` that killed processes of this user left."""
    for folder in own.parent.glob(f"{_PREFIX}{os.geteuid()}-*"):
        with contextlib.suppress(OSError, UnsafePathError):
            if folder != own and time.time() - folder.lstat().st_mtime > _LEFT_BEHIND_SECONDS:
                check_private_socket(folder / _SOCKET)
                if _is_left_behind(folder / _SOCKET):
                    _remove(folder)


def _is_left_behind(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(address))
        except ConnectionRefusedError:
            return True
    return False


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()
