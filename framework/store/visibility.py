"""Visibility of columns: the encrypted ones, and those of them that this process sees only as masks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lockgate.errors import KeyMissingError
from lockgate.framework.keys import NoKeys
from lockgate.framework.options.table_options import ORC_ENCRYPT
from lockgate.framework.store.formats.data_file import FileFormat, format_of

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.schema.schema import TableSchema
    from lockgate.framework.store.table import Table

_THREADS = 8


def encrypted_columns(table: TableHandle) -> dict[str, tuple[str, ...]]:
    """Return the key names of each top-level column that `orc.encrypt` names, in whole or in parts of it."""
    from lockgate.framework.orc import parse_encrypt
    from lockgate.framework.orc.format.column_paths import split

    names = table.schema.field_names
    keys: dict[str, set[str]] = {}
    for column, key in parse_encrypt(table.options.get_option(ORC_ENCRYPT)).items():
        top = column if column in names else split(column)[0]
        keys.setdefault(top, set()).add(key)
    return {column: tuple(sorted(found)) for column, found in keys.items()}


def masked_columns(table: Table) -> dict[str, str]:
    """Return, by column, the name of a key that it, or a part of it, needs and that is missing or denied."""
    encrypted = encrypted_columns(table)
    held = usable_keys(table)
    missing = {column: [key for key in keys if key not in held] for column, keys in encrypted.items()}
    return {column: keys[0] for column, keys in missing.items() if keys}


def usable_keys(table: Table) -> frozenset[str]:
    """Return which of the keys that `orc.encrypt` names are held here, and not denied."""
    named = {key for keys in encrypted_columns(table).values() for key in keys}
    keys = table.keys or NoKeys()
    return frozenset(key for key in named if keys.usable(key))


def column_marks(table: Table) -> dict[str, dict[str, Any]]:
    """Return the columns with decrypted values for a query, and what `orc.encrypt` and `orc.mask` say."""
    held = usable_keys(table)
    encrypted = encrypted_columns(table).items()
    return {column: column_mark(table, column) for column, keys in encrypted if held.intersection(keys)}


def column_mark(table: TableHandle, column: str) -> dict[str, Any]:
    """Return what is said of an encrypted column wherever its values go."""
    from lockgate.framework.store.ddl.encryption_entries import entries_of

    entries = entries_of(table.schema.options, table.schema.field_names, column)
    return {
        "table": str(table.identifier),
        "column": column,
        "entries": [dataclasses.asdict(entry) for entry in entries],
    }


def require_keys(table: Table, planned: ScanPlan, columns: Collection[str], purpose: str) -> bool:
    """Raise KeyMissingError if one of `columns` could only be read as its mask, in one of the planned files.

    The files themselves are asked, for they may be under keys that `orc.encrypt` no longer names. Returns
    whether the keys of their other columns are held as well.
    """
    masked = masked_columns(table)
    for column in columns:
        if column in masked:
            raise KeyMissingError(_missing(table, column, masked[column], purpose))
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


def _missing(table: Table, column: str, key: str, purpose: str) -> str:
    return (
        f"{purpose} {table.identifier} reads column {column!r}, whose key {key!r} is not held here: without "
        "it the masked values would be taken for the truth; pass keys=..."
    )


def _names_in_files(now: TableSchema, then: TableSchema, columns: Iterable[str]) -> Mapping[str, str]:
    """Return the column of today by the name it had when a file was written."""
    wanted = {now.field(name).id: name for name in columns if name in now.field_names}
    return {field.name: wanted[field.id] for field in then.fields if field.id in wanted}


def _closed(table: Table, path: str) -> dict[str, str]:
    """Return the keys of the columns that a file shows only as their masks, in whole or in part.

    WrongKeyError if a key is not the one the file was written with.
    """
    from lockgate.framework.orc import EncryptedOrcFile

    source = (table.file_system, path)
    with EncryptedOrcFile(source, keys=table.keys or NoKeys(), name=path) as file:
        return {variant.column: str(variant.key) for variant in file.variants if not variant.open}


def require_write_keys(table: Table) -> None:
    """Raise KeyMissingError unless every key that `orc.encrypt` names is at hand."""
    for key in sorted({key for keys in encrypted_columns(table).values() for key in keys}):
        (table.keys or NoKeys()).current_key(key)
