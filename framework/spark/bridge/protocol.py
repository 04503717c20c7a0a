"""Messages of the bridge: a question in JSON, and its answer or error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lockgate.errors import BridgeError


@dataclass(frozen=True)
class Question:
    """One operation that the connector asks for.

    `user` is the name of the user who asks. `asker` is the number of the JVM's thread that waits, `session`
    the name of the Spark session that was active on it; both are missing where none was.
    """

    operation: str
    request: dict[str, Any]
    user: str
    asker: int | None = None
    session: str | None = None


def decode_question(message: bytes) -> Question:
    """Read a question; raises BridgeError unless it is one."""
    try:
        found = json.loads(message)
    except ValueError as error:
        raise BridgeError(f"the connector's request is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BridgeError(f"the connector's request is no JSON object, but {type(found).__name__}")
    operation, request = found.get("operation"), found.get("request")
    asker, session = found.get("asker"), found.get("session")
    if not isinstance(operation, str) or not isinstance(request, dict):
        raise BridgeError("the connector's request has no operation and arguments")
    user = found.get("user")
    if not isinstance(user, str) or not user:
        raise BridgeError("the connector's request names no user")
    if not isinstance(asker, int | None) or not isinstance(session, str | None):
        raise BridgeError("the connector's request names its user wrongly")
    return Question(operation, request, user, asker, session)


def encode_answer(answer: object, *, governed: bool = False) -> bytes:
    """Write the answer of an operation, and whether any plugin decides about access.

    Raises TypeError or ValueError for what JSON cannot hold.
    """
    return json.dumps({"ok": answer, "governed": governed}).encode()


def encode_error(kind: str, message: str) -> bytes:
    """Write the error that an operation ended with."""
    return json.dumps({"error": {"type": kind, "message": message}}).encode()
