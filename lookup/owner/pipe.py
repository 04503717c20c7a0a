"""The protocol between a driver and the owner of a cache: JSON lines over the owner's standard streams.

The driver's end of the pipe is the owner's lease: when it closes, for whatever reason, the owner ends. Keys
go through this pipe only, never through an argument, an environment variable or a file.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from lockgate import errors
from lockgate.errors import KeyServiceError, LockgateError, LookupCacheError
from lockgate.framework.keys import KeyMetadata, KeyProvider, LocalKey
from lockgate.framework.keys.metadata import KeyAlgorithm

Message = dict[str, Any]


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


def error_to_json(error: BaseException) -> Message:
    """Return an error as it goes through the pipe: its class and message."""
    return {"type": type(error).__name__, "message": str(error) or type(error).__name__}


def error_from_json(content: Mapping[str, Any]) -> LockgateError:
    """Return the error that the other end met, of the same class if it is one of ours."""
    kind = getattr(errors, content["type"], None)
    if isinstance(kind, type) and issubclass(kind, LockgateError) and kind is not errors.PluginError:
        return kind(content["message"])
    return LookupCacheError(f"{content['type']}: {content['message']}")


class PipeKeyProvider(KeyProvider):
    """Asks the driver for unwrapped local keys; master keys stay there.

    `ask` sends a question; its answer comes by `answer`, from the thread that reads the pipe.
    """

    def __init__(self, ask: Callable[[Message], None]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._next = 0
        self._waiting: dict[int, tuple[threading.Event, Message]] = {}

    def answer(self, message: Message) -> None:
        """Hand an answer to the thread that waits for it."""
        with self._lock:
            waiting = self._waiting.pop(message["id"], None)
        if waiting is not None:
            waiting[1].update(message)
            waiting[0].set()

    def _call(self, method: str, **arguments: Any) -> Any:
        event, reply = threading.Event(), dict[str, Any]()
        with self._lock:
            self._next += 1
            number = self._next
            self._waiting[number] = (event, reply)
        self._ask({"event": "ask", "id": number, "method": method, "arguments": arguments})
        if not event.wait(60):
            raise KeyServiceError("the driver did not answer a question about a key for 60 s")
        if "error" in reply:
            raise error_from_json(reply["error"])
        return reply["ok"]

    def key_names(self) -> list[str]:
        return list(self._call("key_names"))

    def current_key(self, name: str) -> KeyMetadata:
        name, version, algorithm = self._call("current_key", name=name)
        return KeyMetadata(name, version, KeyAlgorithm(algorithm))

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        plain = self._call(
            "decrypt_local_key",
            key=[key.name, key.version, int(key.algorithm)],
            encrypted=base64.b64encode(encrypted).decode(),
        )
        return base64.b64decode(plain)

    def create_local_key(self, key: KeyMetadata) -> LocalKey:
        # Asked of the driver, for a key service has its own way of making them.
        made = self._call("create_local_key", key=[key.name, key.version, int(key.algorithm)])
        return LocalKey(base64.b64decode(made["plain"]), base64.b64decode(made["encrypted"]))

    def usable(self, name: str) -> bool:
        return bool(self._call("usable", name=name))

    def __repr__(self) -> str:
        return "PipeKeyProvider()"


def _metadata(written: Sequence[Any]) -> KeyMetadata:
    name, version, algorithm = written
    return KeyMetadata(name, version, KeyAlgorithm(algorithm))


def answer_about_keys(provider: KeyProvider, question: Message) -> Message:
    """Answer a request of a `PipeKeyProvider`; an error is an answer too."""
    arguments = question["arguments"]
    try:
        ok: Any
        if question["method"] == "key_names":
            ok = provider.key_names()
        elif question["method"] == "current_key":
            key = provider.current_key(arguments["name"])
            ok = [key.name, key.version, int(key.algorithm)]
        elif question["method"] == "usable":
            ok = provider.usable(arguments["name"])
        elif question["method"] == "create_local_key":
            local = provider.create_local_key(_metadata(arguments["key"]))
            ok = {
                "plain": base64.b64encode(local.plain).decode(),
                "encrypted": base64.b64encode(local.encrypted).decode(),
            }
        else:
            wanted = _metadata(arguments["key"])
            plain = provider.decrypt_local_key(wanted, base64.b64decode(arguments["encrypted"]))
            ok = base64.b64encode(plain).decode()
    except Exception as error:  # whatever a provider raises must reach the owner
        return {"op": "answer", "id": question["id"], "error": error_to_json(error)}
    return {"op": "answer", "id": question["id"], "ok": ok}
