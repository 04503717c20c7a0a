"""`orc.encrypt` and `orc.mask`: which columns are encrypted, with which key, and what is shown without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from lockgate.errors import ColumnNotFoundError, OptionError, UnsupportedError, nearest


class Mask(StrEnum):
    """What is stored in the clear in place of an encrypted column."""

    NULLIFY = "nullify"
    SHA256 = "sha256"


@dataclass(frozen=True)
class Encryption:
    """The encrypted columns of a schema: key name and mask by column name."""

    keys: Mapping[str, str]
    masks: Mapping[str, Mask]

    def __bool__(self) -> bool:
        return bool(self.keys)

    @property
    def columns(self) -> list[str]:
        """The encrypted columns, in the order they were named."""
        return list(self.keys)

    def mask_of(self, column: str) -> Mask:
        """The mask of an encrypted column: nothing at all, unless another was asked for."""
        return self.masks.get(column, Mask.NULLIFY)


def parse_encrypt(text: str | None, columns: Iterable[str] | None = None) -> dict[str, str]:
    """Read `orc.encrypt`, written `key:column,column;key:column`, as key name by column.

    With `columns`, each named column must be one of them: `ColumnNotFoundError` otherwise. `OptionError` if
    the text is malformed or names a column twice, `UnsupportedError` for a part of a column (`a.b`), which
    this library does not encrypt.
    """
    known = None if columns is None else list(columns)
    return dict(_entries("orc.encrypt", "pii:ssn,email;fin:salary", text, known))


def parse_mask(text: str | None, columns: Iterable[str] | None = None) -> dict[str, Mask]:
    """Read `orc.mask`, written `nullify:column;sha256:column,column`, as mask by column; errors as above."""
    known = None if columns is None else list(columns)
    names = [str(mask) for mask in Mask]
    masks: dict[str, Mask] = {}
    for column, name in _entries("orc.mask", "nullify:ssn;sha256:email", text, known):
        if name not in names:
            raise OptionError(
                f"orc.mask: there is no mask {name!r} for column {column!r}{nearest(name, names)}"
            )
        masks[column] = Mask(name)
    return masks


def parse_encryption(encrypt: str | None, mask: str | None, schema: pa.Schema) -> Encryption:
    """Both options together, checked against `schema`.

    Raises `OptionError` for a mask on a column that is not encrypted, or that does not suit its type.
    """
    keys = parse_encrypt(encrypt, schema.names)
    masks = parse_mask(mask, schema.names)
    for column, name in masks.items():
        if column not in keys:
            raise OptionError(
                f"orc.mask: column {column!r} is not encrypted, so a mask would replace its values for good; "
                f"name it in orc.encrypt as well"
            )
        type_ = schema.field(column).type
        if name is Mask.SHA256 and not _has_digest(type_):
            raise OptionError(
                f"orc.mask: sha256 masks strings and binaries, but column {column!r} is {type_}; use nullify"
            )
    return Encryption(keys, masks)


def _has_digest(type_: pa.DataType) -> bool:
    return any(
        test(type_)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def _entries(
    option: str, example: str, text: str | None, known: list[str] | None
) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for part in (text or "").split(";"):
        if not part.strip():
            continue
        name, separator, columns = part.partition(":")
        if not separator or not name.strip():
            raise OptionError(f"{option}: {part.strip()!r} is not written as in {example!r}")
        for raw in columns.split(","):
            column = raw.strip()
            if not column:
                raise OptionError(f"{option}: a column is missing in {part.strip()!r}")
            if column in seen:
                raise OptionError(f"{option}: column {column!r} is named twice")
            seen.add(column)
            _check_column(option, column, known)
            yield column, name.strip()


def _check_column(option: str, column: str, known: list[str] | None) -> None:
    if known is None or column in known:
        return
    if column.split(".")[0] in known:
        raise UnsupportedError(
            f"{option}: {column!r} is a part of a column; encrypt the whole column {column.split('.')[0]!r}"
        )
    raise ColumnNotFoundError(f"{option}: there is no column {column!r}{nearest(column, known)}")
