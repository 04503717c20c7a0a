"""The options of a table: one typed entry each, validated when a table is created, altered or opened.

Names and defaults are Paimon's where Paimon has the option, and Apache ORC's for `orc.*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from lockgate.errors import OptionError, nearest
from lockgate.framework.options import (
    changelog_options,
    clustering_options,
    index_options,
    layout_options,
    partition_options,
    schema_options,
    tag_options,
)
from lockgate.framework.options.carried_options import ORC_KEYS, is_carried, is_of_column
from lockgate.framework.options.option import (
    Option,
    T,
    _bucket_count,
    at_least,
    one_of,
    parse_bool,
    parse_by_level,
    parse_duration,
    parse_names,
    parse_share,
    parse_size,
    parse_some_size,
    parse_whole,
)

_NO_NAMES: tuple[str, ...] = ()
_NO_LEVELS: Mapping[int, str] = {}

PRIMARY_KEY = Option("primary-key", parse_names, _NO_NAMES, "columns of the primary key, comma-separated")
PARTITION = Option("partition", parse_names, _NO_NAMES, "partition columns, comma-separated")
BUCKET = Option(
    "bucket",
    _bucket_count,
    -1,
    "buckets of each partition; -1: none (append tables) or dynamic (key tables); new key tables get 1",
)
BUCKET_KEY = Option(
    "bucket-key", parse_names, _NO_NAMES, "columns that choose the bucket; default: the primary key"
)
BUCKET_FUNCTION = Option(
    "bucket-function.type",
    str,
    "default",
    "function that computes the bucket",
)
DYNAMIC_BUCKET_TARGET = Option(
    "dynamic-bucket.target-row-num",
    at_least(1),
    2_000_000,
    "number of keys at which a dynamic bucket is full",
)
DYNAMIC_BUCKET_MAX = Option(
    "dynamic-bucket.max-buckets",
    parse_whole,
    -1,
    "largest number of dynamic buckets of a partition; -1: no limit",
)
# Paimon's default; tables created here say orc explicitly.
FILE_FORMAT = Option(
    "file.format",
    str.lower,
    "parquet",
    "format of data files: orc or parquet; avro for reading only",
    shown_default="orc",
)
FILE_COMPRESSION = Option(
    "file.compression",
    one_of("zstd", "snappy", "zlib", "gzip", "lz4", "none"),
    "zstd",
    "compression of data files: zstd, snappy, lz4, none, zlib in ORC and gzip in Parquet",
)
FILE_FORMAT_PER_LEVEL = Option(
    "file.format.per.level",
    parse_by_level,
    _NO_LEVELS,
    "format of data files of some levels, such as `0:parquet,5:orc`",
)
FILE_COMPRESSION_PER_LEVEL = Option(
    "file.compression.per.level",
    parse_by_level,
    _NO_LEVELS,
    "compression of data files of some levels, such as `0:lz4,5:zstd`",
)
MANIFEST_FORMAT = Option(
    "manifest.format", one_of("avro"), "avro", "format of manifests; orc and parquet for reading only"
)
MANIFEST_MERGE_MIN_COUNT = Option(
    "manifest.merge-min-count",
    at_least(2),
    30,
    "number of small manifests at which a commit merges them into one",
)
MANIFEST_TARGET_SIZE = Option(
    "manifest.target-file-size",
    parse_size,
    8 * 2**20,
    "size from which commits no longer merge a manifest",
)
MERGE_ENGINE = Option(
    "merge-engine",
    str.lower,
    "deduplicate",
    "way of merging rows with the same key",
)
IGNORE_DELETE = Option("ignore-delete", parse_bool, False, "true: ignore rows of kind -D and -U")
# Names of older releases, which say the same.
IGNORE_DELETES = (
    IGNORE_DELETE,
    *(
        Option(f"{engine}.ignore-delete", parse_bool, False, "older name of `ignore-delete`")
        for engine in ("first-row", "deduplicate", "partial-update")
    ),
)
IGNORE_UPDATE_BEFORE = Option("ignore-update-before", parse_bool, False, "true: do not write rows of kind -U")
ROWKIND_FIELD = Option(
    "rowkind.field", str, "", "column whose text (`+I`, `-U`, `+U`, `-D`) is the kind of each written row"
)
PARTIAL_UPDATE_REMOVE_ON_DELETE = Option(
    "partial-update.remove-record-on-delete", parse_bool, False, "partial-update: a deletion removes the row"
)
PARTIAL_UPDATE_REMOVE_ON_GROUP = Option(
    "partial-update.remove-record-on-sequence-group",
    parse_names,
    _NO_NAMES,
    "partial-update: columns that order sequence groups; a newest deletion in such a group removes the row",
)
AGGREGATION_REMOVE_ON_DELETE = Option(
    "aggregation.remove-record-on-delete", parse_bool, False, "aggregation: a deletion removes the row"
)
FIELDS_DEFAULT_FUNCTION = Option(
    "fields.default-aggregate-function", str, "", "merge function of columns without one of their own"
)
SEQUENCE_FIELD = Option(
    "sequence.field",
    parse_names,
    _NO_NAMES,
    "columns that order the rows of a key, comma-separated; default: the row written last is newest",
)
SEQUENCE_ORDER = Option(
    "sequence.field.sort-order",
    one_of("ascending", "descending"),
    "ascending",
    "descending: the smallest value is the newest",
)
TARGET_FILE_SIZE = Option(
    "target-file-size", parse_size, 128 * 2**20, "size at which a writer starts a new file"
)
SOURCE_SPLIT_TARGET_SIZE = Option(
    "source.split.target-size",
    parse_some_size,
    128 * 2**20,
    "target bytes per task; several tasks read a larger file, stripe by stripe",
)
SOURCE_SPLIT_OPEN_FILE_COST = Option(
    "source.split.open-file-cost",
    parse_size,
    4 * 2**20,
    "minimum size charged per file when packing files into tasks",
)
SOURCE_SPLIT_DRIVER_MAX_SIZE = Option(
    "source.split.driver-max-size",
    parse_size,
    16 * 2**20,
    "bytes of files, or of stripes that indexes leave, up to which the driver reads them itself; 0: never",
)
METADATA_STATS_MODE = Option(
    "metadata.stats-mode",
    str.lower,
    "truncate(16)",
    "statistics of columns in manifests: none, counts, full, truncate(n)",
)
ORC_ENCRYPT = Option(
    "orc.encrypt",
    str,
    "",
    "columns to encrypt and their keys, in Apache ORC's syntax",
)
ORC_MASK = Option(
    "orc.mask",
    str,
    "",
    "mask of each encrypted column, shown to readers without the key",
)
ORC_HIDE_CARDINALITY = Option(
    "orc.encrypt.hide-cardinality",
    parse_bool,
    False,
    "write no dictionaries, because their size shows the number of distinct values",
)
# Tables with encrypted columns are created with "require"; earlier tables have files without tags.
ORC_INTEGRITY = Option(
    "orc.integrity",
    one_of("require", "verify", "ignore"),
    "verify",
    "check encrypted files by their tags; require (the default of tables that are created with "
    "`orc.encrypt`): a file without tags is an error",
)
ON_PLAINTEXT = Option(
    "encryption.on-plaintext",
    one_of("warn", "refuse", "inherit", ""),
    "",
    "action when values of an encrypted column would be stored in the clear: warn, refuse or "
    "inherit; default: inherit for tables that the statement creates, else warn",
)
ORC_KEYS_WRAPPED = Option(
    "orc.keys.wrapped",
    str,
    "",
    "the table's master keys, wrapped under a key held elsewhere (`envelope:`)",
)
ORC_COMPRESS = Option(
    "orc.compress", one_of("zstd", "snappy", "zlib", "lz4", "none", ""), "", "compression of ORC files"
)
SNAPSHOT_RETAIN_MIN = Option(
    "snapshot.num-retained.min", at_least(1), 10, "snapshots that expiry keeps whatever their age"
)
SNAPSHOT_RETAIN_MAX = Option(
    "snapshot.num-retained.max",
    at_least(1),
    2**31 - 1,
    "number of snapshots above which expiry removes even young ones",
)
SNAPSHOT_TIME_RETAINED = Option(
    "snapshot.time-retained", parse_duration, timedelta(hours=1), "age above which expiry removes snapshots"
)
# Paimon's default of 50 is meant for the expiry in each of its commits, which is not done here.
SNAPSHOT_EXPIRE_LIMIT = Option(
    "snapshot.expire.limit", at_least(1), 2**31 - 1, "snapshots removed by one expiry"
)
CONSUMER_EXPIRATION = Option(
    "consumer.expiration-time",
    parse_duration,
    timedelta(0),
    "age at which an idle consumer is dropped; 0: never",
)
COMMIT_MAX_RETRIES = Option(
    "commit.max-retries", at_least(0), 50, "attempts to commit again after another commit came first"
)
COMMIT_TIMEOUT = Option(
    "commit.timeout", parse_duration, timedelta(minutes=10), "time after which a commit gives up"
)
COMMIT_MIN_WAIT = Option(
    "commit.min-retry-wait",
    parse_duration,
    timedelta(milliseconds=10),
    "first wait before a commit is retried",
)
COMMIT_MAX_WAIT = Option(
    "commit.max-retry-wait", parse_duration, timedelta(seconds=10), "longest wait before a commit is retried"
)
ISOLATION = Option(
    "write.isolation-level",
    one_of("snapshot", "serializable"),
    "snapshot",
    "serializable: refuse a statement that read the table if any commit but a compaction came in between",
)
PARTITION_DEFAULT_NAME = Option(
    "partition.default-name", str, "__DEFAULT_PARTITION__", "folder name of a null or empty partition value"
)
PARTITION_LEGACY_NAME = Option(
    "partition.legacy-name",
    parse_bool,
    True,
    "partition folders show dates as days since 1970, as Paimon does",
)
DELETION_VECTORS = Option(
    "deletion-vectors.enabled", parse_bool, False, "mark deleted rows in separate files"
)
WRITE_ONLY = Option(
    "write-only",
    parse_bool,
    False,
    "`true`: writers of key tables with deletion vectors leave it to `compact` to show new rows",
)
ROW_TRACKING = Option("row-tracking.enabled", parse_bool, False, "give rows ids of their own")
VECTORS_BITMAP64 = Option(
    "deletion-vectors.bitmap64",
    parse_bool,
    False,
    "mark deleted rows in the 64-bit layout, which Iceberg has too",
)
VECTORS_FILE_SIZE = Option(
    "deletion-vector.index-file.target-size",
    parse_size,
    2 * 2**20,
    "size at which deletion vectors go into a new file; with buckets, each bucket has one file",
)
DELETE_RATIO = Option(
    "compaction.delete-ratio-threshold",
    parse_share,
    0.2,
    "share of deleted rows above which a minor compaction rewrites a file of any size",
)
DATA_EVOLUTION = Option(
    "data-evolution.enabled",
    parse_bool,
    False,
    "store columns of a row in several files",
)
FILE_INDEX_THRESHOLD = Option(
    "file-index.in-manifest-threshold",
    parse_size,
    500,
    "bytes up to which a file's indexes are in its manifest entry; larger ones are in a file next to it",
)
FILE_INDEX_READ = Option("file-index.read.enabled", parse_bool, True, "skip files and rows by file indexes")
INDEX_READ = Option("index.read.enabled", parse_bool, True, "skip files and rows by the index database")
INDEX_WRITE = Option("index.write.enabled", parse_bool, True, "index new files while they are written")
NUM_LEVELS = Option("num-levels", at_least(2), 6, "levels of files in a bucket of a table with a primary key")

KNOWN: dict[str, Option[Any]] = {
    option.key: option
    for module in (
        *(changelog_options, clustering_options, index_options),
        *(layout_options, partition_options, schema_options, tag_options),
    )
    for option in (*vars(module).values(), *globals().values(), *IGNORE_DELETES)
    if isinstance(option, Option)
}

_declared: list[Callable[[], Mapping[str, Option[Any]]]] = []


def declare_by(source: Callable[[], Mapping[str, Option[Any]]]) -> None:
    """Let `source` say which options tables have in addition, by key; asked each time one is looked up."""
    _declared.append(source)


def known_options() -> dict[str, Option[Any]]:
    """Return every option of tables by its key: Lockgate's own, and those that plugins declare."""
    return {**KNOWN, **{key: option for source in _declared for key, option in source().items()}}


