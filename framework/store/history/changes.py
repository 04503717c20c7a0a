"""Changes: what each commit did to the rows of a table, for caches and streams that follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError, SnapshotNotFoundError
from lockgate.framework.access import Action
from lockgate.framework.store.grants import grant
from lockgate.framework.store.manifests.manifest import DataFileMeta, FileKind, ManifestEntry, live_entries
from lockgate.framework.store.manifests.manifest_files import partitions_in
from lockgate.framework.store.merge.group_codes import group_codes
from lockgate.framework.store.merge.merge import VALUE_KIND, MergePlan, RowKind, merge_plan, merge_tables
from lockgate.framework.store.metadata.generations import generation_of
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.pruning.split import by_bucket, key_order
from lockgate.framework.store.scan.read import FileReader, no_columns
from lockgate.framework.store.scan.read_request import ReadRequest, require_unrestricted
from lockgate.framework.store.scan.readable_files import can_block, waits
from lockgate.framework.store.scan.snapshot_selection import Between
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import (
    check_known_types,
    check_no_fallback_branch,
    check_readable,
)
from lockgate.framework.store.write.newest_rows import newest_rows
from lockgate.pushdown import AlwaysTrue

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

Where: TypeAlias = tuple[tuple[Any, ...], int]


@dataclass(frozen=True)
class Change:
    """The changes of one snapshot.

    `rows` has the columns asked for and `_VALUE_KIND` (int8: 0 +I, 1 -U, 2 +U, 3 -D) in the end: the newest
    row of each key that the snapshot wrote, or all rows it appended. +I and +U set a key's row, -U and -D
    remove it; a removed row may hold nothing but its key. In tables with `sequence.field`, rows that are
    older than those they would replace are left out: they changed nothing.

    With `needs_reload` there are no rows, because rows alone would mislead: read the table again as of
    `snapshot_id`. So it is for an OVERWRITE, which also removes rows it does not name, and for a commit whose
    writer began before another that was committed first: some of its rows are older than those they would
    replace. In key tables with deletion vectors or postponed buckets it is for each compaction, which shows
    the rows that others have committed before; their own commits are left out.
    """

    snapshot_id: int
    kind: CommitKind
    rows: pa.Table
    needs_reload: bool = False


def read_changes(table: TableHandle, request: ReadRequest) -> Iterator[Change]:
    """Yield the changes of each snapshot of the range `between` of a request, oldest first.

    Snapshots that change no rows (ANALYZE, and COMPACT where nothing waits for it) are left out, and so are
    OVERWRITE snapshots if the range says so. Columns, `strict` and `principal` are those of the request; rows
    have the schema of the table. Raises before anything is read: InputError for a request without a range, or
    with a wish that changes cannot meet, SnapshotNotFoundError if one of the snapshots has expired or does
    not exist yet, ColumnNotFoundError for unknown columns, and AccessDeniedError where rows or values are
    hidden from the current user, since a change may name a row by its key alone, which no row filter can
    judge.
    """
    between = _range_of(request)
    schema = table.schema
    check_readable(schema)
    check_no_fallback_branch(schema)
    names = tuple(dict.fromkeys(schema.field_names if request.columns is None else request.columns))
    for name in names:
        schema.field(name)
    check_known_types(schema, names)
    require_unrestricted(table, grant(table, Action.SELECT, names, request.principal), "changes")
    snapshots = []
    for number in range(between.after + 1, between.upto + 1):
        try:
            snapshots.append(table.snapshot(number))
        except SnapshotNotFoundError as error:
            raise SnapshotNotFoundError(
                f"changes after snapshot {between.after} up to {between.upto}: {error}"
            ) from None
    if between.leave_out_overwrites:
        snapshots = [each for each in snapshots if each.commit_kind is not CommitKind.OVERWRITE]
    return _changes(table, schema, names, snapshots, request.strict)


def _range_of(request: ReadRequest) -> Between:
    """Return the range of a request; InputError unless changes can meet all that it wishes."""
    between = request.between
    if between is None:
        raise InputError("changes need a range of snapshots: give `between` in the request")
    if between.after > between.upto:
        raise InputError(
            f"a range starts before it ends: after {between.after}, up to {between.upto} is empty"
        )
    # A row that goes may be named by its key alone, so that no predicate can judge it.
    refused = {
        "changelogs": between.of_changelogs,
        "states": bool(between.states),
        "predicate": request.predicate != AlwaysTrue(),
        "limit": request.limit is not None,
        "order": bool(request.order),
        "read_optimized": request.read_optimized,
    }
    given = [name for name, wished in refused.items() if wished]
    if given:
        raise InputError(f"changes take no {', '.join(given)}: leave it out, and filter the rows")
    return between


def _changes(
    table: TableHandle,
    schema: TableSchema,
    names: tuple[str, ...],
    snapshots: Sequence[Snapshot],
    strict: bool,
) -> Iterator[Change]:
    reader = FileReader(table, schema, strict=strict)
    plan = merge_plan(schema)
    keys = schema.primary_keys if schema.moves_keys else ()
    for snapshot in snapshots:
        if snapshot.commit_kind is CommitKind.ANALYZE:
            continue
        late = can_block(schema, snapshot)
        if snapshot.commit_kind is CommitKind.COMPACT and not late:
            continue
        entries = table.manifests.delta_entries(snapshot)
        if late:
            if snapshot.commit_kind is not CommitKind.APPEND or not all(
                waits(entry, schema, snapshot) for entry in entries
            ):
                yield Change(snapshot.id, CommitKind.OVERWRITE, _table([], reader, names), needs_reload=True)
            continue
        removes = any(entry.kind is FileKind.DELETE for entry in entries)
        # Before or after the table was replaced by another; that is an OVERWRITE on the way.
        replaced = generation_of(table.schema_of(snapshot.schema_id)) != generation_of(schema)
        if removes or replaced or snapshot.commit_kind is CommitKind.OVERWRITE:
            yield Change(snapshot.id, CommitKind.OVERWRITE, _table([], reader, names), needs_reload=True)
            continue
        if plan is None:
            parts = [_bucket_rows(table, reader, bucket, names, plan) for bucket in by_bucket(entries)]
            yield Change(snapshot.id, snapshot.commit_kind, _table(parts, reader, names))
            continue
        before = _files_before(table, snapshot, entries)
        if plan.reads_all_rows:
            wanted = tuple(dict.fromkeys((*plan.system_columns, *plan.companions(names), *names, *keys)))
            parts = [
                _merged_again(table, reader, bucket, before, wanted, plan) for bucket in by_bucket(entries)
            ]
            yield Change(snapshot.id, snapshot.commit_kind, _table(_moved(parts, keys), reader, names))
            continue
        if not schema.sequence_fields and _adds_older_rows(before, entries):
            yield Change(snapshot.id, snapshot.commit_kind, _table([], reader, names), needs_reload=True)
            continue
        wanted = tuple(dict.fromkeys((*plan.system_columns, *names, *keys)))
        parts = []
        for bucket in by_bucket(entries):
            rows = _bucket_rows(table, reader, bucket, wanted, plan)
            if schema.sequence_fields:
                rows = newest_rows(table, reader, plan, rows, _older(before, bucket))
            parts.append(rows)
        yield Change(snapshot.id, snapshot.commit_kind, _table(_moved(parts, keys), reader, names))


def _files_before(
    table: TableHandle, snapshot: Snapshot, added: Sequence[ManifestEntry]
) -> dict[Where, list[ManifestEntry]]:
    """Return the files that were live before a snapshot in the buckets it adds files to."""
    concerns = partitions_in({entry.partition for entry in added})
    manifests = [meta for meta in table.manifests.base_manifests(snapshot) if concerns(meta)]
    before = live_entries(entry for meta in manifests for entry in table.manifests.read_manifest(meta))
    touched = {(entry.partition, entry.bucket) for entry in added}
    found: dict[Where, list[ManifestEntry]] = {}
    for entry in before:
        if (entry.partition, entry.bucket) in touched:
            found.setdefault((entry.partition, entry.bucket), []).append(entry)
    return found


def _older(
    before: Mapping[Where, list[ManifestEntry]], bucket: Sequence[ManifestEntry]
) -> list[ManifestEntry]:
    """Return the files from before that may share keys with those of a bucket."""
    older = before.get((bucket[0].partition, bucket[0].bucket), [])
    return [old for old in older if any(_overlap(old.file, new.file) for new in bucket)]


def _merged_again(
    table: TableHandle,
    reader: FileReader,
    bucket: Sequence[ManifestEntry],
    before: Mapping[Where, list[ManifestEntry]],
    names: tuple[str, ...],
    plan: MergePlan,
) -> pa.Table:
    """Return the merged rows of the keys that a snapshot wrote."""
    # The order of `split.key_sections`: of rows that are equal in all, that of the later file is newer.
    older = sorted(_older(before, bucket), key=lambda entry: -entry.file.level)
    rows = _bucket_rows(table, reader, [*older, *bucket], names, plan)
    written = [reader.whole(*_place(table, entry), plan.key, _values(table, entry)) for entry in bucket]
    codes, _ = group_codes(
        [pa.concat_tables([*written, rows.select(list(plan.key))])[name] for name in plan.key],
        sum(part.num_rows for part in written) + rows.num_rows,
    )
    count = len(codes) - rows.num_rows
    return rows.filter(pa.array(np.isin(codes[count:], codes[:count])))


def _place(table: TableHandle, entry: ManifestEntry) -> tuple[str, DataFileMeta]:
    return table.paths.data_file(entry.partition, entry.bucket, entry.file), entry.file


def _values(table: TableHandle, entry: ManifestEntry) -> dict[str, Any]:
    return dict(zip(table.schema.partition_keys, entry.partition, strict=True))


def _adds_older_rows(before: Mapping[Where, list[ManifestEntry]], added: Sequence[ManifestEntry]) -> bool:
    """Say whether rows of a key may have been newer before a snapshot than those it adds, by metadata alone.

    Writers number their rows from what they see when they begin. Of two that begin together, the one that
    commits last may have the lower numbers, and its rows then lose against those that are there.
    """
    return any(
        entry.file.min_sequence_number < old.file.max_sequence_number and _overlap(entry.file, old.file)
        for entry in added
        for old in before.get((entry.partition, entry.bucket), ())
    )


def _overlap(one: DataFileMeta, other: DataFileMeta) -> bool:
    if not (one.min_key and one.max_key and other.min_key and other.max_key):
        return True
    return key_order(one.min_key) <= key_order(other.max_key) and key_order(other.min_key) <= key_order(
        one.max_key
    )


def _bucket_rows(
    table: TableHandle,
    reader: FileReader,
    entries: Sequence[ManifestEntry],
    names: tuple[str, ...],
    plan: MergePlan | None,
) -> pa.Table:
    files = [reader.whole(*_place(table, entry), names, _values(table, entry)) for entry in entries]
    if plan is not None:
        return merge_tables(plan, files, keep_deletes=True)
    rows = sum(file.num_rows for file in files)
    appended = pa.concat_tables(files, promote_options="default") if names else no_columns(rows)
    return appended.append_column(pa.field(VALUE_KIND, pa.int8()), pa.nulls(rows, pa.int8()).fill_null(0))


def _table(parts: Sequence[pa.Table], reader: FileReader, names: tuple[str, ...]) -> pa.Table:
    schema = reader.output_schema((*names, VALUE_KIND))
    shown = [part.select(schema.names).cast(schema) for part in parts]
    return pa.concat_tables(shown or [schema.empty_table()])


def _moved(parts: Sequence[pa.Table], keys: tuple[str, ...]) -> Sequence[pa.Table]:
    """Leave out that a key went from one partition where it came to another; `keys`: none move."""
    if not keys or len(parts) < 2:
        return parts
    rows = pa.concat_tables(parts)
    codes, count = group_codes([rows[name] for name in keys], rows.num_rows)
    gone = np.isin(rows[VALUE_KIND].to_numpy(), (RowKind.UPDATE_BEFORE, RowKind.DELETE))
    came = np.zeros(count, np.bool_)
    came[codes[~gone]] = True
    return [rows.filter(pa.array(~(gone & came[codes])))]
