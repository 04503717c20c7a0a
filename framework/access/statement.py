"""The text of the running statement, for records of decisions about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_text: ContextVar[str | None] = ContextVar("lockgate_statement", default=None)


@contextlib.contextmanager
def answering_statement(text: str | None) -> Iterator[None]:
    """Set the text of the running statement inside `with`; None if there is no text."""
    token = _text.set(text)
    try:
        yield
    finally:
        _text.reset(token)


def current_statement() -> str | None:
    """Return the text of the running statement, with its literals; None if there is none."""
    return _text.get()