def _option(key: str) -> Option[Any] | None:
    return KNOWN.get(key) or next((source()[key] for source in _declared if key in source()), None)


class TableOptions(Mapping[str, str]):
    """The options of one table: a mapping of texts, and typed values by `get_option`."""

    def __init__(self, options: Mapping[str, str] | None = None, *, strict: bool = True) -> None:
        """Take `options`; with `strict`, unknown keys and malformed values raise OptionError.

        Tables of other engines are opened without `strict`, because they may carry options of features that
        are not ours; a malformed value then raises when it is asked for.
        """
        self._options = {str(key): str(value) for key, value in (options or {}).items()}
        if strict:
            for key, value in self._options.items():
                validate_option(key, value)

    def __getitem__(self, key: str) -> str:
        return self._options[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __repr__(self) -> str:
        return f"TableOptions({self._options!r})"

    def get_option(self, option: Option[T]) -> T:
        """Return the typed value of `option`, its default if it is not set."""
        text = self._options.get(option.key)
        return option.default if text is None else option.value_of(text)

    def with_options(self, changes: Mapping[str, str | None]) -> TableOptions:
        """Return these options with `changes`; None removes one. Raises OptionError for a bad change."""
        for key, value in changes.items():
            if value is not None:
                validate_option(key, value)
        merged = {**self._options, **changes}
        kept = {key: value for key, value in merged.items() if value is not None}
        return TableOptions(kept, strict=False)


def validate_option(key: str, value: str) -> None:
    """Raise OptionError if `key` is not an option or `value` not one of its values."""
    option = _option(key)
    if option is not None:
        option.value_of(value)
    elif not is_known(key):
        raise OptionError(f"unknown option {key!r}{nearest(key, [*known_options(), *ORC_KEYS])}")


def is_known(key: str) -> bool:
    """Return whether a table may have an option."""
    return _option(key) is not None or is_carried(key) or is_of_column(key)
