"""The system tables of a table, read as `t$<name>`: which there are, their columns and their rows.

Those in `METADATA_TABLES` are made of metadata alone; those in `ROW_TABLES` are read from data files, as the
table is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import ColumnNotFoundError, InputError, NotFoundError, nearest
from lockgate.framework.access import Action
from lockgate.framework.store.grants import grant
from lockgate.framework.store.scan.read_request import ReadRequest, require_unrestricted
from lockgate.framework.store.scan.snapshot_selection import Selection
from lockgate.framework.store.scan.table_selection import table_selection
from lockgate.framework.store.system import history_tables, snapshot_tables
from lockgate.framework.store.system.columns import TABLE_COLUMNS, as_arrays, with_row_kind
from lockgate.framework.store.system.file_columns import file_batches
from lockgate.framework.store.system.row_batches import batches_of
from lockgate.framework.store.system.row_tables import (
    ROW_TRACKING_COLUMNS,
    audit_log,
    binlog,
    check_row_tracking,
    read_optimized,
    row_tracking,
)
from lockgate.framework.types import DataField, arrow_schema

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

_Rows = Iterator[tuple[Any, ...]]

# Rows from the metadata of the table as it is now, and of one of its snapshots.
_OF_NOW: dict[str, Callable[[TableHandle], _Rows]] = {
    "snapshots": history_tables.snapshots,
    "schemas": history_tables.schemas,
    "options": history_tables.options,
    "tags": history_tables.tags,
    "branches": history_tables.branches,
    "consumers": history_tables.consumers,
    "aggregation_fields": history_tables.aggregation_fields,
}
_OF_SNAPSHOTS: dict[str, Callable[[TableHandle, Snapshot | None], _Rows]] = {
    "manifests": snapshot_tables.manifests,
    "partitions": snapshot_tables.partitions,
    "buckets": snapshot_tables.buckets,
    "table_indexes": snapshot_tables.table_indexes,
    "statistics": history_tables.statistics,
}
# Those of data files: a table may have a million.
_OF_FILES = frozenset({"files", "file_key_ranges"})
_OF_ROWS: dict[str, Callable[[TableHandle, ReadRequest], Iterator[pa.RecordBatch]]] = {
    "ro": read_optimized,
    "audit_log": audit_log,
    "binlog": binlog,
    "row_tracking": row_tracking,
}

# These count rows, hidden ones too.
_COUNTING = frozenset({"snapshots", "tags"})

METADATA_TABLES = frozenset({*_OF_NOW, *_OF_SNAPSHOTS, *_OF_FILES})
ROW_TABLES = frozenset(_OF_ROWS)


def columns_of_system(table: TableHandle, name: str) -> tuple[DataField, ...]:
    """Return the columns of `t$<name>`; NotFoundError offers the nearest names.

    Raises UnsupportedError for `row_tracking` of tables without the option `row-tracking.enabled`.
    """
    if name in TABLE_COLUMNS:
        return TABLE_COLUMNS[name]
    fields = table.schema.fields
    if name == "ro":
        return fields
    if name == "audit_log":
        return with_row_kind(fields)
    if name == "binlog":
        return as_arrays(fields)
    if name == "row_tracking":
        check_row_tracking(table)
        return (*fields, *ROW_TRACKING_COLUMNS)
    hint = nearest(name, sorted(METADATA_TABLES | ROW_TABLES))
    raise NotFoundError(f"there is no system table ${name}{hint}; table {table.identifier}")


def system_batches(
    table: TableHandle, name: str, request: ReadRequest | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `t$<name>` piece by piece, by default of the newest snapshot.

    Tables of metadata show all their rows: InputError for a predicate, a limit or a range of snapshots then.
    Raises as `columns_of_system` and `ReadRequest.resolve`, ColumnNotFoundError for columns that the system
    table does not have, and AccessDeniedError where rows or values of the table are hidden from the one who
    asks.
    """
    columns = columns_of_system(table, name)
    request = request or ReadRequest()
    if name in _OF_ROWS:
        return _OF_ROWS[name](table, request)
    if request != ReadRequest(columns=request.columns, snapshot_id=request.snapshot_id, tag=request.tag):
        raise InputError(
            f"${name} of table {table.identifier} is read whole: name columns, and a snapshot or a tag alone"
        )
    names = _names(table, name, columns, request)
    # Rows without columns are counted by the first.
    made = _batches(table, name, request, columns, names or (columns[0].name,))
    return (batch.select(names) for batch in made)


def _names(table: TableHandle, name: str, columns: Sequence[DataField], request: ReadRequest) -> list[str]:
    """Return the names of the columns to show of a table of metadata."""
    there = [field.name for field in columns]
    if request.columns is None:
        return there
    names = list(dict.fromkeys(request.columns))
    for each in names:
        if each not in there:
            raise ColumnNotFoundError(
                f"${name} of table {table.identifier} has no column {each!r}{nearest(each, there)}"
            )
    return names


def _batches(
    table: TableHandle,
    name: str,
    request: ReadRequest,
    columns: Sequence[DataField],
    names: Collection[str],
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a table of metadata, with the columns in `names` at least."""
    decision = grant(table, Action.SELECT, table.schema.field_names)
    if name not in _OF_NOW or name in _COUNTING:
        require_unrestricted(table, decision, f"${name}")
    if name in _OF_NOW:
        return batches_of(arrow_schema(columns), _OF_NOW[name](table), names)
    snapshot = _snapshot(table, name, request)
    if name in _OF_FILES:
        shown = [field for field in columns if field.name in names]
        return file_batches(table, snapshot, arrow_schema(shown))
    return batches_of(arrow_schema(columns), _OF_SNAPSHOTS[name](table, snapshot), names)


def _snapshot(table: TableHandle, name: str, request: ReadRequest) -> Snapshot | None:
    """Return the snapshot that a request names, or else options of the table."""
    selected = Selection() if request.names_a_snapshot else table_selection(table)
    if selected.between is not None:
        raise InputError(
            f"table {table.identifier} has an option that selects a range of snapshots, while ${name} shows "
            "one: name it"
        )
    named = request if selected == Selection() else replace(request, snapshot_id=selected.snapshot_id)
    return named.snapshot(table)


def read_system(table: TableHandle, name: str, request: ReadRequest | None = None) -> pa.Table:
    """Return the rows of `t$<name>`; raises as `system_batches`."""
    batches = list(system_batches(table, name, request))
    if batches:
        return pa.Table.from_batches(batches)
    return _empty(table, name, request)


def _empty(table: TableHandle, name: str, request: ReadRequest | None) -> pa.Table:
    fields = columns_of_system(table, name)
    if name in METADATA_TABLES:
        return (
            arrow_schema(fields).empty_table().select(_names(table, name, fields, request or ReadRequest()))
        )
    wanted = None if request is None or request.columns is None else set(request.columns)
    beside = {field.name for field in fields} - set(table.schema.field_names)
    shown = [field for field in fields if wanted is None or field.name in wanted | beside]
    return arrow_schema(tuple(shown)).empty_table()
