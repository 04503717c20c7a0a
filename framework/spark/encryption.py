"""Which columns of a table are encrypted, and which of them this process sees only as masks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockgate.errors import KeyMissingError
from lockgate.framework.keys import NoKeys
from lockgate.framework.options import ORC_ENCRYPT

if TYPE_CHECKING:
    from lockgate.framework.store.table import Table


def encrypted_columns(table: Table) -> dict[str, str]:
    """Return the key name of each top-level column that `orc.encrypt` names, in whole or in a part of it."""
    keys: dict[str, str] = {}
    for group in table.options.get_option(ORC_ENCRYPT).split(";"):
        key, _, columns = group.partition(":")
        for column in columns.split(","):
            if column.strip():
                keys[column.strip().partition(".")[0]] = key.strip()
    return keys


def masked_columns(table: Table) -> dict[str, str]:
    """Return the key name of each encrypted column whose key this process does not hold."""
    encrypted = encrypted_columns(table)
    if not encrypted:
        return {}
    held = set() if table.keys is None else set(table.keys.key_names())
    return {column: key for column, key in encrypted.items() if key not in held}


def require_keys(table: Table, columns: Iterable[str], purpose: str) -> None:
    """Raise KeyMissingError if one of `columns` could only be read as its mask."""
    masked = masked_columns(table)
    for column in columns:
        if column in masked:
            raise KeyMissingError(
                f"{purpose} {table.identifier} reads column {column!r}, whose key {masked[column]!r} is not "
                "held here: without it the masked values would be taken for the truth; pass keys=..."
            )


def require_write_keys(table: Table) -> None:
    """Raise KeyMissingError unless every key that `orc.encrypt` names is at hand."""
    for key in sorted(set(encrypted_columns(table).values())):
        (table.keys or NoKeys()).current_key(key)
