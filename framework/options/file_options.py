"""The options of a table that say how its files are written, and which of its columns are encrypted."""

from __future__ import annotations

from collections.abc import Mapping

from lockgate.framework.options.option import Option, at_least, one_of, parse_bool, parse_by_level, parse_size

_NO_LEVELS: Mapping[int, str] = {}

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
ORC_KEYS_WRAPPED = Option(
    "orc.keys.wrapped",
    str,
    "",
    "the table's master keys, wrapped under a key held elsewhere (`envelope:`)",
)
ORC_COMPRESS = Option(
    "orc.compress", one_of("zstd", "snappy", "zlib", "lz4", "none", ""), "", "compression of ORC files"
)
ON_PLAINTEXT = Option(
    "encryption.on-plaintext",
    one_of("warn", "refuse", "inherit", ""),
    "",
    "action when values of an encrypted column would be stored in the clear: warn, refuse or "
    "inherit; default: inherit for tables that the statement creates, else warn",
)
METADATA_STATS_MODE = Option(
    "metadata.stats-mode",
    str.lower,
    "truncate(16)",
    "statistics of columns in manifests: none, counts, full, truncate(n)",
)
TARGET_FILE_SIZE = Option(
    "target-file-size", parse_size, 128 * 2**20, "size at which a writer starts a new file"
)
COLUMN_STATS_MODE = Option(
    "fields.<column>.stats-mode", str, "", "statistics of one column, as `metadata.stats-mode`"
)
