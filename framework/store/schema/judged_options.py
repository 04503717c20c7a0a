"""Every option of Paimon, and its effect here: the one list that readers and writers check.

An option that changes a table's rows is supported or refused by its name; the list is closed. Source:
Paimon's `CoreOptions`, `OrcOptions`, `IcebergOptions` and the options of its Flink, Spark and Hive
connectors, 0.2 to the master of 2026-08-22. Tests compare the list with theirs: a new name fails them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lockgate.errors import OptionError
from lockgate.framework.options import KNOWN, is_known


class Verdict(Enum):
    """A verdict on an option of a table."""

    HONOURED = "honoured"
    HARMLESS = "harmless for rows"
    NOT_WRITTEN = "refused for writing"
    # Of a snapshot: how its files hold rows, by the schema that it was committed with.
    STORED = "refused for reading and writing, by the schema of what is read"
    # Of the table as it is now, whichever snapshot is read.
    ELSEWHERE = "refused for reading and writing"
    SELECTS = "refused for reading, unless the query says itself what it reads"


@dataclass(frozen=True)
class Judgement:
    """The verdict on an option and its reason.

    `off` are the values by which it means nothing. `of_keys`: it means something in key tables only.
    """

    verdict: Verdict
    why: str
    off: frozenset[str] = frozenset()
    of_keys: bool = False

    def applies(self, value: str, *, has_key: bool) -> bool:
        """Say whether an option with this value means anything in a table."""
        text = value.strip().lower()
        return bool(text) and text not in self.off and (has_key or not self.of_keys)


_OFF = frozenset({"false"})

# Names of options that are refused, each with the values by which it is off.
_REFUSED: dict[str, Judgement] = {
    "type": Judgement(
        Verdict.ELSEWHERE,
        "only tables of type 'table' have their rows in files of their own making",
        frozenset({"table"}),
    ),
    "branch": Judgement(
        Verdict.NOT_WRITTEN,
        "its rows are those of a branch, which is written as `table$branch_name`",
        frozenset({"main"}),
    ),
    "scan.fallback-branch": Judgement(
        Verdict.NOT_WRITTEN, "partitions that the table lacks come from another branch"
    ),
    "scan.primary-branch": Judgement(
        Verdict.NOT_WRITTEN, "partitions come from another branch that has them, not from the table"
    ),
    "scan.fallback-snapshot-branch": Judgement(
        Verdict.ELSEWHERE, "partitions that the table lacks come from another branch"
    ),
    "scan.fallback-delta-branch": Judgement(
        Verdict.ELSEWHERE, "partitions that the table lacks come from two other branches"
    ),
    "chain-table.enabled": Judgement(
        Verdict.ELSEWHERE, "rows of a partition are merged from those of several branches", _OFF
    ),
    "query-auth.enabled": Judgement(
        Verdict.ELSEWHERE, "a catalog that is not asked here says who may see which rows and columns", _OFF
    ),
    "data-evolution.enabled": Judgement(Verdict.STORED, "columns of one row lie in several files", _OFF),
    "primary-key.nullable": Judgement(Verdict.STORED, "keys may be null, and nulls are one key then", _OFF),
    "pk-clustering-override": Judgement(
        Verdict.STORED, "files of a key table are sorted by other columns than the key", _OFF, of_keys=True
    ),
    "sequence.snapshot-ordering": Judgement(
        Verdict.STORED, "the snapshot says which row of a key is newest", _OFF, of_keys=True
    ),
    "record-level.expire-time": Judgement(Verdict.STORED, "rows vanish when they are old", of_keys=True),
    "row-tracking.enabled": Judgement(
        Verdict.NOT_WRITTEN, "rows have ids of their own, which every change must hand on", _OFF
    ),
    "upsert-key": Judgement(
        Verdict.NOT_WRITTEN, "an INSERT replaces rows that have the same values of these columns"
    ),
    "write.sequence-number-init-mode": Judgement(
        Verdict.NOT_WRITTEN,
        "each snapshot must note its largest sequence number for the next writer",
        frozenset({"scan"}),
        of_keys=True,
    ),
}
_NEWEST = frozenset({"default", "latest-full", "full", "latest"})
_REFUSED |= {
    key: Judgement(Verdict.SELECTS, "it selects a part of the table's history", _NEWEST)
    for key in ("scan.mode", "log.scan")
}
_REFUSED |= {
    key: Judgement(Verdict.SELECTS, "it selects an older state of the table")
    for key in (
        "scan.snapshot-id",
        "scan.tag-name",
        "scan.version",
        "scan.timestamp",
        "scan.timestamp-millis",
        "log.scan.timestamp-millis",
        "scan.watermark",
    )
}
_REFUSED |= {
    key: Judgement(Verdict.SELECTS, "it selects what was added in a part of the table's history")
    for key in (
        "incremental-between",
        "incremental-between-timestamp",
        "incremental-to-auto-tag",
        "scan.creation-time-millis",
        "scan.file-creation-time-millis",
    )
}
_REFUSED["scan.bucket"] = Judgement(Verdict.SELECTS, "it selects one bucket")
_COMPACTOR_ONLY = frozenset({"none"})
_REFUSED["batch-scan-mode"] = Judgement(
    Verdict.SELECTS, "it selects a part of the table's files", _COMPACTOR_ONLY
)

# Options with values that are understood, or checked where they are used: `options`, `unsupported_features`
# and `merge` say which.
_HONOURED = """
    aggregation.remove-record-on-delete
    bucket bucket-function.type bucket-key changelog-producer changelog-producer.*
    commit.max-retries commit.max-retry-wait
    compaction.delete-ratio-threshold deletion-vector.index-file.target-size deletion-vectors.bitmap64
    deletion-vectors.enabled write-only
    commit.min-retry-wait commit.timeout consumer.expiration-time data-file.path-directory data-file.thin-mode
    deduplicate.ignore-delete fields.default-aggregate-function file.compression file.format
    file.compression.per.level file.format.per.level dynamic-bucket.max-buckets dynamic-bucket.target-row-num
    file-index.in-manifest-threshold file-index.read.enabled
    first-row.ignore-delete ignore-delete ignore-update-before
    manifest.format manifest.merge-min-count manifest.target-file-size merge-engine metadata.stats-mode
    num-levels orc.compress partial-update.* partition partition.default-name partition.legacy-name
    primary-key rowkind.field scan.partitions sequence.field sequence.field.sort-order snapshot.expire.limit
    snapshot.num-retained.max snapshot.num-retained.min snapshot.time-retained source.split.open-file-cost
    source.split.target-size target-file-size lookup.*
