"""The protocol between a driver and the owner of a cache: JSON lines over the owner's standard streams.

The driver's end of the pipe is the owner's lease: when it closes, for whatever reason, the owner ends. Keys
go through this pipe only, never through an argument, an environment variable or a file.
"""

from __future__ import annotations

import base64
import json
import queue
import threading
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from lockgate.errors import KeyServiceError
from lockgate.framework.keys import KeyAlgorithm, KeyMetadata, KeyProvider, LocalKey
from lockgate.lookup.spec.failures import error_from_json, error_to_json

if TYPE_CHECKING:
    from lockgate.lookup.server.server_messages import KeyQuestion, KeyReply, KeyValue, KeyVersion


class Sender:
    """Writes messages, one a line, from any thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; raises OSError when the other end is gone."""
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()

    def close(self) -> None:
        """End the conversation."""
        with self._lock:
            self._stream.close()


class PipeKeyProvider(KeyProvider):
    """Asks the driver for unwrapped local keys; master keys stay there.

    `ask` sends a question; its answer comes by `answer`, from the thread that reads the pipe.
    """

    def __init__(self, ask: Callable[[KeyQuestion], None]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._next = 0
        self._waiting: dict[int, queue.SimpleQueue[KeyReply]] = {}

    def answer(self, message: KeyReply) -> None:
        """Hand an answer to the thread that waits for it."""
        with self._lock:
            waiting = self._waiting.pop(message["id"], None)
        if waiting is not None:
            waiting.put(message)

    def _call(self, question: Callable[[int], KeyQuestion]) -> Any:
        inbox: queue.SimpleQueue[KeyReply] = queue.SimpleQueue()
        with self._lock:
            self._next += 1
            number = self._next
            self._waiting[number] = inbox
        self._ask(question(number))
        try:
            reply = inbox.get(timeout=60)
        except queue.Empty:
            raise KeyServiceError("the driver did not answer a question about a key for 60 s") from None
        if reply["op"] == "refuse":
            raise error_from_json(reply["error"])
        return reply["ok"]

    def key_names(self) -> list[str]:
        return list(self._call(lambda number: {"event": "ask", "id": number, "method": "key_names"}))

    def current_key(self, name: str) -> KeyMetadata:
        return _metadata(
            self._call(lambda number: {"event": "ask", "id": number, "method": "current_key", "name": name})
        )

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        wrapped = base64.b64encode(encrypted).decode()
        plain = self._call(
            lambda number: {
                "event": "ask",
                "id": number,
                "method": "decrypt_local_key",
                "key": _version(key),
                "encrypted": wrapped,
            }
        )
        return base64.b64decode(plain)

    def create_local_key(self, key: KeyMetadata) -> LocalKey:
        # Asked of the driver, for a key service has its own way of making them.
        made = self._call(
            lambda number: {
                "event": "ask",
                "id": number,
                "method": "create_local_key",
                "key": _version(key),
            }
        )
        return LocalKey(base64.b64decode(made["plain"]), base64.b64decode(made["encrypted"]))

    def usable(self, name: str) -> bool:
        return bool(
            self._call(lambda number: {"event": "ask", "id": number, "method": "usable", "name": name})
        )

    def __repr__(self) -> str:
        return "PipeKeyProvider()"


def _version(key: KeyMetadata) -> KeyVersion:
    return key.name, key.version, int(key.algorithm)


def _metadata(written: KeyVersion) -> KeyMetadata:
    name, version, algorithm = written
    return KeyMetadata(name, version, KeyAlgorithm(algorithm))


def answer_about_keys(provider: KeyProvider, question: KeyQuestion) -> KeyReply:
    """Answer a request of a `PipeKeyProvider`; an error is an answer too."""
    try:
        return {"op": "answer", "id": question["id"], "ok": _answer(provider, question)}
    except Exception as error:  # whatever a provider raises must reach the owner
        return {"op": "refuse", "id": question["id"], "error": error_to_json(error)}


def _answer(provider: KeyProvider, question: KeyQuestion) -> KeyValue:
    if question["method"] == "key_names":
        return list(provider.key_names())
    if question["method"] == "current_key":
        return _version(provider.current_key(question["name"]))
    if question["method"] == "usable":
        return provider.usable(question["name"])
    wanted = _metadata(question["key"])
    if question["method"] == "create_local_key":
        local = provider.create_local_key(wanted)
        return {
            "plain": base64.b64encode(local.plain).decode(),
            "encrypted": base64.b64encode(local.encrypted).decode(),
        }
    plain = provider.decrypt_local_key(wanted, base64.b64decode(question["encrypted"]))
    return base64.b64encode(plain).decode()
