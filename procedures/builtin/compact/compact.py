"""`compact`: fewer, larger files; in tables with a primary key, one run of sorted files without deletions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from typing import Any

from lockgate.errors import InputError, nearest
from lockgate.framework.keys import NoKeys
from lockgate.framework.options.clustering_options import INCREMENTAL
from lockgate.framework.options.table_options import (
    DELETE_RATIO,
    NUM_LEVELS,
    ORC_ENCRYPT,
    ORC_INTEGRITY,
    TARGET_FILE_SIZE,
)
from lockgate.framework.orc import Audit, parse_encrypt
from lockgate.framework.orc.sources.parallel import in_order, thread_count
from lockgate.framework.store import (
    CommitKind,
    CommitMessage,
    FileKind,
    FileReader,
    FileSource,
    ManifestEntry,
    Table,
    check_writable,
    secrets_of,
    stored_entries,
)
from lockgate.framework.store.confidential.confidential_columns import secrets_in_history
from lockgate.framework.store.confidential.plain_files import audit_entry, indexed_columns_of, snapshot_shows
from lockgate.framework.store.confidential.plain_statistics import PlainStatistics
from lockgate.framework.store.maintenance import (
    BucketJob,
    RowOrder,
    best_share,
    ordered_rows,
    pick_append,
    pick_keyed,
    pick_ordered,
    pruned_share,
    rewrite,
)
from lockgate.framework.store.maintenance.idle_partitions import idle_partitions
from lockgate.framework.store.pruning.split import by_bucket
from lockgate.procedures.arguments import (
    OPTIONS,
    PARTITIONS,
    WHERE,
    parse_options,
    parse_selection,
    with_options,
)
from lockgate.procedures.builtin.compact.order_engine import spark_orders
from lockgate.procedures.builtin.compact.ordered_by_spark import rewrite_by_spark
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_STRATEGIES = ("full", "minor")
_MOST_AT_ONCE = 4
# Of files as stored, whose rows are merged in memory.
_BYTES_AT_ONCE = 512 << 20
# Options that may differ for one call: how files are written, not what is in them.
_OPTIONS = ("target-file-size", "file.compression", "orc.compress", "metadata.stats-mode")


class Compact(Procedure):
    """Rewrites the files of a table in a COMPACT snapshot; the table's rows stay the same.

    Opens every file strictly: without a key that the files need, it raises KeyMissingError and changes
    nothing. Rows written concurrently survive; of two compactions of the same files the later one
    fails with CommitConflictError, its files deleted. Buckets are rewritten one after the other; memory
    holds at most the files of one bucket whose keys overlap.
    """

    name = "compact"
    description = "Rewrite small or overlapping files of a table into fewer, sorted ones."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("partitions", "STRING", None, PARTITIONS),
        Parameter(
            "compact_strategy",
            "STRING",
            None,
            "'full': every file that can be improved; 'minor': only buckets with five or more small files "
            "or runs, and in an order only files that no compaction has written (default: 'full', or 'minor' "
            "with the option clustering.incremental)",
        ),
        Parameter(
            "order_strategy",
            "STRING",
            None,
            "order of rows in append tables: 'order' by columns, 'zorder' or 'hilbert' along a curve through "
            "them; 'none': as they were written (default: as the options clustering.* say)",
        ),
        Parameter("order_by", "STRING", None, "the columns of the order, comma-separated"),
        Parameter("options", "STRING", None, OPTIONS),
        Parameter(
            "dry_run", "BOOLEAN", False, "only count what would be rewritten; counts of new files are NULL"
        ),
        Parameter("where", "STRING", None, WHERE),
        Parameter(
            "partition_idle_time",
            "STRING",
            None,
            "only partitions whose newest files are older: '1 h' (default: all); not with an order",
        ),
        Parameter(
            "order_engine",
            "STRING",
            "auto",
            "where rows are ordered: 'python': in the process that is called; 'spark': by Spark's tasks; "
            "'auto': by these in a Spark session, for buckets of more than four million rows",
        ),
    )
    result = (
        ("buckets", "INT"),
        ("files_rewritten", "BIGINT"),
        ("files_written", "BIGINT"),
        ("files_before", "BIGINT"),
        ("files_after", "BIGINT"),
        ("bytes_before", "BIGINT"),
        ("bytes_after", "BIGINT"),
        ("rows_before", "BIGINT"),
        ("rows_after", "BIGINT"),
        ("snapshot_id", "BIGINT"),
        ("pruned_share_before", "DOUBLE"),
        ("pruned_share_after", "DOUBLE"),
        ("pruned_share_bound", "DOUBLE"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Compact; results ending in `_before` and `_after` count the chosen partitions as a whole."""
        table = context.table(arguments["table"])
        order = RowOrder.of(table, arguments["order_strategy"], arguments["order_by"])
        if order is not None and order.is_given and arguments["partition_idle_time"]:
            raise InputError("partition_idle_time cannot be used with order_strategy")
        full = _is_full(table, arguments["compact_strategy"], order)
        table = with_options(table, parse_options(arguments["options"]), _OPTIONS)
        check_writable(table.schema)
        chosen = parse_selection(arguments["partitions"], arguments["where"], table.schema)
        snapshot = table.latest_snapshot()
        entries = [] if snapshot is None else stored_entries(table, snapshot)
        entries = [entry for entry in entries if chosen(entry.partition)]
        idle = idle_partitions(entries, arguments["partition_idle_time"])
        entries = [entry for entry in entries if idle(entry.partition)]
        stale = _stale_files(context, table, entries) | _marked_files(table, entries, full=full)
        jobs = (
            _jobs(table, entries, stale, full=full)
            if order is None
            else _ordered_jobs(entries, stale, order, full=full)
        )
        by_spark = spark_orders(context, table, jobs, order, arguments["order_engine"])
        # Without files to rewrite too: manifests may still show values of columns encrypted since.
        shows = snapshot_shows(table, snapshot, PlainStatistics(secrets_in_history(table), table.schema_of))
        if arguments["dry_run"] or snapshot is None or not (jobs or shows):
            counts = _counts(jobs, entries, [], None, dry_run=arguments["dry_run"])
            return [(*counts, *_shares(table, entries, None, order))]
        if jobs:
            check_keys(table, jobs)

        def rewritten(job: BucketJob) -> CommitMessage:
            if order is None:
                return rewrite(table, job)
            if by_spark(job):
                return rewrite_by_spark(context, table, snapshot.id, job, order)
            return rewrite(table, job, ordered_rows(table, job, order))

        at_once = 1 if order or not jobs else _jobs_at_once(jobs)
        messages = _rewrite_all(context, table, jobs, rewritten, at_once)
        try:
            committed = table.commit(messages, kind=CommitKind.COMPACT, base_snapshot_id=snapshot.id)
        except BaseException:
            table.abort(messages)
            raise
        counts = _counts(jobs, entries, messages, committed.id, dry_run=False)
        replaced = {entry.file.file_name for job in jobs for entry in job.entries}
        kept = [entry for entry in entries if entry.file.file_name not in replaced]
        return [(*counts, *_shares(table, entries, [*kept, *_added(messages)], order))]


