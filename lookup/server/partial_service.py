"""Answers of a partial cache to tasks: from the owner of the cache, over a local socket.

The socket lies in the cache's folder, which only the user can enter, and the owner answers only processes of
that user. Rows of encrypted columns are in the memory of both processes and in no file.

A message is a head (four bytes that name the format, and three lengths), a JSON object, and the ends and
words of `byte_rows.Rows`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
import uuid
from typing import Any, TypedDict

import numpy as np

from lockgate.errors import LockgateError, LookupCacheError
from lockgate.framework.io import check_own_folder, check_private_socket, is_own_peer
from lockgate.framework.spark import FailureJson, fault_in, shape_of
from lockgate.lookup.cache.backends import FoundRows
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.partial.partial_cache import PartialCache, SnapshotName, found_rows
from lockgate.lookup.server.key_server import socket_address, sweep_sockets
from lockgate.lookup.spec.cache_paths import ADVICE
from lockgate.lookup.spec.failures import error_from_json, error_to_json

# A killed owner is replaced within a second or two; one that starts on a busy host takes longer.
_WAIT_SECONDS = 60.0
_HEAD = struct.Struct("<4sIQQ")
_FORMAT = b"LGP1"
_MOST_JSON = 1 << 16
_MOST_BYTES = 1 << 32
_FOLDER = "partial"


class KeyQuestionJson(TypedDict):
    """The snapshot that keys are asked of."""

    snapshot: int
    fingerprint: str


class KeyAnswerJson(TypedDict):
    """The number of keys that are answered."""

    keys: int


_QUESTION = shape_of(KeyQuestionJson)
_ANSWER = {"either": [shape_of(KeyAnswerJson), shape_of(FailureJson)]}


class PartialService:
    """Answers processes of this user about the keys of one cache."""

    def __init__(self, directory: CacheDirectory, cache: PartialCache) -> None:
        self._cache = cache
        directory.check()
        folder = directory.path / _FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        check_own_folder(folder, ADVICE)
        sweep_sockets(folder)
        self._path = folder / f"{uuid.uuid4().hex[:12]}.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with socket_address(self._path) as address:
            self._socket.bind(address)
        self._path.chmod(0o600)
        self._socket.listen(64)
        self._connections: set[socket.socket] = set()
        threading.Thread(target=self._serve, name="lockgate-partial", daemon=True).start()

    def close(self) -> None:
        """End the service."""
        self._path.unlink(missing_ok=True)
        for each in (self._socket, *self._connections):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(
                target=self._answer_all, args=(connection,), name="lockgate-partial-task", daemon=True
            ).start()

    def _answer_all(self, connection: socket.socket) -> None:
        self._connections.add(connection)
        try:
            with connection, contextlib.suppress(OSError, EOFError):  # the asker tries again, or has ended
                while is_own_peer(connection):
                    content, keys = receive(connection)
                    send(connection, *self._answer(content, keys))
        finally:
            self._connections.discard(connection)

    def _answer(self, content: Any, keys: Rows) -> tuple[KeyAnswerJson | FailureJson, Rows]:
        try:
            fault = fault_in(_QUESTION, content)
            if fault is not None:
                raise LookupCacheError(f"a task asks otherwise than declared: {fault}")
            name = SnapshotName(content["snapshot"], content["fingerprint"])
            return {"keys": len(keys)}, Rows.from_values(self._cache.find(name, keys))
        except Exception as error:  # the thread must go on, and the asker hear of it
            return {"error": error_to_json(error)}, Rows.empty()


class RemoteReader:
    """A `backends.Reader` of one snapshot that asks the owner of a partial cache."""

    def __init__(self, directory: CacheDirectory, name: SnapshotName) -> None:
        self._directory = directory
        self._question: KeyQuestionJson = {"snapshot": name.id, "fingerprint": name.fingerprint}
        self._connection: socket.socket | None = None

    def find(self, keys: Rows) -> list[FoundRows]:
        """Find the values of distinct keys.

        Raises LookupCacheError if no owner answers in time, UnsafePathError if the folder or a socket in it
        could be another user's, and the errors of reading the table.
        """
        if len(keys) == 0:
            return []
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                values = self._ask(keys)
            except (OSError, EOFError):  # the owner has ended; the next one knows the snapshot too
                self.close()
                values = None
            except LockgateError:
                self.close()
                raise
            if values is not None:
                return found_rows(values)
            self._directory.call_owner()
            if time.monotonic() > deadline:
                raise LookupCacheError(
                    f"no owner of the lookup cache {self._directory.path} answers on this host: the driver "
                    "that started the lookup has ended, or runs on another host; see "
                    f"{self._directory.log_path}"
                )
            time.sleep(0.05)

    def _ask(self, keys: Rows) -> Rows | None:
        if self._connection is None:
            self._connection = self._connect()
            if self._connection is None:
                return None
        send(self._connection, self._question, keys)
        content, values = receive(self._connection)
        fault = fault_in(_ANSWER, content)
        if fault is None and "error" in content:
            raise error_from_json(content["error"])
        if fault is None and len(values) != len(keys):
            fault = f"{len(values)} values for {len(keys)} keys"
        if fault is not None:
            raise LookupCacheError(
                f"the owner of {self._directory.path} answers otherwise than declared: {fault}"
            )
        return values

    def _connect(self) -> socket.socket | None:
        self._directory.check()
        for path in sorted((self._directory.path / _FOLDER).glob("*.sock")):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                check_private_socket(path)
                with socket_address(path) as address:
                    connection.connect(address)
                if is_own_peer(connection):
                    return connection
            except OSError:
                pass  # left by a killed owner
            except LockgateError:
                connection.close()
                raise
            connection.close()
        return None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def send(
    connection: socket.socket, content: KeyQuestionJson | KeyAnswerJson | FailureJson, rows: Rows
) -> None:
    """Send one message."""
    text = json.dumps(content).encode()
    ends = (rows.offsets - rows.offsets[0]).tobytes()
    words = rows.words[rows.offsets[0] : rows.offsets[-1]].tobytes()
    connection.sendall(_HEAD.pack(_FORMAT, len(text), len(ends), len(words)) + text)
    connection.sendall(ends)
    connection.sendall(words)


def receive(connection: socket.socket) -> tuple[Any, Rows]:
    """Receive one message; EOFError at the end, LookupCacheError for what is no message."""
    kind, text, ends, words = _HEAD.unpack(bytes(_read(connection, _HEAD.size)))
    sound = kind == _FORMAT and text <= _MOST_JSON and ends + words <= _MOST_BYTES
    if not sound or ends % 8 or words % 8 or ends == 0:
        raise EOFError("the peer does not speak this format")
    try:
        content = json.loads(bytes(_read(connection, text)))
    except ValueError:
        raise EOFError("the peer does not speak this format") from None
    offsets = np.frombuffer(_read(connection, ends), np.int64)
    data = np.frombuffer(_read(connection, words), np.uint64)
    if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise EOFError("the peer does not speak this format")
    return content, Rows(data, offsets)


def _read(connection: socket.socket, count: int) -> bytearray:
    buffer = bytearray(count)
    view, at = memoryview(buffer), 0
    while at < count:
        got = connection.recv_into(view[at:])
        if got == 0:
            raise EOFError("the peer has ended")
        at += got
    return buffer


def partial_reader(directory: CacheDirectory, snapshot_id: int) -> RemoteReader | None:
    """Return the reader of a state that is partial; None for others, and where there is none."""
    info = directory.version(snapshot_id)
    if info is None or info.storage != "partial":
        return None
    return RemoteReader(directory, SnapshotName(info.snapshot_id, info.fingerprint))
