"""`rescale`: another number of buckets for the rows of a table, or of some of its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.options.table_options import BUCKET, NUM_LEVELS
from lockgate.framework.store import (
    CommitKind,
    CommitMessage,
    FileSource,
    ManifestEntry,
    SetOption,
    Snapshot,
    Table,
    assign_buckets,
    check_writable,
    grant,
    stored_entries,
)
from lockgate.framework.store.maintenance import BucketJob, job_rows
from lockgate.framework.store.merge.merge import KEY_PREFIX, sort_by_key
from lockgate.framework.store.pruning.split import by_bucket, sections_of
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.changelog import is_unrecorded
from lockgate.procedures.arguments import PARTITIONS, WHERE, parse_selection
from lockgate.procedures.builtin.compact.compact import check_keys
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

Partition = tuple[Any, ...]


class Rescale(Procedure):
    """Divides the rows of partitions into another number of buckets, in one OVERWRITE snapshot.

    Opens every file strictly: without a key that the files need, it raises KeyMissingError and changes
    nothing. Memory holds one partition at a time. Without `partitions` and `where`, the table's option
    `bucket` follows; killed before that, it can be called again. Source: Paimon's `RescaleProcedure`.
    """

    name = "rescale"
    description = "Divide the rows of a table, or of partitions, into another number of buckets."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("bucket_num", "INT", None, "the number of buckets (default: the table's option 'bucket')"),
        Parameter("partitions", "STRING", None, PARTITIONS),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be rewritten"),
        Parameter("where", "STRING", None, WHERE),
    )
    result = (
        ("rescaled_partitions_count", "BIGINT"),
        ("files_rewritten", "BIGINT"),
        ("files_written", "BIGINT"),
        ("rows", "BIGINT"),
        ("snapshot_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Rescale; CommitConflictError, with nothing changed, if others write to the partitions."""
        table = context.table(arguments["table"])
        grant(table, Action.ALTER)
        check_writable(table.schema)
        count = _count(table, arguments["bucket_num"])
        chosen = parse_selection(arguments["partitions"], arguments["where"], table.schema)
        snapshot = table.latest_snapshot()
        entries = [] if snapshot is None else stored_entries(table, snapshot)
        entries = [each for each in entries if each.total_buckets != count and chosen(each.partition)]
        partitions = {each.partition for each in entries}
        rows = sum(each.live_rows for each in entries)
        if arguments["dry_run"]:
            return [(len(partitions), len(entries), None if entries else 0, rows, None)]
        _check_recorded(table, entries)
        messages, made = [], None
        if snapshot is not None and entries:
            rescaled = _with_buckets(table, count)
            messages = _rewritten(rescaled, entries)
            made = _commit(rescaled, snapshot, messages, partitions)
        if not (arguments["partitions"] or arguments["where"]) and count != table.schema.bucket_count:
            context.catalog.alter_table(str(table.identifier), [SetOption(BUCKET.key, str(count))])
        written = sum(len(each.added) for each in messages)
        return [(len(partitions), len(entries), written, rows, made)]


def _count(table: Table, wanted: int | None) -> int:
    now = table.schema.bucket_count
    if now < 1:
        raise InputError(
            f"table {table.identifier} has 'bucket' = '{now}': only tables with a fixed number of buckets "
            "are rescaled"
        )
    if wanted is not None and wanted < 1:
        raise InputError(f"bucket_num must be 1 or more, not {wanted}")
    return wanted or now


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