def _is_full(table: Table, text: str | None, order: RowOrder | None) -> bool:
    if text is None:
        is_new_only = order is not None and table.schema.table_options.get_option(INCREMENTAL)
        return not is_new_only
    if text.lower() not in _STRATEGIES:
        raise InputError(f"compact_strategy cannot be {text!r}{nearest(text, _STRATEGIES)}")
    return text.lower() == "full"


def _added(messages: Sequence[CommitMessage]) -> list[ManifestEntry]:
    return [
        ManifestEntry(FileKind.ADD, message.partition, message.bucket, message.total_buckets, file)
        for message in messages
        for file in message.added
    ]


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


def _stale_files(context: ProcedureContext, table: Table, entries: Sequence[ManifestEntry]) -> set[str]:
    """Return the files that are not encrypted as `orc.encrypt` says, by the current keys and with tags.

    Writers without the option leave columns in the clear, those with ORC's encryption alone write no tags,
    and a new version of a key makes earlier files outdated. Indexes of other engines hold
    values in the clear in other files.
    """
    secrets = secrets_of(table.schema)
    plain = PlainStatistics(secrets, table.schema_of)
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
        context.report(
            f"compact {table.identifier}: {len(columns)} files hold columns in the clear or under an old "
            f"key: {named}"
        )
    if untagged:
        context.report(f"compact {table.identifier}: {len(untagged)} encrypted files have no tags")
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
    context: ProcedureContext,
    table: Table,
    jobs: Sequence[BucketJob],
    rewritten: Callable[[BucketJob], CommitMessage],
    at_once: int,
) -> list[CommitMessage]:
    """Return what to commit; on an error the new files of all jobs are deleted."""
    messages: dict[int, CommitMessage] = {}
    caller = copy_context()  # the user who asks, for other threads

    def work(number: int) -> None:
        messages[number] = caller.copy().run(rewritten, jobs[number])

    try:
        for number, _ in enumerate(in_order(work, range(len(jobs)), at_once), 1):
            context.report(f"compact {table.identifier}: {number} of {len(jobs)} groups of files rewritten")
    except BaseException:
        table.abort(list(messages.values()))
        raise
    return [messages[number] for number in range(len(jobs))]


def _jobs_at_once(jobs: Sequence[BucketJob]) -> int:
    """Return how many buckets are rewritten side by side: large ones take the memory of several."""
    largest = max(sum(entry.file.file_size for entry in job.entries) for job in jobs)
    return max(1, min(thread_count(None), _MOST_AT_ONCE, _BYTES_AT_ONCE // max(1, largest)))


def _counts(
    jobs: Sequence[BucketJob],
    entries: Sequence[ManifestEntry],
    messages: Sequence[CommitMessage],
    snapshot_id: int | None,
    *,
    dry_run: bool,
) -> tuple[Any, ...]:
    before = [entry.file for entry in entries]
    deleted = [entry.file for job in jobs for entry in job.entries]
    bytes_before, bytes_deleted = (sum(file.file_size for file in files) for files in (before, deleted))
    rows_before = sum(entry.live_rows for entry in entries)
    rows_deleted = sum(entry.live_rows for job in jobs for entry in job.entries)
    added = [file for message in messages for file in message.added]
    unknown = dry_run and bool(jobs)

    return (
        len({(job.partition, job.bucket) for job in jobs}),
        len(deleted),
        None if unknown else len(added),
        len(before),
        None if unknown else len(before) + len(added) - len(deleted),
        bytes_before,
        None if unknown else bytes_before + sum(file.file_size for file in added) - bytes_deleted,
        rows_before,
        None if unknown else rows_before + sum(file.row_count for file in added) - rows_deleted,
        snapshot_id,
    )
