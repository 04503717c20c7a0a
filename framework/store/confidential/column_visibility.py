"""Visibility of a table's columns: by the keys at hand, by decisions of policies, and by marks."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lockgate.errors import KeyMissingError
from lockgate.framework.access import ALLOWED, Decision, Visibility
from lockgate.framework.keys import NoKeys
from lockgate.framework.options import ORC_ENCRYPT
from lockgate.framework.store.formats.data_file import FileFormat, format_of

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.schema.schema import TableSchema
    from lockgate.framework.store.tables.table import Table

_THREADS = 8


def encrypted_columns(table: TableHandle) -> dict[str, tuple[str, ...]]:
    """Return the key names of each top-level column that `orc.encrypt` names, in whole or in parts of it."""
    from lockgate.framework.orc import parse_encrypt, split

    names = table.schema.field_names
    keys: dict[str, set[str]] = {}
    for column, key in parse_encrypt(table.options.get_option(ORC_ENCRYPT)).items():
        top = column if column in names else split(column)[0]
        keys.setdefault(top, set()).add(key)
    return {column: tuple(sorted(found)) for column, found in keys.items()}


def visibility(
    table: Table, decision: Decision = ALLOWED, readable: Collection[str] | None = None
) -> Visibility:
    """Return what is seen of the table's columns with its keys and under a decision.

    With `readable`, all other columns are denied. Asks the key provider about each key that `orc.encrypt`
    names.
    """
    encrypted = encrypted_columns(table)
    keys = table.keys or NoKeys()
    held = {key for key in set(itertools.chain(*encrypted.values())) if keys.usable(key)}
    denied = () if readable is None else {*table.schema.field_names, *encrypted}.difference(readable)
    return Visibility(encrypted, frozenset(held), decision.masks, frozenset(denied))


def column_marks(table: Table, seen: Visibility) -> dict[str, dict[str, Any]]:
    """Return the columns with decrypted values for a query, and what `orc.encrypt` and `orc.mask` say."""
    return {column: column_mark(table, column) for column in seen.decrypted}


def column_mark(table: TableHandle, column: str) -> dict[str, Any]:
    """Return what is said of an encrypted column wherever its values go."""
    from lockgate.framework.store.confidential.encryption_entries import entries_of

    entries = entries_of(table.schema.options, table.schema.field_names, column)
    return {
        "table": str(table.identifier),
        "column": column,
        "entries": [dataclasses.asdict(entry) for entry in entries],
    }


def require_keys(
    table: TableHandle, seen: Visibility, planned: ScanPlan, columns: Collection[str], purpose: str
) -> bool:
    """Raise KeyMissingError if one of `columns` could only be read as its mask, in one of the planned files.

    The files themselves are asked, for they may be under keys that `orc.encrypt` no longer names. Returns
    whether the keys of their other columns are held as well.
    """
    for column, key in seen.missing_keys(columns).items():
        raise KeyMissingError(_missing(table, column, key, purpose))
    if not planned.encrypted:
        return True
    files = [
        (path, _names_in_files(planned.schema, planned.schemas[file.schema_id], columns))
        for split in planned.splits
        for path, file in zip(split.paths, split.files, strict=True)
        if format_of(path) is FileFormat.ORC  # no other can be encrypted
    ]
    all_held = True
    with ThreadPoolExecutor(_THREADS) as pool:
        for closed, names in pool.map(lambda item: (_closed(table, item[0]), item[1]), files):
            for column, key in closed.items():
                if column in names:
                    raise KeyMissingError(_missing(table, names[column], key, purpose))
            all_held = all_held and not closed
    return all_held


def _missing(table: TableHandle, column: str, key: str, purpose: str) -> str:
    return (
        f"{purpose} {table.identifier} reads column {column!r}, whose key {key!r} is not held here: without "
        "it the masked values would be taken for the truth; pass keys=..."
    )


def _names_in_files(now: TableSchema, then: TableSchema, columns: Iterable[str]) -> Mapping[str, str]:
    """Return the column of today by the name it had when a file was written."""
    wanted = {now.field(name).id: name for name in columns if name in now.field_names}
    return {field.name: wanted[field.id] for field in then.fields if field.id in wanted}


def _closed(table: TableHandle, path: str) -> dict[str, str]:
    """Return the keys of the columns that a file shows only as their masks, in whole or in part.

    WrongKeyError if a key is not the one the file was written with.
    """
    from lockgate.framework.orc import EncryptedOrcFile

    source = (table.file_system, path)
    with EncryptedOrcFile(source, keys=table.keys or NoKeys(), name=path) as file:
        return {variant.column: str(variant.key) for variant in file.variants if not variant.open}


def require_write_keys(table: Table) -> None:
    """Raise KeyMissingError unless every key that `orc.encrypt` names is at hand."""
    for key in sorted(set(itertools.chain(*encrypted_columns(table).values()))):
        (table.keys or NoKeys()).current_key(key)
