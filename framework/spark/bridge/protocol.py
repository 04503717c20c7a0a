"""Messages of the bridge: a question in JSON, and its answer or error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lockgate.errors import BridgeError
from lockgate.framework.spark.messages.message_envelope import AnswerJson, FailureJson, QuestionJson
from lockgate.framework.spark.messages.shapes import fault_in, shape_of

_QUESTION = shape_of(QuestionJson)


@dataclass(frozen=True)
class Question:
    """One operation that the connector asks for; `QuestionJson` says what the fields are."""

    operation: str
    request: dict[str, Any]
    user: str
    asker: int | None
    session: str | None


def decode_question(message: bytes) -> Question:
    """Read a question; raises BridgeError unless it is one."""
    try:
        found: QuestionJson = json.loads(message)
    except RecursionError:
        raise BridgeError("the connector's question is nested too deeply to be read") from None
    except ValueError as error:
        raise BridgeError(f"the connector's question is not JSON: {error}") from None
    fault = fault_in(_QUESTION, found)
    if fault is None and not found["user"]:
        fault = "user is empty"
    if fault is not None:
        raise BridgeError(f"the connector's question is not as declared: {fault}")
    return Question(**found)


def encode_answer(answer: object, *, governed: bool = False) -> bytes:
    """Write the answer of an operation, and whether any plugin decides about access.

    Raises TypeError, ValueError or RecursionError for what JSON cannot hold.
    """
    written: AnswerJson = {"ok": answer, "governed": governed}
    return json.dumps(written).encode()


def encode_error(kind: str, message: str) -> bytes:
    """Write the error that an operation ended with."""
    written: FailureJson = {"error": {"type": kind, "message": message}}
    return json.dumps(written).encode()
