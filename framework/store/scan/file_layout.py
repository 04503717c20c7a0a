"""Layout of rows in the files of a table: their buckets, and the columns by which files differ.

An engine that knows it joins two tables bucket by bucket, and asks at run time only for values of columns
that leave files out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from lockgate.framework import options as table_options
from lockgate.framework.store.manifests.column_bounds import ColumnBounds, bounds_of
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.schema.table_indexes import indexed_fields
from lockgate.framework.types import Kind, is_bounded

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.manifest import ManifestEntry
    from lockgate.framework.store.schema.schema import TableSchema

# Types of which equal values have equal hashes in every table; TIMESTAMP(3) and TIMESTAMP(6) do not, nor 0.0
# and -0.0, nor CHAR as engines pad it.
_HASHED_ALIKE = frozenset(
    {
        *(Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DECIMAL),
        *(Kind.DATE, Kind.VARCHAR, Kind.BINARY, Kind.VARBINARY),
    }
)
# The kind of the index database that answers `=` and IN.
_OF_VALUES = "values"
# So many files tell as much as all of them.
_SAMPLE = 500
# Of the files that a column's bounds leave, for a value of the column, at most this part.
_CLUSTERED = 0.5
# The columns found, by schema, for as long as the files are kept in memory: Spark asks in each query.
_selective: WeakKeyDictionary[FileTable, dict[int, frozenset[str]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Bucketing:
    """All files of a snapshot lie in the bucket that the hash of `column` modulo `count` says."""

    column: str
    count: int


def common_bucketing(schema: TableSchema, files: FileTable) -> Bucketing | None:
    """Return how all live files were put into buckets; None if not all alike, or not by one column's hash.

    Files of a partition that was not rescaled yet are in as many buckets as there were before.
    """
    if schema.bucket_count < 1 or len(schema.bucket_keys) != 1:
        return None
    if schema.table_options.get_option(table_options.BUCKET_FUNCTION) != "default":
        return None
    (column,) = schema.bucket_keys
    counts = files.total_buckets[files.live]
    if schema.field(column).type.kind not in _HASHED_ALIKE or (counts != schema.bucket_count).any():
        return None
    return Bucketing(column, schema.bucket_count)


def selective_columns(table: TableHandle, files: FileTable, columns: Sequence[str]) -> list[str]:
    """Return those of `columns` by whose single values a scan of `files` leaves many of them out.

    Partition columns and the bucket key do, others if bounds of files overlap little or the index database
    has their values. In a table with a primary key only key columns, because the other ones leave out no
    single file.
    """
    known_of_files = _selective.setdefault(files, {})
    found = known_of_files.get(table.schema.id)
    if found is None:
        found = known_of_files[table.schema.id] = frozenset(_find_selective(table, files))
    return [name for name in columns if name in found]


def _find_selective(table: TableHandle, files: FileTable) -> list[str]:
    schema = table.schema
    candidates = schema.trimmed_primary_keys if schema.has_primary_key else schema.field_names
    sample = _sample(files)
    indexed = _indexed(table)
    buckets = list(schema.bucket_keys) if schema.bucket_count > 1 else []
    found = []
    for name in schema.field_names:
        is_place = name in schema.partition_keys or [name] == buckets
        if is_place or (name in candidates and name in indexed):
            found.append(name)
        elif name in candidates and len(sample) > 1 and is_bounded(schema.field(name).type):
            of_key = schema.trimmed_primary_keys.index(name) if schema.has_primary_key else None
            if (
                _part_left(bounds_of(sample.entries, schema.field(name), table.schema_of, of_key))
                <= _CLUSTERED
            ):
                found.append(name)
    return found


def _indexed(table: TableHandle) -> frozenset[str]:
    """Return the columns whose values scans look up in the index database."""
    if not table.options.get_option(table_options.INDEX_READ):
        return frozenset()
    return frozenset(each.field.name for each in indexed_fields(table.schema) if each.kind == _OF_VALUES)


def _sample(files: FileTable) -> FileTable:
    chosen = np.flatnonzero(files.live)
    step = -(-len(chosen) // _SAMPLE) or 1
    return FileTable([files.entries[number] for number in chosen[::step]])


def part_left(table: TableHandle, entries: Sequence[ManifestEntry], name: str) -> float:
    """Return which part of files the bounds of a value leave, on average; 1 for columns without bounds."""
    field = table.schema.field(name)
    if not is_bounded(field.type):
        return 1.0
    return _part_left(bounds_of(entries, field, table.schema_of, None))


def _part_left(bounds: ColumnBounds) -> float:
    """Return which part of the files may hold a value, on average over the least values of the files."""
    count = len(bounds.valid)
    low, high = np.sort(bounds.low[bounds.valid]), np.sort(bounds.high[bounds.valid])
    unknown = count - len(low) - int((bounds.all_null & ~bounds.valid).sum())
    if not len(low):
        return unknown / count
    around = np.searchsorted(low, low, "right") - np.searchsorted(high, low, "left")
    return float((around.mean() + unknown) / count)
