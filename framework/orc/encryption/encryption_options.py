"""The options `orc.encrypt` and `orc.mask`: encrypted columns, their keys, and their masks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import ColumnNotFoundError, OptionError, nearest
from lockgate.framework.orc.format.column_paths import ColumnTree, split

# Names that Apache's parser accepts without backticks.
_SIMPLE = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, order=True)
class Mask:
    """The mask stored in the clear in place of an encrypted column: its name and parameters."""

    name: str
    parameters: tuple[str, ...] = ()

    NULLIFY: ClassVar[Mask]
    SHA256: ClassVar[Mask]

    def __str__(self) -> str:
        """Return the mask in the form of `orc.mask` and of files: ``redact,Xx9,`2000 _ _` ``."""
        return ",".join(
            each if _SIMPLE.fullmatch(each) else "`" + each.replace("`", "``") + "`"
            for each in (self.name, *self.parameters)
        )


Mask.NULLIFY = Mask("nullify")
Mask.SHA256 = Mask("sha256")


@dataclass(frozen=True)
class Encryption:
    """The encrypted columns of a schema: key name by column, and mask by column or nested column.

    Nested columns are named by their path: `address.zip`, `list._elem.q`, `map._value`.
    """

    keys: Mapping[str, str]
    masks: Mapping[str, Mask]

    def __bool__(self) -> bool:
        return bool(self.keys)

    @property
    def columns(self) -> list[str]:
        """The encrypted columns, in the order of the option."""
        return list(self.keys)

    def mask_of(self, column: str) -> Mask:
        """Return the mask of an encrypted column: `nullify`, unless `orc.mask` names another."""
        return self.masks.get(column, Mask.NULLIFY)


@checked_arguments
def parse_encrypt(text: str | None, columns: Iterable[str] | pa.Schema | None = None) -> dict[str, str]:
    """Parse `orc.encrypt`, written `key:column,column;key:column`, into key name by column.

    With `columns`, names of top-level columns or a schema, raises `ColumnNotFoundError` for a column that is
    not one of them or, if it is a schema, nested in one. `OptionError` if the text is malformed, names a
    column twice, or has numbers instead of names.
    """
    keys: dict[str, str] = {}
    for column, head in _entries("orc.encrypt", "pii:ssn,email;fin:salary", text, columns):
        if len(head) != 1:
            raise OptionError(f"orc.encrypt: {','.join(head)!r} is not the name of one key")
        keys[column] = head[0]
    return keys


@checked_arguments
def parse_mask(text: str | None, columns: Iterable[str] | pa.Schema | None = None) -> dict[str, Mask]:
    """Parse `orc.mask`, written `nullify:column;redact,Xx9:column,column`, into mask by column.

    Parameters follow the name of a mask, in backticks if they have other characters than letters, digits and
    `_`. Raises the errors of `parse_encrypt`.
    """
    return {
        column: Mask(head[0], tuple(head[1:]))
        for column, head in _entries("orc.mask", "nullify:ssn;redact,Xx9:email", text, columns)
    }


def _entries(
    option: str, example: str, text: str | None, columns: Iterable[str] | pa.Schema | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield each column with the names before its colon, split at commas."""
    tree = ColumnTree(columns) if isinstance(columns, pa.Schema) else None
    all_names = (
        columns.names if isinstance(columns, pa.Schema) else None if columns is None else list(columns)
    )
    seen: set[str] = set()
    for part in _split(option, text or "", ";"):
        if not part.strip():
            continue
        head, *rest = _split(option, part, ":")
        if len(rest) != 1 or not head.strip():
            raise OptionError(f"{option}: {part.strip()!r} is not written as in {example!r}")
        names = [_unquoted(option, each.strip()) for each in _split(option, head, ",")]
        for raw in _split(option, rest[0], ","):
            text_ = raw.strip()
            if not text_:
                raise OptionError(f"{option}: a column is missing in {part.strip()!r}")
            column = _column(option, text_, all_names, tree)
            if column in seen:
                raise OptionError(f"{option}: column {column!r} is named twice")
            seen.add(column)
            yield column, names


def _split(option: str, text: str, separator: str) -> list[str]:
    """Split `text` at separators that are not between backticks."""
    parts = [""]
    quoted = False
    for character in text:
        quoted ^= character == "`"
        if character == separator and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    if quoted:
        raise OptionError(f"{option}: a backtick is not closed in {text!r}")
    return parts


def _unquoted(option: str, text: str) -> str:
    if len(text) > 2 and text.startswith("`") and text.endswith("`"):
        return text[1:-1].replace("``", "`")
    if not text or "`" in text or (option == "orc.mask" and not _SIMPLE.fullmatch(text)):
        raise OptionError(
            f"{option}: {text!r} cannot come before a colon; put a name or parameter with characters other "
            "than letters, digits and _ between backticks; none can be empty"
        )
    return text


def _column(option: str, text: str, names: list[str] | None, tree: ColumnTree | None) -> str:
    path = (text,) if names is not None and text in names else split(text)
    if len(path) == 1 and path[0].isdigit() and path[0] not in (names or ()):
        raise OptionError(
            f"{option}: name columns instead of numbering them as {text!r}, since numbers change with the "
            "schema"
            + (" (number 0 is the row itself, which is never encrypted as a whole)" if text == "0" else "")
        )
    if tree is not None:
        return tree.find(option, text).name
    name = path[0] if len(path) == 1 else text
    if names is None or path[0] in names:
        return name
    raise ColumnNotFoundError(f"{option}: there is no column {name!r}{nearest(name, names)}")
