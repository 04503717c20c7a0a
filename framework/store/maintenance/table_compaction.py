"""Compaction of a table: fewer, larger files; in key tables one run of sorted files without deletions.

Files are opened strictly: without a key that they need, KeyMissingError is raised and nothing changes. Rows
that are written concurrently survive; of two compactions of the same files the later one fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lockgate.framework.keys import NoKeys
from lockgate.framework.options import DELETE_RATIO, NUM_LEVELS, ORC_ENCRYPT, ORC_INTEGRITY, TARGET_FILE_SIZE
from lockgate.framework.orc import Audit, in_order, parse_encrypt, thread_count
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.confidential.confidential_columns import (
    confidential_in,
    confidential_in_history,
)
from lockgate.framework.store.confidential.exposed_files import (
    audit_entry,
    indexed_columns_of,
    snapshot_shows,
)
from lockgate.framework.store.confidential.exposed_statistics import ExposedStatistics
from lockgate.framework.store.maintenance.compaction import BucketJob, rewrite
from lockgate.framework.store.maintenance.file_choice import pick_append, pick_keyed, pick_ordered
from lockgate.framework.store.maintenance.idle_partitions import idle_partitions
from lockgate.framework.store.maintenance.ordered_compaction import (
    RowOrder,
    best_share,
    ordered_rows,
    pruned_share,
)
from lockgate.framework.store.manifests.manifest import FileKind, FileSource, ManifestEntry
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.framework.store.pruning.split import by_bucket
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.scan.readable_files import stored_entries
from lockgate.framework.store.schema.unsupported_features import check_writable

if TYPE_CHECKING:
    from lockgate.framework.store.tables.table import Table

_MOST_AT_ONCE = 4
# Of files as stored, whose rows are merged in memory.
_BYTES_AT_ONCE = 512 << 20

Report = Callable[[str], None]


class OrderEngine(Protocol):
    """An engine that orders the rows of jobs with more of them than one process holds."""

    def takes(self, table: Table, jobs: Sequence[BucketJob], order: RowOrder) -> Callable[[BucketJob], bool]:
        """Return a predicate on jobs: whether the engine writes their rows."""

    def rewrite(self, table: Table, snapshot_id: int, job: BucketJob, order: RowOrder) -> CommitMessage:
        """Write the new files of a job and return what to commit; on an error they are deleted."""


@dataclass(frozen=True)
class CompactRequest:
    """What to compact: the partitions that are `chosen`, and of these the ones without new files for a while.

    `full`: every file that can be improved; else only buckets with many small files or runs, and in an order
    only new files. `report` takes a line on each step.
    """

    chosen: Callable[[tuple[object, ...]], bool] = lambda partition: True
    full: bool = True
    order: RowOrder | None = None
    partition_idle_time: str | None = None
    order_engine: OrderEngine | None = None
    dry_run: bool = False
    report: Report = lambda text: None


@dataclass(frozen=True)
class CompactResult:
    """What a compaction did to the chosen partitions; None for what a dry run cannot tell, and shares without
    an order.

    A pruned share is that of files that a filter leaves out by bounds; the bound is that of a perfect curve.
    """

    buckets: int
    files_rewritten: int
    files_written: int | None
    files_before: int
    files_after: int | None
    bytes_before: int
    bytes_after: int | None
    rows_before: int
    rows_after: int | None
    snapshot_id: int | None
    pruned_share_before: float | None
    pruned_share_after: float | None
    pruned_share_bound: float | None


def compact(table: Table, request: CompactRequest) -> CompactResult:
    """Rewrite files in a COMPACT snapshot; the table's rows stay the same.

    Buckets are rewritten side by side as memory permits; it holds the files of a bucket whose keys overlap.
    Raises KeyMissingError before anything is written, CommitConflictError with the new files deleted.
    """
    check_writable(table.schema)
    order = request.order
    snapshot = table.latest_snapshot()
    entries = [] if snapshot is None else stored_entries(table, snapshot)
    entries = [entry for entry in entries if request.chosen(entry.partition)]
    idle = idle_partitions(entries, request.partition_idle_time)
    entries = [entry for entry in entries if idle(entry.partition)]
    stale = _stale_files(table, entries, request.report) | _marked_files(table, entries, full=request.full)
    jobs = (
        _jobs(table, entries, stale, full=request.full)
        if order is None
        else _ordered_jobs(entries, stale, order, full=request.full)
    )
    engine = request.order_engine
    elsewhere = None if engine is None or order is None else engine.takes(table, jobs, order)
    # Without files to rewrite too: manifests may still show values of columns encrypted since.
    shows = snapshot_shows(
        table, snapshot, ExposedStatistics(confidential_in_history(table), table.schema_of)
    )
    if request.dry_run or snapshot is None or not (jobs or shows):
        return _result(table, request, jobs, entries, [], None)
    if jobs:
        check_keys(table, jobs)

    def rewritten(job: BucketJob) -> CommitMessage:
        if order is None:
            return rewrite(table, job)
        if engine is not None and elsewhere is not None and elsewhere(job):
            return engine.rewrite(table, snapshot.id, job, order)
        return rewrite(table, job, ordered_rows(table, job, order))

    at_once = 1 if order or not jobs else _jobs_at_once(jobs)
    messages = _rewrite_all(table, jobs, rewritten, at_once, request.report)
    try:
        committed = table.commit(messages, kind=CommitKind.COMPACT, base_snapshot_id=snapshot.id)
    except BaseException:
        table.abort(messages)
        raise
    return _result(table, request, jobs, entries, messages, committed.id)


def _stale_files(table: Table, entries: Sequence[ManifestEntry], report: Report) -> set[str]:
    """Return the files that are not encrypted as `orc.encrypt` says, by the current keys and with tags.

    Writers without the option leave columns in the clear, those with ORC's encryption alone write no tags,
    and a new version of a key makes earlier files outdated. Indexes of other engines hold
    values in the clear in other files.
    """
    secrets = confidential_in(table.schema)
    plain = ExposedStatistics(secrets, table.schema_of)
    columns: dict[str, frozenset[str]] = {}
    untagged: set[str] = set()
    for entry in entries if secrets else ():
        audit = audit_entry(table, entry, secrets, table.keys)
        if wrong := {*audit.plain, *audit.outdated, *indexed_columns_of(table, entry, plain)}:
            columns[entry.file.file_name] = frozenset(wrong)
        elif _lacks_tags(table, audit):
            untagged.add(entry.file.file_name)
    if columns:
        named = ", ".join(sorted(frozenset().union(*columns.values())))
        report(
            f"compact {table.identifier}: {len(columns)} files hold columns in the clear or under an old "
            f"key: {named}"
        )
    if untagged:
        report(f"compact {table.identifier}: {len(untagged)} encrypted files have no tags")
    return {*columns, *untagged}


def _marked_files(table: Table, entries: Sequence[ManifestEntry], *, full: bool) -> set[str]:
    """Return the files with enough rows deleted by vectors to be rewritten without them."""
    share = 0.0 if full else table.options.get_option(DELETE_RATIO)
    return {
        entry.file.file_name
        for entry in entries
        if entry.vector is not None and entry.vector.cardinality > share * entry.file.row_count
    }


def _lacks_tags(table: Table, audit: Audit) -> bool:
    wants_tags = table.schema.table_options.get_option(ORC_INTEGRITY) != "ignore"
    return wants_tags and audit.encrypted and not audit.tagged


def _jobs(
    table: Table, entries: Sequence[ManifestEntry], stale: Collection[str], *, full: bool
) -> list[BucketJob]:
    options = table.schema.table_options
    target = options.get_option(TARGET_FILE_SIZE)
    jobs = []
    for bucket in by_bucket(entries):
        if table.schema.has_primary_key:
            top = options.get_option(NUM_LEVELS) - 1
            jobs += pick_keyed(bucket, stale, top_level=top, target_size=target, full=full)
        else:
            jobs += pick_append(bucket, stale, target_size=target, full=full)
    return jobs


def _ordered_jobs(
    entries: Sequence[ManifestEntry], stale: Collection[str], order: RowOrder, *, full: bool
) -> list[BucketJob]:
    """Return a job for each bucket with files to order.

    An order of the table's options stays as it is in buckets without new files.
    """
    jobs = []
    for bucket in by_bucket(entries):
        new = [
            entry
            for entry in bucket
            if entry.file.file_source != FileSource.COMPACT or entry.file.file_name in stale
        ]
        jobs += pick_ordered(bucket if full and (new or order.is_given) else new)
    return jobs


def check_keys(table: Table, jobs: Sequence[BucketJob]) -> None:
    """Raise before anything is written if a key is missing, for reading the old files or writing new ones."""
    reader = FileReader(table, table.schema, strict=True)
    for job in jobs:
        for entry in job.entries:
            reader.check_keys(table.paths.data_file(entry.partition, entry.bucket, entry.file))
    encrypt = parse_encrypt(table.schema.table_options.get_option(ORC_ENCRYPT))
    for name in sorted(set(encrypt.values())):
        (table.keys or NoKeys()).current_key(name)


def _rewrite_all(
    table: Table,
    jobs: Sequence[BucketJob],
    rewritten: Callable[[BucketJob], CommitMessage],
    at_once: int,
    report: Report,
) -> list[CommitMessage]:
    """Return what to commit; on an error the new files of all jobs are deleted."""
    messages: dict[int, CommitMessage] = {}
    caller = copy_context()  # the user who asks, for other threads

    def work(number: int) -> None:
        messages[number] = caller.copy().run(rewritten, jobs[number])

    try:
        for number, _ in enumerate(in_order(work, range(len(jobs)), at_once), 1):
            report(f"compact {table.identifier}: {number} of {len(jobs)} groups of files rewritten")
    except BaseException:
        table.abort(list(messages.values()))
        raise
    return [messages[number] for number in range(len(jobs))]


def _jobs_at_once(jobs: Sequence[BucketJob]) -> int:
    """Return how many buckets are rewritten side by side: large ones take the memory of several."""
    largest = max(sum(entry.file.file_size for entry in job.entries) for job in jobs)
    return max(1, min(thread_count(None), _MOST_AT_ONCE, _BYTES_AT_ONCE // max(1, largest)))


def _result(
    table: Table,
    request: CompactRequest,
    jobs: Sequence[BucketJob],
    entries: Sequence[ManifestEntry],
    messages: Sequence[CommitMessage],
    snapshot_id: int | None,
) -> CompactResult:
    before = [entry.file for entry in entries]
    deleted = [entry.file for job in jobs for entry in job.entries]
    bytes_before, bytes_deleted = (sum(file.file_size for file in files) for files in (before, deleted))
    rows_before = sum(entry.live_rows for entry in entries)
    rows_deleted = sum(entry.live_rows for job in jobs for entry in job.entries)
    added = [file for message in messages for file in message.added]
    unknown = request.dry_run and bool(jobs)
    after = None if snapshot_id is None else _entries_after(jobs, entries, messages)
    shares = _shares(table, entries, after, request.order)
    return CompactResult(
        buckets=len({(job.partition, job.bucket) for job in jobs}),
        files_rewritten=len(deleted),
        files_written=None if unknown else len(added),
        files_before=len(before),
        files_after=None if unknown else len(before) + len(added) - len(deleted),
        bytes_before=bytes_before,
        bytes_after=None if unknown else bytes_before + sum(each.file_size for each in added) - bytes_deleted,
        rows_before=rows_before,
        rows_after=None if unknown else rows_before + sum(each.row_count for each in added) - rows_deleted,
        snapshot_id=snapshot_id,
        pruned_share_before=shares[0],
        pruned_share_after=shares[1],
        pruned_share_bound=shares[2],
    )


def _entries_after(
    jobs: Sequence[BucketJob], entries: Sequence[ManifestEntry], messages: Sequence[CommitMessage]
) -> list[ManifestEntry]:
    replaced = {entry.file.file_name for job in jobs for entry in job.entries}
    added = [
        ManifestEntry(FileKind.ADD, message.partition, message.bucket, message.total_buckets, file)
        for message in messages
        for file in message.added
    ]
    return [*(entry for entry in entries if entry.file.file_name not in replaced), *added]


def _shares(
    table: Table,
    before: Sequence[ManifestEntry],
    after: Sequence[ManifestEntry] | None,
    order: RowOrder | None,
) -> tuple[float | None, float | None, float | None]:
    """Return what bounds leave out before and after, and what a perfect curve would."""
    if order is None:
        return None, None, None
    return (
        pruned_share(table, before, order),
        None if after is None else pruned_share(table, after, order),
        best_share(len(before if after is None else after), order),
    )
