"""System tables of a snapshot's metadata: manifests, partitions, buckets, index files.

Each function yields rows one after the other, with values in the order of the columns in `columns`. Data
files have a module of their own, `file_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lockgate.framework.options import PARTITION_DEFAULT_NAME
from lockgate.framework.store.codec.binary_row import decode_row
from lockgate.framework.store.handle import read_branch
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.manifests.index_manifest import DELETION_VECTORS, read_index_manifest
from lockgate.framework.store.scan.fallback import with_partitions_of_branch
from lockgate.framework.store.system.file_sums import shown_files, sums_by
from lockgate.framework.store.system.texts import partition_name, partition_row
from lockgate.framework.types import timestamp_of

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

Rows = Iterator[tuple[Any, ...]]


def _partition_types(table: TableHandle) -> tuple[Any, ...]:
    return table.schema.types_of(table.schema.partition_keys)


def _time(millis: int | None) -> Any:
    return None if millis is None else timestamp_of(millis * 1000, utc=False)


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


def partitions(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the partitions, sorted by name; what only a catalog's server knows of them is null."""
    fields = [table.schema.field(name) for name in table.schema.partition_keys]
    null = table.options.get_option(PARTITION_DEFAULT_NAME)
    files, mask = shown_files(table, snapshot)
    if read_branch(table.schema) is not None:
        files = with_partitions_of_branch(table, FileTable(files.select(mask)), snapshot)
        mask = files.live
    sums = sums_by(files, mask, bucket=False)
    named = {partition_name(fields, partition, null): found for (partition,), found in sums.items()}
    for name in sorted(named):
        found = named[name]
        yield (name, found.rows, found.size, found.files, _time(found.newest), None, None, None, None)


def buckets(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield the buckets, sorted by partition and number; -2 holds rows that wait for their bucket."""
    types = _partition_types(table)
    sums = sums_by(*shown_files(table, snapshot, waiting=True), bucket=True)
    texts = {partition: partition_row(types, partition) for partition, _ in sums}
    named = {(texts[partition], bucket): found for (partition, bucket), found in sums.items()}
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
