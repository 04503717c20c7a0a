"""Names of datasets and columns as text: parts joined by dots, quoted where a part needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lockgate.errors import InputError

_PLAIN = re.compile(r"[\w$-]+")
_COLUMN_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`@]+)")


def quoted(part: str) -> str:
    """Return one part of a name, in backquotes if it holds anything but letters, digits, `_`, `$`, `-`."""
    return part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`"


def joined(parts: Sequence[str]) -> str:
    """Return the name of several parts."""
    return ".".join(map(quoted, parts))


def column_text(path: Sequence[str]) -> str:
    """Return a column as records name it: its name, or a struct and its members, joined by dots.

    A part with a dot or a backquote, and `*`, which stands for all columns, is in backquotes: no two columns
    have one text. The connector does the same (`Sources.quoted`).
    """
    return ".".join(
        "`" + part.replace("`", "``") + "`" if part in ("", "*") or "." in part or "`" in part else part
        for part in path
    )


def column_path(text: str) -> tuple[str, ...]:
    """Return the parts of what `column_text` made; any other text is one part."""
    parts: list[str] = []
    at = 0
    while True:
        match = _COLUMN_PART.match(text, at)
        if match is None:
            return (text,)
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            return (text,)
        at += 1


def split_name(text: str) -> tuple[list[str], int | None]:
    """Split `db.table.column` into its parts and `@snapshot`, which may follow the table or the end.

    Raises InputError for a text that is no such name.
    """
    parts: list[str] = []
    snapshot: int | None = None
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise InputError(
                f"{text!r} is not a name such as db.table.column: put backticks around parts with other "
                "characters, as in `a.b`"
            )
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        at = match.end()
        version = re.compile(r"@(\d+)").match(text, at)
        if version:
            snapshot, at = int(version[1]), version.end()
        if at < len(text):
            if text[at] != "." or at + 1 == len(text):
                raise InputError(f"{text!r} is not a name such as db.table.column: look at {text[at:]!r}")
            at += 1
    if not parts:
        raise InputError("an empty text names no table: write db.table or db.table.column")
    return parts, snapshot
