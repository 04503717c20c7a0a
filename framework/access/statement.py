"""The text of the statement that is being answered, for records of decisions about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_text: ContextVar[str | None] = ContextVar("lockgate_statement", default=None)


@contextlib.contextmanager
def answering_statement(text: str | None) -> Iterator[None]:
    """Let everything inside `with` know the text of a statement; None if there is no text."""
    token = _text.set(text)
    try:
        yield
    finally:
        _text.reset(token)


def current_statement() -> str | None:
    """Return the text of the statement that is being answered, with its literals; None if it has none."""
    return _text.get()
