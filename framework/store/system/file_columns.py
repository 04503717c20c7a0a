"""Columns of the system tables `files` and `file_key_ranges`, some thousand files at a time.

Only the columns that are asked for are made: a text of statistics takes longer than all numbers of a file.
Values of encrypted columns, which other engines may have left in manifests, are shown as null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from lockgate.framework.store.manifests.file_table import FileTable, Numbers
from lockgate.framework.store.manifests.manifest import DataFileMeta, FileSource
from lockgate.framework.store.system import row_batches
from lockgate.framework.store.system.file_sums import shown_files
from lockgate.framework.store.system.statistics_text import StatisticsTexts
from lockgate.framework.store.system.texts import internal_spelling, partition_row

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

_SOURCES: dict[int | None, str | None] = {None: None, **{int(each): each.name for each in FileSource}}


def file_batches(
    table: TableHandle, snapshot: Snapshot | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the data files of a snapshot, in the order they were committed, with the columns of `schema`."""
    files, mask = shown_files(table, snapshot)
    described = _Described(table, files)
    shown = np.flatnonzero(mask)
    for first in range(0, len(shown), row_batches.BATCH_ROWS):
        numbers = shown[first : first + row_batches.BATCH_ROWS]
        some = _Files(described, numbers, [files.entries[number].file for number in numbers.tolist()])
        arrays = [_array(_COLUMNS[field.name](some), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Any, wanted: pa.DataType) -> pa.Array:
    """Return values as an array; numbers of a timestamp are in its unit."""
    if pa.types.is_timestamp(wanted):
        return pa.array(values, pa.int64()).cast(wanted)
    return values if isinstance(values, pa.Array) else pa.array(values, wanted)


class _Described:
    """A table's files, and texts that many of them share."""

    def __init__(self, table: TableHandle, files: FileTable) -> None:
        self.table, self.files = table, files

    @cached_property
    def partitions(self) -> pa.Array:
        """The text of each partition, by number."""
        types = self.table.schema.types_of(self.table.schema.partition_keys)
        return pa.array([partition_row(types, each) for each in self.files.partitions], pa.string())

    @cached_property
    def statistics(self) -> StatisticsTexts:
        """The texts of statistics."""
        return StatisticsTexts(self.table)

    @cached_property
    def keys(self) -> dict[int, list[Callable[[Any], str]]]:
        """The spelling of the columns of the key, by the schema of a file; filled as schemas are met."""
        return {}

    def spellings(self, schema_id: int) -> list[Callable[[Any], str]]:
        """Return how the values of the key of files of a schema are spelled."""
        found = self.keys.get(schema_id)
        if found is None:
            written = self.table.schema_of(schema_id)
            found = [internal_spelling(each) for each in written.types_of(written.trimmed_primary_keys)]
            self.keys[schema_id] = found
        return found


@dataclass(frozen=True)
class _Files:
    """Some of the files, by their numbers in the table of all."""

    described: _Described
    numbers: Numbers
    files: Sequence[DataFileMeta]

    def partitions(self) -> pa.Array:
        return self.described.partitions.take(pa.array(self.described.files.partition[self.numbers]))

    def paths(self) -> list[str]:
        """Return the paths, which are asked for one bucket at a time."""
        table, files = self.described.table, self.described.files
        buckets: dict[tuple[int, int], list[int]] = {}
        pairs = zip(files.partition[self.numbers].tolist(), files.bucket[self.numbers].tolist(), strict=True)
        for number, pair in enumerate(pairs):
            buckets.setdefault(pair, []).append(number)
        found = [""] * len(self.files)
        for (partition, bucket), members in buckets.items():
            own = [self.files[number] for number in members]
            paths = table.paths.data_files(files.partitions[partition], bucket, own)
            for number, path in zip(members, paths, strict=True):
                found[number] = path
        return found

    def keys(self, bound: str) -> list[str | None]:
        """Return `[1, a]` for the smallest or the largest key; None for files without a key."""
        return [self._key(file, getattr(file, bound)) for file in self.files]

    def _key(self, file: DataFileMeta, values: tuple[Any, ...]) -> str | None:
        if not values:
            return None
        pairs = zip(self.described.spellings(file.schema_id), values, strict=True)
        return "[" + ", ".join([spell(value) for spell, value in pairs]) + "]"


_Column: TypeAlias = Callable[[_Files], Any]


def _attribute(name: str) -> _Column:
    return lambda some: [getattr(file, name) for file in some.files]


def _statistics(what: str) -> _Column:
    return lambda some: some.described.statistics.texts(some.files, what)


_COLUMNS: dict[str, _Column] = {
    "partition": _Files.partitions,
    "bucket": lambda some: some.described.files.bucket[some.numbers],
    "file_path": _Files.paths,
    "file_format": lambda some: [file.file_name.rpartition(".")[2] for file in some.files],
    "schema_id": _attribute("schema_id"),
    "level": _attribute("level"),
    "record_count": lambda some: some.described.files.rows[some.numbers],
    "file_size_in_bytes": lambda some: some.described.files.bytes[some.numbers],
    "min_key": lambda some: some.keys("min_key"),
    "max_key": lambda some: some.keys("max_key"),
    "null_value_counts": _statistics("nulls"),
    "min_value_stats": _statistics("min"),
    "max_value_stats": _statistics("max"),
    "min_sequence_number": _attribute("min_sequence_number"),
    "max_sequence_number": _attribute("max_sequence_number"),
    "creation_time": _attribute("creation_time_millis"),
    "deleteRowCount": _attribute("delete_row_count"),
    "file_source": lambda some: [_SOURCES[file.file_source] for file in some.files],
    "first_row_id": _attribute("first_row_id"),
    "write_cols": _attribute("write_cols"),
}
