"""System tables of a whole warehouse, read as `lake.sys.<name>`: its options, tables and partitions.

Plugins add others by the hook `lockgate_warehouse_tables`.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import (
    AccessDeniedError,
    NamespaceNotFoundError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedFormatError,
    nearest,
)
from lockgate.framework.access import Action
from lockgate.framework.options import ON_PLAINTEXT, PARTITION_DEFAULT_NAME
from lockgate.framework.plugins import plugins
from lockgate.framework.store.grants import grant
from lockgate.framework.store.metadata.identifier import Identifier
from lockgate.framework.store.metadata.trust import EXTERNAL_ROOTS
from lockgate.framework.store.system.columns import WAREHOUSE_COLUMNS
from lockgate.framework.store.system.file_sums import FileSums, shown_files, sums_by, total_of
from lockgate.framework.store.system.row_batches import batches_of
from lockgate.framework.store.system.texts import partition_name
from lockgate.framework.types import DataField, arrow_schema, timestamp_of

if TYPE_CHECKING:
    from lockgate.framework.store.tables.catalog import Catalog
    from lockgate.framework.store.tables.table import Table

Rows = Iterator[tuple[Any, ...]]

_log = logging.getLogger("lockgate.store")

_TYPE = "type"
# An option of a file system may be a secret, whatever its name.
_HIDDEN = "*********(redacted)"
_COUNTS = frozenset({"record_count", "file_size_in_bytes", "file_count", "last_file_creation_time"})
_SHOWN = frozenset({EXTERNAL_ROOTS, ON_PLAINTEXT.key})


def warehouse_columns(name: str) -> tuple[DataField, ...]:
    """Return the columns of `sys.<name>`; NotFoundError offers the nearest names."""
    if name in WAREHOUSE_COLUMNS:
        return WAREHOUSE_COLUMNS[name]
    added = plugins().warehouse_tables()
    if name not in added:
        raise NotFoundError(f"there is no system table sys.{name}{nearest(name, warehouse_tables())}")
    return tuple(added[name].columns)


def warehouse_tables() -> list[str]:
    """Return the names of all system tables of a warehouse, sorted."""
    return sorted({*WAREHOUSE_COLUMNS, *plugins().warehouse_tables()})


def warehouse_batches(
    catalog: Catalog, name: str, names: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `sys.<name>` piece by piece, of columns in `names` alone; raises as
    `warehouse_columns`.
    """
    fields = warehouse_columns(name)
    shown = [field.name for field in fields] if names is None else list(names)
    if name in _ROWS:
        made = batches_of(arrow_schema(fields), _ROWS[name](catalog, shown), shown)
    else:
        made = plugins().warehouse_tables()[name].batches(catalog)
    return (batch.select(shown) for batch in made)


def read_warehouse(catalog: Catalog, name: str, names: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of `sys.<name>`; raises as `warehouse_columns`."""
    fields = {field.name: field for field in warehouse_columns(name)}
    schema = arrow_schema(fields.values() if names is None else [fields[each] for each in names])
    return pa.Table.from_batches(warehouse_batches(catalog, name, names), schema)


def _names(catalog: Catalog) -> Iterator[Identifier]:
    for namespace in catalog.list_namespaces():
        with suppress(NamespaceNotFoundError):
            yield from (Identifier(namespace, name) for name in catalog.list_tables(namespace))


def _readable(catalog: Catalog) -> Iterator[tuple[Identifier, Table | None]]:
    """Yield the tables that the current user may read, without those that are dropped during this.

    None stands for a table of a kind that cannot be opened here.
    """
    for name in _names(catalog):
        with suppress(TableNotFoundError, AccessDeniedError):
            try:
                table = catalog.load_table(name)
            except UnsupportedFormatError as error:
                _log.warning("table %s is listed by name only: %s", name, error)
                yield name, None
                continue
            grant(table, Action.SELECT, table.schema.partition_keys)
            yield name, table


def _opened(catalog: Catalog) -> Iterator[Table]:
    yield from (table for _, table in _readable(catalog) if table is not None)


def _all_table_options(catalog: Catalog, names: Sequence[str]) -> Rows:
    for table in _opened(catalog):
        for key, value in table.schema.options.items():
            yield table.identifier.namespace, table.identifier.name, key, value


def _catalog_options(catalog: Catalog, names: Sequence[str]) -> Rows:
    yield "warehouse", catalog.file_system.uri(catalog.warehouse)
    for key, value in catalog.options.items():
        yield key, value if key in _SHOWN else _HIDDEN


def _tables(catalog: Catalog, names: Sequence[str]) -> Rows:
    """Yield the tables; manifests are read only where counts of files are asked for."""
    counts_files = not _COUNTS.isdisjoint(names)
    for name, table in _readable(catalog):
        if table is None:
            yield (name.namespace, name.name, *(None,) * 12)
            continue
        schema, snapshot = table.schema, table.latest_snapshot() if counts_files else None
        total = total_of(*shown_files(table, snapshot))
        counts = (None,) * 4 if snapshot is None else (total.rows, total.size, total.files, _epoch(total))
        yield (
            *(table.identifier.namespace, table.identifier.name, schema.options.get(_TYPE, "table")),
            *(bool(schema.partition_keys), schema.has_primary_key),
            *(schema.options.get("owner"), _number(schema.options.get("createdAt"))),
            *(schema.options.get("createdBy"), _number(schema.options.get("updatedAt"))),
            *(schema.options.get("updatedBy"), *counts),
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _epoch(sums: FileSums) -> int | None:
    """Return when the newest file was written; manifests hold what the clock on the wall showed."""
    if sums.newest is None:
        return None
    wall: datetime.datetime = timestamp_of(sums.newest * 1000, utc=False)
    return round(wall.astimezone().timestamp() * 1000)


def _partitions(catalog: Catalog, names: Sequence[str]) -> Rows:
    for table in _opened(catalog):
        fields = [table.schema.field(name) for name in table.schema.partition_keys]
        null = table.options.get_option(PARTITION_DEFAULT_NAME)
        sums = sums_by(*shown_files(table, table.latest_snapshot()), bucket=False)
        for (partition,), found in sums.items() if fields else ():
            yield (
                *(table.identifier.namespace, table.identifier.name, partition_name(fields, partition, null)),
                *(found.rows, found.size, found.files, _epoch(found), False),
            )


_ROWS = {
    "all_table_options": _all_table_options,
    "catalog_options": _catalog_options,
    "tables": _tables,
    "partitions": _partitions,
}