"""

# Harmless, with the reason; a name that ends with * stands for all that begin so.
_HARMLESS: dict[str, str] = {
    "where or how other writers write files, which is read from manifests and the files themselves": """
        async-file-write changelog-file.* compaction.* data-file.external-paths* data-file.prefix
        file-index.* file.block-size file.compression.zstd-level
        file.suffix.include.compression index-file-in-data-file-dir
        local-merge-buffer-size local-sort.* manifest-sort.* manifest.compression
        manifest.delete-file-drop-stats manifest.full-compaction-threshold-size
        manifest.merge-optimize.enabled metadata.stats-dense-store metadata.stats-keep-first-n-columns
        metadata.stats-mode.per.level num-sorted-run.* orc.column.encoding.direct orc.compression.zstd.level
        orc.dictionary.key.threshold orc.write.batch-size overwrite-upgrade page-size parquet.* sort-*
        spill-compression spill-compression.zstd-level target-file-row-num write-buffer-*
        write-manifest-cache write-max-writers-to-spill write.batch-memory write.batch-size
        write.compaction-skip write.use-v2-write cache-page-size local-kv-db.* rocksdb.*
        commit.force-compact full-compaction.delta-commits zorder.var-length-contribution clustering.*
        delete-file.thread-num file-operation.thread-num
    """,
    "how fast, in how many parts or with how much caution others read the same rows": """
        bucket-append-ordered file-reader-async-threshold read.allow.fullScan read.batch-size
        read.shuffle-bucket-with-partition scan.dedicated-split-generation scan.infer-parallelism
        scan.infer-parallelism.max scan.manifest.parallelism scan.max-splits-per-task scan.parallelism
        scan.plan-auto-tag-for-read.time-retained scan.plan-sort-partition scan.push-down
        scan.split-enumerator.* source.* paimon.* global-index.* full-text-index.search-mode
        scalar-index.search-mode vector-index.search-mode vector-search.* pk-bitmap.index.columns
        pk-btree.index.columns pk-full-text.index.columns pk-multivalue.index.columns
        pk-vector.index.columns requiredSparkConfsCheck.enabled
    """,
    "rows that others leave out because a file is damaged or lost are an error here": """
        scan.ignore-corrupt-files scan.ignore-lost-files scan.fallback-branch.read-fail-fast
    """,
    "of streams, which begin and end where the stream says": """
        consumer-id consumer.changelog-only consumer.ignore-progress consumer.mode
        continuous.discovery-interval read.changelog read.stream.* scan.bounded scan.bounded.watermark
        scan.max-snapshot.count scan.remove-normalize scan.watermark.* stream-scan-mode streaming-read*
        streaming.read.snapshot.delay log.* kafka.* end-input.* chain-table.streaming.merge-snapshot
    """,
    "side effects of other engines' commits and jobs, which change no row here": """
        changelog.* commit.callback* commit.custom-listeners commit.discard-duplicate-files
        commit.force-create-snapshot commit.strict-mode.last-safe-snapshot commit.user-prefix
        filesystem.job-level-settings.enabled metadata.iceberg* metastore.* partition.end-input-to-done
        partition.expiration-* partition.idle-time-* partition.mark-done* partition.sink-strategy
        partition.time-interval partition.timestamp-* precommit-compact sink.*
        snapshot.clean-empty-directories snapshot.expire.clean-empty-directories
        snapshot.expire.execution-mode snapshot.ignore-empty-commit snapshot.watermark-idle-timeout tag.*
        unaware-bucket.* visibility-callback.* cross-partition-upsert.*
        row-tracking.partition-group-on-commit
    """,
    "how a statement of another engine is understood; a statement here says itself what it does": """
        add-column-before-partition alter-column-null-to-not-null.disabled auto-create
        disable-explicit-type-casting dynamic-partition-overwrite
        legacy-timestamp-mapping.enabled write.data-evolution.* write.hive-style-dynamic-partition.enabled
        write.merge-schema* table-read.sequence-number.enabled key-value.sequence_number.enabled
        incremental-between-scan-mode incremental-between-tag-to-snapshot path
    """,
    "says more of another option, and nothing without it": """
        chain-table.chain-partition-keys
        chain-table.split.key-range-enabled data-evolution.* deletion-vector.* deletion-vectors.*
        delete.force-produce-changelog dynamic-bucket.* force-lookup lookup-compact
        lookup-compact.max-interval lookup-wait postpone.* record-level.*
    """,
    "of a kind of table or of columns that are refused by their type": """
        blob-* blob.* csv.* delimiter escape field-delimiter format-table.* header json.* lineSep
        materialized-table.* mode nullvalue object-location quote seq text.* variant.* vector-field
        vector.file.format vector.target-file-size
    """,
    "how instants are stored, which the file itself does not tell: see docs/other-engines.md": """
        orc.timestamp-ltz.legacy.type
    """,
    "of releases before 0.4, and passed over by every later one": "write-mode",
}

# Options of one column each: `fields.<column>.<what>`.
_LAYOUT = Judgement(Verdict.STORED, "maps are stored in another layout", frozenset({"default"}))
_AGGREGATION = Judgement(Verdict.HONOURED, "what becomes of the values of a column")
_OF_AGGREGATION = """
    aggregate-function ignore-retract nested-key nested-key-null-strategy nested-sequence-field count-limit
    distinct list-agg-delimiter ts-field sequence-group
