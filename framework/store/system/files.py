"""System tables of a snapshot's files: files, manifests, partitions, buckets, index files.

Each function yields rows one after the other, with values in the order of the columns in `columns`, so that a
table of many files is never held as rows. Values of encrypted columns, which other engines may have left in
manifests, are shown as null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.framework.options.table_options import PARTITION_DEFAULT_NAME
from lockgate.framework.store.codec.binary_row import decode_row
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.manifests.index_manifest import DELETION_VECTORS, read_index_manifest
from lockgate.framework.store.manifests.manifest import DataFileMeta, FileSource, ManifestEntry
from lockgate.framework.store.scan.fallback import with_partitions_of_branch
from lockgate.framework.store.schema.secret_columns import secrets_in_history
from lockgate.framework.store.system.texts import (
    internal_text,
    key_text,
    map_text,
    partition_name,
    partition_row,
)
from lockgate.framework.types import DataField, timestamp_of, to_arrow

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot
    from lockgate.framework.store.schema.schema import TableSchema

Rows = Iterator[tuple[Any, ...]]


def live_files(
    table: TableHandle, snapshot: Snapshot | None, *, waiting: bool = False
) -> list[ManifestEntry]:
    """Return the files of a snapshot; those of postponed buckets, `waiting` for one, only if asked for."""
    entries = table.manifests.live_files(snapshot)
    return entries if waiting else [entry for entry in entries if entry.bucket >= 0]


def files(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the data files with what is known of their columns."""
    bounds = _Bounds(table)
    for entry in live_files(table, snapshot):
        file = entry.file
        yield (
            *_place(table, entry),
            *bounds.texts(file),
            *(file.min_sequence_number, file.max_sequence_number, _time(file.creation_time_millis)),
            file.delete_row_count,
            None if file.file_source is None else FileSource(file.file_source).name,
            file.first_row_id,
            None if file.write_cols is None else list(file.write_cols),
        )


def file_key_ranges(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the data files with their keys."""
    for entry in live_files(table, snapshot):
        yield (*_place(table, entry), entry.file.first_row_id)


def _place(table: TableHandle, entry: ManifestEntry) -> tuple[Any, ...]:
    file, written = entry.file, table.schema_of(entry.file.schema_id)
    keys = written.types_of(written.trimmed_primary_keys)
    return (
        partition_row(_partition_types(table), entry.partition),
        entry.bucket,
        table.paths.data_file(entry.partition, entry.bucket, file),
        file.file_name.rpartition(".")[2],
        *(file.schema_id, file.level, file.row_count, file.file_size),
        *(key_text(keys, file.min_key), key_text(keys, file.max_key)),
    )


def _partition_types(table: TableHandle) -> tuple[Any, ...]:
    return table.schema.types_of(table.schema.partition_keys)


def _time(millis: int | None) -> Any:
    return None if millis is None else timestamp_of(millis * 1000, utc=False)


class _Bounds:
    """Statistics of files as those of the table's present columns."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._secrets = secrets_in_history(table)

    def texts(self, file: DataFileMeta) -> tuple[str, str, str]:
        """Return counts of nulls, smallest and largest values, each as `{column=value, ...}`."""
        written = self._table.schema_of(file.schema_id)
        found = {field.name: self._of(field, file, written) for field in self._table.schema.fields}
        nulls, low, high = (
            map_text({name: texts[which] for name, texts in found.items()}) for which in range(3)
        )
        return nulls, low, high

    def _of(self, field: DataField, file: DataFileMeta, written: TableSchema) -> tuple[str, str, str]:
        then = next((each for each in written.fields if each.id == field.id), None)
        if then is None:
            return str(file.row_count), "null", "null"
        names = written.field_names if file.value_stats_cols is None else file.value_stats_cols
        stats = file.value_stats
        if then.name not in names or names.index(then.name) >= len(stats.null_counts):
            return "null", "null", "null"
        index = names.index(then.name)
        nulls = stats.null_counts[index]
        count = "null" if nulls is None else str(nulls)
        if self._secrets.has_id(field.id):
            return count, "null", "null"
        bounds = (stats.bound("min", index), stats.bound("max", index))
        low, high = (internal_text(field.type, _converted(value, then, field)) for value in bounds)
        return count, low, high


def _converted(value: Any, then: DataField, now: DataField) -> Any:
    """Return a value as one of the column's present type; None where there is none."""
    if value is None or then.type.with_nullable(True) == now.type.with_nullable(True):
        return value
    try:
        return pa.scalar(value, to_arrow(then.type)).cast(to_arrow(now.type)).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def manifests(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the manifests of a snapshot, those of its changelog last."""
    if snapshot is None:
        return
    types = _partition_types(table)
    metas = [*table.manifests.manifests(snapshot), *table.manifests.changelog_manifests(snapshot)]
    for meta in metas:
        stats = meta.partition_stats
        yield (
            *(meta.file_name, meta.file_size, meta.num_added_files, meta.num_deleted_files, meta.schema_id),
            *(partition_row(types, stats.min), partition_row(types, stats.max)),
            *(meta.min_row_id, meta.max_row_id),
        )


@dataclass
class FileSums:
    """Counts over some files."""

    rows: int = 0
    size: int = 0
    files: int = 0
    newest: int | None = None

    def add(self, file: DataFileMeta) -> None:
        """Count a file."""
        self.rows += file.row_count
        self.size += file.file_size
        self.files += 1
        if file.creation_time_millis is not None:
            self.newest = max(self.newest or 0, file.creation_time_millis)


def sums_by(entries: Iterable[ManifestEntry], *, bucket: bool) -> dict[tuple[Any, ...], FileSums]:
    """Return counts by partition, or by partition and bucket."""
    found: dict[tuple[Any, ...], FileSums] = {}
    for entry in entries:
        key = (entry.partition, entry.bucket) if bucket else (entry.partition,)
        found.setdefault(key, FileSums()).add(entry.file)
    return found


def partitions(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the partitions, sorted by name; what only a catalog's server knows of them is null."""
    fields = [table.schema.field(name) for name in table.schema.partition_keys]
    null = table.options.get_option(PARTITION_DEFAULT_NAME)
    own = live_files(table, snapshot)
    shown = with_partitions_of_branch(table, FileTable(own), snapshot)
    sums = sums_by(shown.select(shown.live), bucket=False)
    named = {partition_name(fields, partition, null): found for (partition,), found in sums.items()}
    for name in sorted(named):
        found = named[name]
        yield (name, found.rows, found.size, found.files, _time(found.newest), None, None, None, None)


def buckets(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the buckets, sorted by partition and number; -2 holds rows that wait for their bucket."""
    types = _partition_types(table)
    sums = sums_by(live_files(table, snapshot, waiting=True), bucket=True)
    named = {(partition_row(types, partition), bucket): found for (partition, bucket), found in sums.items()}
    for partition, bucket in sorted(named):
        found = named[partition, bucket]
        yield partition, bucket, found.rows, found.size, found.files, _time(found.newest)


def table_indexes(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the index files, with the places of deletion vectors in them."""
    if snapshot is None or snapshot.index_manifest is None:
        return
    types = _partition_types(table)
    for entry in read_index_manifest(table, snapshot.index_manifest).entries:
        ranges = [
            {"f0": each.data_file, "f1": each.offset, "f2": each.length, "_CARDINALITY": each.cardinality}
            for each in entry.vectors
        ]
        yield (
            partition_row(types, decode_row(entry.partition, types)),
            *(entry.bucket, entry.kind, entry.file_name, entry.file_size, entry.row_count),
            ranges if entry.kind == DELETION_VECTORS else None,
        )
