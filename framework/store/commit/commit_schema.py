"""The schema of a commit: the table's newest, if this is still the table that was loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, TableNotFoundError
from lockgate.framework.store.metadata.generations import current_schema
from lockgate.framework.store.metadata.schema_files import SchemaFiles

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema


def schema_to_commit(table: TableHandle, *, replaces: bool) -> TableSchema:
    """Return the newest schema, or with `replaces` the one that begins to hold with the snapshot.

    Raises TableNotFoundError if the table was dropped, and CommitConflictError if another one is in its
    place or, with `replaces`, if it was altered.
    """
    # Read again, because what the table keeps is of the time it was loaded.
    branch = table.identifier.branch is not None
    files = SchemaFiles(table.file_system, table.branch_location, branch=branch)
    newest, loaded = current_schema(files, table.snapshot_files), table.schema
    if replaces:
        return _replacing_schema(table, files)
    if newest is None:
        raise TableNotFoundError(f"table {table.identifier} was dropped")
    same_id = newest.id == loaded.id
    if newest.id < loaded.id or (same_id and newest.time_millis != loaded.time_millis):
        raise CommitConflictError(f"table {table.identifier} was dropped and created again; load it again")
    return newest


def _replacing_schema(table: TableHandle, files: SchemaFiles) -> TableSchema:
    newest = files.latest()
    if newest is None or newest != table.schema:
        raise CommitConflictError(
            f"table {table.identifier} was altered or replaced concurrently; repeat the statement"
        )
    return newest
