"""Messages around all others: what the connector sends with a question, and what comes back."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict


class QuestionJson(TypedDict):
    """A question, and the `user` that asks it.

    `asker` is the number of the JVM's thread that waits, `session` the name of the Spark session that was
    active on it; both are null where none was.
    """

    operation: str
    request: dict[str, Any]
    user: str
    asker: int | None
    session: str | None


class ErrorJson(TypedDict):
    """An error: the name of its Python class, and its message."""

    type: str
    message: str


class AnswerJson(TypedDict):
    """The answer of an operation; `governed` says whether any plugin decides about access."""

    ok: Any
    governed: bool


class FailureJson(TypedDict):
    """The error that an operation ended with."""

    error: ErrorJson


ReplyJson: TypeAlias = AnswerJson | FailureJson
