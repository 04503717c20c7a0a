"""Options without an entry of their own: those of other engines, which tables keep, and those of columns."""

from __future__ import annotations

import re

# Spark's table properties, plugins' own, and features of a table that another engine wrote.
_FREE_KEYS = frozenset(
    {
        "path",
        "owner",
        "provider",
        "comment",
        "location",
        "external",
        "is_managed_location",
        "transient_lastDdlTime",
    }
)
_FREE_PREFIXES = ("option.", "spark.")
# Set by REPLACE TABLE alone; see `store.generations`.
_KEPT_ACCOUNT = frozenset({"lockgate.generation"})

# Paimon's, about lookups that other engines make.
_PAIMONS_LOOKUPS = re.compile(
    r"lookup\.(async(-thread-number)?|cache-rows|cache-spill-compression|cache\.bloom\.filter\.(enabled|fpp)"
    r"|continuous\.discovery-interval|dynamic-partition\.refresh-interval|max-retries|partial-cache\..+"
    r"|hash-load-factor|merge-.+|remote-file\..+|local-file-type)"
)

# Apache ORC's own and Paimon's, after `orc.`: a misspelt `orc.encrypt` must not pass for one of them.
_ORC_NAMES = """
    base.delta.ratio block.padding block.padding.tolerance block.size bloom.filter.columns bloom.filter.fpp
    bloom.filter.write.version buffer.size.enforce column.encoding.direct compress.size compression.strategy
    compression.zstd.level compression.zstd.strategy compression.zstd.windowlog create.index
    dictionary.early.check dictionary.implementation dictionary.key.threshold dictionary.max.size.bytes
    encoding.strategy key.provider max.file.length memory.pool overwrite.output.file proleptic.gregorian
    proleptic.gregorian.default row.batch.size row.child.limit row.index.stride rows.between.memory.checks
    stripe.row.count stripe.size stripe.size.check.ratio write.format write.variable.length.blocks
    timestamp-ltz.legacy.type write.batch-size
"""
ORC_KEYS = frozenset(f"orc.{name}" for name in _ORC_NAMES.split())

# Options that exist once for each column; their values are checked where statistics are made.
_COLUMN_STATS_MODE = re.compile(r"fields\..+\.stats-mode")
# Options of a column's merge function; the one that groups columns is named by several.
COLUMN_MERGE = re.compile(
    r"fields\.(.+)\.(aggregate-function|ignore-retract|distinct|list-agg-delimiter|nested-key"
    r"|nested-key-null-strategy|nested-sequence-field|count-limit|ts-field)"
)
_SEQUENCE_GROUP = re.compile(r"fields\..+\.sequence-group")
# Paimon's file indexes: the columns of a kind, and a parameter of one of them.
_FILE_INDEX = re.compile(r"file-index\.[^.]+\.columns|file-index\.[^.]+\.[^.]+\.[^.]+")

# The columns of a kind of the index database.
_INDEX = re.compile(r"index\.[a-z][a-z0-9_]*\.columns")


def is_carried(key: str) -> bool:
    """Return whether an option is carried along without being read."""
    return (
        key in _FREE_KEYS
        or key in _KEPT_ACCOUNT
        or key in ORC_KEYS
        or key.startswith(_FREE_PREFIXES)
        or _PAIMONS_LOOKUPS.fullmatch(key) is not None
    )


def is_of_column(key: str) -> bool:
    """Return whether an option is of a column, which its key names."""
    patterns = (_COLUMN_STATS_MODE, COLUMN_MERGE, _SEQUENCE_GROUP, _FILE_INDEX, _INDEX)
    return any(pattern.fullmatch(key) for pattern in patterns)
