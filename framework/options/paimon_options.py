"""The options of Paimon's tables that Lockgate does not have: what they do here, and why.

With Lockgate's own the list is closed: an option that changes rows is applied, or tables with it are refused.
Source: Paimon's `CoreOptions`, `OrcOptions`, `IcebergOptions` and the options of its Flink, Spark and Hive
connectors, 0.2 to the master of 2026-08-22. Tests compare the list with theirs: a new name fails them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockgate.framework.options.option import Change, Effect, Option

_FALSE = "false"


def _options(
    keys: str, effect: Effect, doc: str, *off: str, needs_key: bool = False, change: Change = Change.ANY_TIME
) -> Iterator[Option[Any]]:
    for key in keys.split():
        yield Option(key, str, "", doc, effect=effect, off=frozenset(off), needs_key=needs_key, change=change)


_OTHER_BRANCH = "partitions that the table lacks come from another branch"
_REFUSED = (
    *_options(
        "type",
        Effect.NOT_READ,
        "only tables of type 'table' have their rows in files of their own",
        "table",
        change=Change.WITHOUT_ROWS,
    ),
    *_options("scan.fallback-snapshot-branch", Effect.NOT_READ, _OTHER_BRANCH),
    *_options(
        "scan.fallback-delta-branch",
        Effect.NOT_READ,
        "partitions that the table lacks come from two other branches",
    ),
    *_options(
        "chain-table.enabled",
        Effect.NOT_READ,
        "rows of a partition are merged from those of several branches",
        _FALSE,
    ),
    *_options(
        "query-auth.enabled",
        Effect.NOT_READ,
        "another catalog, which is not asked here, decides who may see which rows and columns",
        _FALSE,
    ),
    *_options(
        "primary-key.nullable", Effect.FILES_NOT_READ, "keys may be null, and nulls are one key then", _FALSE
    ),
    *_options(
        "pk-clustering-override",
        Effect.FILES_NOT_READ,
        "files of a key table are sorted by other columns than the key",
        _FALSE,
        needs_key=True,
    ),
    *_options(
        "sequence.snapshot-ordering",
        Effect.FILES_NOT_READ,
        "the snapshot decides which row of a key is newest",
        _FALSE,
        needs_key=True,
    ),
    *_options(
        "record-level.expire-time", Effect.FILES_NOT_READ, "rows vanish when they are old", needs_key=True
    ),
    *_options(
        "fields.<column>.map.storage-layout",
        Effect.FILES_NOT_READ,
        "maps are stored in another layout",
        "default",
    ),
    *_options(
        "branch",
        Effect.NOT_WRITTEN,
        "its rows are those of a branch, which is written as `table$branch_name`",
        "main",
    ),
    *_options("scan.fallback-branch", Effect.NOT_WRITTEN, _OTHER_BRANCH),
    *_options(
        "scan.primary-branch",
        Effect.NOT_WRITTEN,
        "partitions come from another branch that has them, not from the table",
    ),
    *_options(
        "upsert-key",
        Effect.NOT_WRITTEN,
        "an INSERT replaces rows that have the same values of these columns",
    ),
    *_options(
        "write.sequence-number-init-mode",
        Effect.NOT_WRITTEN,
        "each snapshot must note its largest sequence number for the next writer",
        "scan",
        needs_key=True,
    ),
    *_options(
        "scan.mode log.scan",
        Effect.SELECTS,
        "it selects a part of the table's history",
        *("default", "latest-full", "full", "latest"),
    ),
    *_options(
        """
        scan.snapshot-id scan.tag-name scan.version scan.timestamp scan.timestamp-millis
        log.scan.timestamp-millis scan.watermark
        """,
        Effect.SELECTS,
        "it selects an older state of the table",
    ),
    *_options(
        """
        incremental-between incremental-between-timestamp incremental-to-auto-tag scan.creation-time-millis
        scan.file-creation-time-millis
        """,
        Effect.SELECTS,
        "it selects what was added in a part of the table's history",
    ),
    *_options("scan.bucket", Effect.SELECTS, "it selects one bucket"),
    *_options("batch-scan-mode", Effect.SELECTS, "it selects a part of the table's files", "none"),
)

_IGNORED: dict[str, str] = {
    "where or how other writers write files, which is read from manifests and the files themselves": """
        async-file-write changelog-file.* compaction.* data-file.external-paths* data-file.prefix
        file-index.* file.block-size file.compression.zstd-level file.suffix.include.compression
        index-file-in-data-file-dir local-merge-buffer-size local-sort.* manifest-sort.*
        manifest.compression manifest.delete-file-drop-stats manifest.full-compaction-threshold-size
        manifest.merge-optimize.enabled metadata.stats-dense-store
        metadata.stats-keep-first-n-columns metadata.stats-mode.per.level num-sorted-run.*
        overwrite-upgrade page-size parquet.* sort-* spill-compression spill-compression.zstd-level
        target-file-row-num write-buffer-* write-manifest-cache write-max-writers-to-spill
        write.batch-memory write.batch-size write.compaction-skip write.use-v2-write cache-page-size
        local-kv-db.* rocksdb.* commit.force-compact full-compaction.delta-commits
        zorder.var-length-contribution clustering.* delete-file.thread-num file-operation.thread-num
        data-file.thin-mode
    """,
    "how fast, in how many parts or with how much caution others read the same rows": """
        bucket-append-ordered file-reader-async-threshold read.allow.fullScan read.batch-size
        read.shuffle-bucket-with-partition scan.dedicated-split-generation scan.infer-parallelism
        scan.infer-parallelism.max scan.manifest.parallelism scan.max-splits-per-task
        scan.parallelism scan.plan-auto-tag-for-read.time-retained scan.plan-sort-partition
        scan.push-down scan.split-enumerator.* source.* paimon.* global-index.*
        full-text-index.search-mode scalar-index.search-mode vector-index.search-mode
        vector-search.* pk-bitmap.index.columns pk-btree.index.columns pk-full-text.index.columns
        pk-multivalue.index.columns pk-vector.index.columns requiredSparkConfsCheck.enabled
    """,
    "rows that others leave out because a file is damaged or lost are an error here": """
        scan.ignore-corrupt-files scan.ignore-lost-files scan.fallback-branch.read-fail-fast
    """,
    "of streams, which begin and end where the stream says": """
        consumer-id consumer.changelog-only consumer.ignore-progress consumer.mode
        continuous.discovery-interval read.changelog read.stream.* scan.bounded
        scan.bounded.watermark scan.max-snapshot.count scan.remove-normalize scan.watermark.*
        stream-scan-mode streaming-read* streaming.read.snapshot.delay log.* kafka.* end-input.*
        chain-table.streaming.merge-snapshot
    """,
    "side effects of other engines' commits and jobs, which change no row here": """
        changelog.* commit.callback* commit.custom-listeners commit.discard-duplicate-files
        commit.force-create-snapshot commit.strict-mode.last-safe-snapshot commit.user-prefix
        filesystem.job-level-settings.enabled metadata.iceberg* metastore.*
        partition.end-input-to-done partition.expiration-* partition.idle-time-*
        partition.mark-done* partition.sink-strategy partition.time-interval partition.timestamp-*
        precommit-compact sink.* snapshot.clean-empty-directories
        snapshot.expire.clean-empty-directories snapshot.expire.execution-mode
        snapshot.ignore-empty-commit snapshot.watermark-idle-timeout tag.* unaware-bucket.*
        visibility-callback.* cross-partition-upsert.* row-tracking.partition-group-on-commit
    """,
    "how a statement of another engine is understood; a statement here says itself what it does": """
        add-column-before-partition alter-column-null-to-not-null.disabled auto-create
        disable-explicit-type-casting dynamic-partition-overwrite legacy-timestamp-mapping.enabled
        write.data-evolution.* write.hive-style-dynamic-partition.enabled write.merge-schema*
        table-read.sequence-number.enabled key-value.sequence_number.enabled
        incremental-between-scan-mode incremental-between-tag-to-snapshot
    """,
    "says more of another option, and nothing without it": """
        chain-table.chain-partition-keys chain-table.split.key-range-enabled data-evolution.*
        deletion-vector.* deletion-vectors.* delete.force-produce-changelog dynamic-bucket.*
        force-lookup lookup-compact lookup-compact.max-interval lookup-wait postpone.*
        record-level.* changelog-producer.*
        fields.<column>.map.shared-shredding.max-columns
        fields.<column>.map.shared-shredding.column-placement-policy
    """,
    "of a kind of table or of columns that are refused by their type": """
        blob-* blob.* csv.* delimiter escape field-delimiter format-table.* header json.* lineSep
        materialized-table.* mode nullvalue object-location quote seq text.* variant.* vector-field
        vector.file.format vector.target-file-size
    """,
    "of lookups that other engines make": """
        lookup.blob-as-descriptor lookup.cache.high-priority-pool-ratio lookup.dynamic-partition
        lookup.dynamic-partition.refresh.async
    """,
    "of releases before 0.4, and passed over by every later one": """
        write-mode
    """,
}

PAIMON_OPTIONS = (
    *_REFUSED,
    *(option for doc, keys in _IGNORED.items() for option in _options(keys, Effect.IGNORED, doc)),
)
