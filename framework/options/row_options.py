"""The options of a table that say how deleted rows are marked, and how compaction goes about files."""

from __future__ import annotations

from lockgate.framework.options.option import Effect, Option, at_least, parse_bool, parse_share, parse_size

DELETION_VECTORS = Option(
    "deletion-vectors.enabled", parse_bool, False, "mark deleted rows in separate files"
)
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
WRITE_ONLY = Option(
    "write-only",
    parse_bool,
    False,
    "`true`: writers of key tables with deletion vectors leave it to `compact` to show new rows",
)
NUM_LEVELS = Option("num-levels", at_least(2), 6, "levels of files in a bucket of a table with a primary key")
ROW_TRACKING = Option(
    "row-tracking.enabled",
    parse_bool,
    False,
    "rows have ids, which every change must hand on",
    effect=Effect.NOT_WRITTEN,
    off=frozenset({"false"}),
)
DATA_EVOLUTION = Option(
    "data-evolution.enabled",
    parse_bool,
    False,
    "columns of one row lie in several files",
    effect=Effect.FILES_NOT_READ,
    off=frozenset({"false"}),
)
