"""Storage of a table's own master keys, wrapped, in its option `orc.keys.wrapped`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError
from lockgate.framework.options import ORC_KEYS_WRAPPED
from lockgate.framework.store.metadata.generations import current_schema, placed_after

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema


def check_wrapped_keys(schema: TableSchema, before: TableSchema | None = None) -> None:
    """Raise OptionError if `orc.keys.wrapped` is malformed, InputError if it lacks a key it had before."""
    text = schema.table_options.get_option(ORC_KEYS_WRAPPED)
    present = "" if before is None else before.table_options.get_option(ORC_KEYS_WRAPPED)
    if text == present:
        return
    # Loaded only here, so that opening a plain table needs no cryptography.
    from lockgate.framework.keys import WrappedKeys

    later = WrappedKeys.from_text(text) if text else WrappedKeys()
    if present:
        WrappedKeys.from_text(present).check_successor(later)


def store_wrapped_keys(table: TableHandle, text: str) -> None:
    """Add a schema to `table` that differs in `orc.keys.wrapped`; see `Table.set_wrapped_keys`."""
    newest = current_schema(table.schema_files, table.snapshot_files) or table.schema
    later = newest.with_options({ORC_KEYS_WRAPPED.key: text})
    later = placed_after(table.schema_files, later, newest)
    check_wrapped_keys(later, before=newest)
    try:
        table.schema_files.create(later)
    except FileExistsError:
        # Of two who roll at once, the later one would otherwise drop the other's key.
        raise CommitConflictError(
            f"{table.identifier} was altered concurrently: load it again and add to its current keys"
        ) from None
