"""Delivery of an encrypted cache's key to Spark's Python workers: from its owner, over a local socket.

The owner has the key from the driver, over the pipe between them, and keeps it in memory. Its socket lies in
the cache's folder, which only the user can enter, and answers only processes of that user; it ends with the
owner. So the key is never in a plan, a conf, an argument, an environment variable, a file or a log, and
nobody gets it when no driver that holds the table's keys is running.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

from lockgate.errors import LockgateError, LookupCacheError, WrongKeyError
from lockgate.framework.io import check_own_folder, check_private_socket, is_own_peer
from lockgate.framework.spark import FailureJson, fault_in, shape_of
from lockgate.lookup.cache.cache_key import cipher_of
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.codec.cache_cipher import KEY_BYTES, CacheCipher
from lockgate.lookup.spec.cache_paths import ADVICE
from lockgate.lookup.spec.failures import error_from_json, error_to_json

# A killed owner is replaced within a second or two; one that starts on a busy host takes longer.
WAIT_SECONDS = 60.0
_ANSWER_SECONDS = 10.0
_LONGEST_ADDRESS = 100
_LONGEST_ANSWER = 1 << 16


class KeyJson(TypedDict):
    """The key of a cache in base64, null while it has none."""

    key: str | None


_REPLY = {"either": [shape_of(KeyJson), shape_of(FailureJson)]}


class KeyServer:
    """Hands the key of one cache to processes of this user; `secret` returns it, None if it has none yet."""

    def __init__(self, directory: CacheDirectory, secret: Callable[[], bytes | None]) -> None:
        self._secret = secret
        directory.check()
        folder = directory.path / "keys"
        folder.mkdir(mode=0o700, exist_ok=True)
        check_own_folder(folder, ADVICE)
        sweep_sockets(folder)
        # Not by the process's number, which two containers that share the folder may both have.
        self._path = folder / f"{uuid.uuid4().hex[:12]}.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_address(self._path) as address:
                self._socket.bind(address)
            self._path.chmod(0o600)
        except OSError:  # the folder was removed meanwhile, or takes no sockets
            self._socket.close()
            raise
        self._socket.listen(16)
        threading.Thread(target=self._serve, name="lockgate-keys", daemon=True).start()

    def close(self) -> None:
        """End the service."""
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            with connection, contextlib.suppress(OSError):  # the asker tries again
                connection.settimeout(_ANSWER_SECONDS)
                if is_own_peer(connection):
                    connection.sendall(self._reply())

    def _reply(self) -> bytes:
        reply: KeyJson | FailureJson
        try:
            secret = self._secret()
            reply = {"key": None if secret is None else base64.b64encode(secret).decode()}
        except Exception as error:  # the thread must go on, and the asker hear of it
            reply = {"error": error_to_json(error)}
        return json.dumps(reply).encode()


def fetch_cipher(directory: CacheDirectory, wait_seconds: float = WAIT_SECONDS) -> CacheCipher:
    """Ask the owners of a cache for its key; LookupCacheError if none answers in time.

    Raises the error of an owner that could not unwrap the key in time either, and UnsafePathError if the
    folder, or a socket in it, could be another user's.
    """
    directory.check()
    deadline = time.monotonic() + wait_seconds
    while True:
        content, failure = directory.key(), None
        for path in sorted((directory.path / "keys").glob("*.sock")):
            answer = _ask(path)
            if isinstance(answer, LockgateError):
                failure = answer
            elif content is not None and len(answer) == KEY_BYTES:
                # An owner that still has the key of a cache that was made again is passed over.
                with contextlib.suppress(WrongKeyError):
                    return cipher_of(answer, content)
        directory.call_owner()
        if time.monotonic() > deadline:
            if failure is not None:
                raise failure
            raise LookupCacheError(
                f"the lookup cache {directory.path} is encrypted and no owner of it hands out its key on "
                "this host: the driver that started the lookup has ended, or runs on another host"
            )
        time.sleep(0.05)


def _ask(path: Path) -> bytes | LockgateError:
    """Return the key that an owner hands out, empty if it has none or has ended, or else its error."""
    answer = b""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        check_private_socket(path)
        with socket_address(path) as address:
            connection.connect(address)
        if not is_own_peer(connection):
            return b""
        while len(answer) < _LONGEST_ANSWER and (part := connection.recv(_LONGEST_ANSWER - len(answer))):
            answer += part
    return _key_in(answer, path) if answer else b""


def _key_in(answer: bytes, path: Path) -> bytes | LockgateError:
    try:
        reply = json.loads(answer)
        fault = fault_in(_REPLY, reply)
    except ValueError:
        fault = "it is not JSON"
    if fault is not None:
        return LookupCacheError(f"the owner at {path} answers otherwise than declared: {fault}")
    if "error" in reply:
        return error_from_json(reply["error"])
    return b"" if reply["key"] is None else base64.b64decode(reply["key"])


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Give an address of the socket at `path` while the block runs; LookupCacheError if there can be none."""
    # The name of a socket has at most about 100 bytes; a longer one is reached through its open folder.
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        short = f"/proc/self/fd/{folder}"
        if not os.path.isdir(short):  # noqa: PTH112 - no Path for a link that the kernel makes up
            raise LookupCacheError(f"the path of the lookup cache {path} is too long: use lookup.cache-dir")
        yield f"{short}/{path.name}"
    finally:
        os.close(folder)


def sweep_sockets(folder: Path) -> None:
    """Remove the sockets that nobody answers at."""
    # Killed owners leave their sockets.
    for path in folder.glob("*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            try:
                with socket_address(path) as address:
                    connection.connect(address)
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
