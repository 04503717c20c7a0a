"""Replacements of a table: its confidential columns stay encrypted, and the options that guard them stay."""

from __future__ import annotations

import dataclasses

from lockgate.errors import InputError, LockgateError, PlaintextError, PlaintextWarning, nearest, warn_user
from lockgate.framework import options as table_options
from lockgate.framework.options import ON_PLAINTEXT
from lockgate.framework.store.confidential.encryption_entries import Entry, entries_of, with_entries
from lockgate.framework.store.ddl.validation import first_schema
from lockgate.framework.store.metadata.generations import GENERATION
from lockgate.framework.store.schema.schema import Schema, TableSchema

_ENCRYPTION = (table_options.ORC_ENCRYPT.key, table_options.ORC_MASK.key)
# Options that say how confidential columns are guarded, by how their names begin.
_GUARDS = ("encryption.", "lineage.", "orc.encrypt.", "orc.integrity", "orc.keys.")


def with_layout(replaced: TableSchema, schema: Schema) -> Schema:
    """Return the schema of a replacement with the keys, buckets and options of the table, for a caller that
    cannot name any, as `saveAsTable`.

    Raises InputError if a column of the primary key is missing. A table whose partition columns are missing
    is no longer partitioned.
    """
    names = [field.name for field in schema.fields]
    for name in replaced.primary_keys:
        if name not in names:
            raise InputError(
                f"the new rows have no column {name!r}, which is part of the table's primary key"
                f"{nearest(name, names)}: add it, or replace the table by writeTo(...).createOrReplace() or "
                "REPLACE TABLE, which name a key"
            )
    kept = {key: text for key, text in replaced.options.items() if key not in (GENERATION, *_ENCRYPTION)}
    keeps_partitions = not schema.partition_keys and set(replaced.partition_keys) <= set(names)
    return dataclasses.replace(
        schema,
        primary_keys=schema.primary_keys or replaced.primary_keys,
        partition_keys=replaced.partition_keys if keeps_partitions else schema.partition_keys,
        options={**kept, **schema.options},
        comment=schema.comment or replaced.comment,
    )


def with_encryption(name: str, replaced: TableSchema, schema: Schema, choice: str) -> Schema:
    """Return the schema of a replacement of table `name`, judged by the columns that it encrypts.

    `choice` is that of the session or the warehouse, for a table without `encryption.on-plaintext`. With
    `inherit`, the default, columns of the same name are encrypted as before. Raises PlaintextError where they
    cannot be, or with `refuse`; warns with PlaintextWarning.
    """
    guards = {key: text for key, text in replaced.options.items() if key.startswith(_GUARDS)}
    guarded = dataclasses.replace(schema, options={**guards, **schema.options})
    chosen = (ON_PLAINTEXT.value_of(each.options.get(ON_PLAINTEXT.key, "")) for each in (replaced, schema))
    choice = next(filter(None, chosen), choice) or "inherit"
    first_schema(guarded)
    columns = {field.name.lower(): field.name for field in schema.fields}
    for old in replaced.field_names:
        former = entries_of(replaced.options, replaced.field_names, old)
        column = columns.get(old.lower())
        if former and column and not entries_of(guarded.options, columns.values(), column):
            guarded = _judged(name, guarded, column, former, choice)
    return guarded


def _judged(name: str, schema: Schema, column: str, former: list[Entry], choice: str) -> Schema:
    key = next(entry.key for entry in former if entry.key is not None)
    text = (
        f"table {name} encrypts the column {column!r} (key {key}), and the statement that replaces the table "
        f"would store it in the clear: add '{key}:{column}' to 'orc.encrypt' of the new table"
    )
    if choice == "warn":
        warn_user(text, PlaintextWarning)
        return schema
    # A column of another type may have no such parts, and not fit the mask.
    for entries in (former, [Entry((column,), key=key)]) if choice == "inherit" else ():
        options = with_entries(schema.options, entries, column)
        inherited = dataclasses.replace(schema, options=options)
        try:
            first_schema(inherited)
        except LockgateError:
            continue
        return inherited
    why = f"refused by {ON_PLAINTEXT.key!r}" if choice == "refuse" else "it cannot be encrypted as before"
    raise PlaintextError(f"{text}, or drop the table first; {why}")
