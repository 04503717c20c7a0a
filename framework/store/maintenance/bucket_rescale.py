"""Another number of buckets for the rows of a table, or of some of its partitions.

Files are opened strictly: without a key that they need, KeyMissingError is raised and nothing changes. Memory
holds one partition at a time. Source: Paimon's `RescaleProcedure`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.options import BUCKET, NUM_LEVELS
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.maintenance.compaction import BucketJob, job_rows
from lockgate.framework.store.maintenance.table_compaction import check_keys
from lockgate.framework.store.manifests.manifest import FileSource, ManifestEntry
from lockgate.framework.store.merge.merge import KEY_PREFIX, sort_by_key
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.pruning.split import by_bucket, sections_of
from lockgate.framework.store.rows.bucket import assign_buckets
from lockgate.framework.store.scan.readable_files import stored_entries
from lockgate.framework.store.schema.unsupported_features import check_writable
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.changelog import is_unrecorded

if TYPE_CHECKING:
    from lockgate.framework.store.tables.table import Table

Partition = tuple[Any, ...]


@dataclass(frozen=True)
class RescaleResult:
    """What changed; `files_written` is None if a dry run cannot tell, `snapshot_id` if nothing changed."""

    rescaled_partitions_count: int
    files_rewritten: int
    files_written: int | None
    rows: int
    snapshot_id: int | None


def rescale(
    table: Table, buckets: int, chosen: Callable[[Partition], bool], *, dry_run: bool = False
) -> RescaleResult:
    """Divide the rows of the chosen partitions into another number of buckets, in one OVERWRITE snapshot.

    The table's option `bucket` stays. Raises InputError for rows that are not in the changelog yet, and
    CommitConflictError, with nothing changed, if others write to the partitions.
    """
    check_writable(table.schema)
    snapshot = table.latest_snapshot()
    entries = [] if snapshot is None else stored_entries(table, snapshot)
    entries = [each for each in entries if each.total_buckets != buckets and chosen(each.partition)]
    partitions = {each.partition for each in entries}
    rows = sum(each.live_rows for each in entries)
    if dry_run:
        return RescaleResult(len(partitions), len(entries), None if entries else 0, rows, None)
    _check_recorded(table, entries)
    messages, made = [], None
    if snapshot is not None and entries:
        rescaled = _with_buckets(table, buckets)
        messages = _rewritten(rescaled, entries)
        made = _commit(rescaled, snapshot, messages, partitions)
    written = sum(len(each.added) for each in messages)
    return RescaleResult(len(partitions), len(entries), written, rows, made)


def _check_recorded(table: Table, entries: Sequence[ManifestEntry]) -> None:
    """Refuse rows of which no changelog tells yet: an OVERWRITE has none, so that streams would lose them."""
    if any(is_unrecorded(table.schema, entry) for entry in entries):
        raise InputError(
            f"table {table.identifier} has rows that are not in its changelog yet "
            f"('changelog-producer' = {table.schema.changelog_producer!r}): call compact first"
        )


def _with_buckets(table: Table, count: int) -> Table:
    options = {**table.schema.options, BUCKET.key: str(count)}
    return table.sibling(table.identifier, replace(table.schema, options=options))


def _rewritten(table: Table, entries: Sequence[ManifestEntry]) -> list[CommitMessage]:
    groups: dict[Partition, list[list[ManifestEntry]]] = {}
    for bucket in by_bucket(entries):
        groups.setdefault(bucket[0].partition, []).append(bucket)
    jobs = {
        partition: [BucketJob(tuple(sections_of(table.schema, bucket)), 0) for bucket in buckets]
        for partition, buckets in groups.items()
    }
    check_keys(table, [job for each in jobs.values() for job in each])
    messages: list[CommitMessage] = []
    try:
        for partition, each in jobs.items():
            rows = pa.concat_tables([part for job in each for part, _ in job_rows(table, job)])
            _write(table, partition, rows, messages)
    except BaseException:
        table.abort(messages)
        raise
    return messages


def _write(table: Table, partition: Partition, rows: pa.Table, messages: list[CommitMessage]) -> None:
    """Write the rows of a partition: those of a key table sorted, in files of the top level."""
    schema = table.schema
    types = schema.types_of(schema.bucket_keys)
    buckets = assign_buckets(rows, schema.bucket_keys, types, schema.bucket_count)
    level = schema.table_options.get_option(NUM_LEVELS) - 1 if schema.has_primary_key else 0
    keys = [KEY_PREFIX + name for name in schema.trimmed_primary_keys]
    for bucket in np.unique(buckets):
        part = rows.filter(pa.array(buckets == bucket))
        part = sort_by_key(part, keys) if keys else part
        with BucketWriter(
            table, partition, int(bucket), level=level, file_source=FileSource.COMPACT
        ) as writer:
            writer.write(part)
            added = writer.close()
        made = CommitMessage(
            partition, int(bucket), schema.bucket_count, added, collected=dict(writer.collected)
        )
        messages.append(made)


def _commit(
    table: Table, snapshot: Snapshot, messages: Sequence[CommitMessage], partitions: set[Partition]
) -> int:
    try:
        return table.commit(
            messages,
            kind=CommitKind.OVERWRITE,
            base_snapshot_id=snapshot.id,
            overwrite=lambda partition: partition in partitions,
        ).id
    except BaseException:
        table.abort(messages)
        raise
