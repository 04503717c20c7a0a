"""Encrypted columns that were dropped and are added again under their name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lockgate.errors import LockgateError, PlaintextError, PlaintextWarning, warn_user
from lockgate.framework import options as table_options
from lockgate.framework.store.confidential.encryption_entries import Entry, entries_of, with_entries
from lockgate.framework.store.ddl.schema_changes import AddColumn, SchemaChange
from lockgate.framework.store.ddl.validation import check_schema

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema


def judged(
    table: TableHandle, changed: TableSchema, changes: Sequence[SchemaChange], choice: str
) -> TableSchema:
    """Return the schema to store in place of `changed`: with `inherit`, columns are encrypted as they were.

    `choice` is `warn`, `refuse` or `inherit`. Raises PlaintextError, OptionError where the former entry does
    not suit the new type, and warns with PlaintextWarning.
    """
    for change in changes:
        if isinstance(change, AddColumn) and len(change.path) == 1:
            changed = _judged_column(table, changed, change.path[0], choice)
    return changed


def _judged_column(table: TableHandle, changed: TableSchema, name: str, choice: str) -> TableSchema:
    if name not in changed.field_names or entries_of(changed.options, changed.field_names, name):
        return changed
    former = _former_entries(table, name)
    if not former:
        return changed
    if choice == "inherit":
        options = with_entries(changed.options, former, name)
        inherited = dataclasses.replace(changed, options=options)
        check_schema(inherited)
        return inherited
    key = next(entry.key for entry in former if entry.key is not None)
    text = (
        f"table {table.identifier} once had a column {name!r} that was encrypted (key {key}); the new one of "
        f"that name is in the clear: to encrypt it, add '{key}:{name}' to 'orc.encrypt', or set "
        f"{table_options.ON_PLAINTEXT.key!r} = 'inherit' and add it then"
    )
    if choice == "refuse":
        raise PlaintextError(text)
    warn_user(text, PlaintextWarning)
    return changed


def _former_entries(table: TableHandle, name: str) -> list[Entry]:
    """Return what the last schema that had an encrypted column of a name said of it."""
    for schema_id in reversed(table.schema_files.ids()):
        schema = table.schema_of(schema_id)
        if name in schema.field_names:
            return entries_of(schema.options, schema.field_names, name)
    return []


def encrypted_alike(
    schema: TableSchema, options: Mapping[str, str], column: str, entries: Sequence[Mapping[str, Any]]
) -> dict[str, str] | None:
    """Return options that encrypt one column more, as entries of another column say; None if it cannot be."""
    alike = [Entry(tuple(each["path"]), each["key"], each["mask"]) for each in entries]
    whole = Entry((column,), key=next(each.key for each in alike if each.key is not None))
    # A computed column may have another type, for which parts and masks do not fit.
    for tried in (alike, [whole]):
        changed = with_entries(options, tried, column)
        with suppress(LockgateError):
            check_schema(dataclasses.replace(schema, options=changed))
            return changed
    return None