"""
_OF_FIELDS: dict[str, Judgement] = {
    "stats-mode": Judgement(Verdict.HONOURED, "statistics of the column"),
    "map.storage-layout": _LAYOUT,
    "map.shared-shredding.max-columns": Judgement(Verdict.HARMLESS, "says more of map.storage-layout"),
    "map.shared-shredding.column-placement-policy": Judgement(
        Verdict.HARMLESS, "says more of map.storage-layout"
    ),
    **dict.fromkeys(_OF_AGGREGATION.split(), _AGGREGATION),
}


_UNDERSTOOD = Judgement(Verdict.HONOURED, "understood here")


def _listed() -> tuple[dict[str, Judgement], tuple[tuple[str, Judgement], ...]]:
    """Return judgements by name, and those of names that begin alike."""
    groups = [(_UNDERSTOOD, _HONOURED)]
    groups += [(Judgement(Verdict.HARMLESS, why), names) for why, names in _HARMLESS.items()]
    found, families = dict(_REFUSED), []
    for judged, names in groups:
        for name in names.split():
            if name.endswith("*"):
                families.append((name[:-1], judged))
            else:
                found.setdefault(name, judged)
    return found, tuple(families)


JUDGED, _FAMILIES = _listed()


def judgement_of(key: str) -> Judgement | None:
    """Return what an option means here; None if it is not known as one of Paimon's."""
    found = _judged(key)
    # What `table_options` declares is understood, though others of its family do nothing here.
    return _UNDERSTOOD if found is not None and found.verdict is Verdict.HARMLESS and key in KNOWN else found


def _judged(key: str) -> Judgement | None:
    found = JUDGED.get(key)
    if found is not None:
        return found
    for what, judged in _OF_FIELDS.items():
        if key.startswith("fields.") and key.endswith(f".{what}"):
            return judged
    return next((judged for prefix, judged in _FAMILIES if key.startswith(prefix)), None)


def check_not_of_others(key: str) -> None:
    """Raise OptionError if a table is to be given an option of Paimon that is not one of ours."""
    judged = None if is_known(key) else judgement_of(key)
    if judged is None:
        return
    if judged.verdict is Verdict.HARMLESS:
        raise OptionError(f"option {key!r} is Paimon's and does nothing here ({judged.why}): leave it out")
    raise OptionError(f"option {key!r} is Paimon's and not supported here: {judged.why}")


def refused(key: str, value: str, verdicts: tuple[Verdict, ...], *, has_key: bool) -> Judgement | None:
    """Return the judgement by which an option with this value is refused; None if it is not."""
    judged = judgement_of(key)
    if judged is None or judged.verdict not in verdicts or not judged.applies(value, has_key=has_key):
        return None
    return judged
