"""The options of a table that say how its file indexes and index database are built and used."""

from __future__ import annotations

from lockgate.framework.options.option import (
    Option,
    at_least,
    parse_bool,
    parse_names,
    parse_share,
    parse_size,
)

_NO_NAMES: tuple[str, ...] = ()

FILE_INDEX_THRESHOLD = Option(
    "file-index.in-manifest-threshold",
    parse_size,
    500,
    "bytes up to which a file's indexes are in its manifest entry; larger ones are in a file next to it",
)
FILE_INDEX_READ = Option("file-index.read.enabled", parse_bool, True, "skip files and rows by file indexes")
INDEX_READ = Option("index.read.enabled", parse_bool, True, "skip files and rows by the index database")
INDEX_WRITE = Option("index.write.enabled", parse_bool, True, "index new files while they are written")
AUTO_SHARE = Option(
    "index.auto.max-distinct-share",
    parse_share,
    0.5,
    "share of distinct values in a file up to which `auto` indexes a column",
)
BLOOM_SHARE = Option(
    "index.bloom.max-distinct-share",
    parse_share,
    0.001,
    "the same for the kind `bloom`, whose filters have room for about 400 values a block",
)
BLOCK_ROWS = Option(
    "index.block-rows", at_least(1), 250_000, "rows of a file that form one block of the index database"
)
MERGE_AT = Option(
    "index.merge-at", at_least(2), 30, "number of small segments at which the next commit merges them"
)
INDEXED_COLUMNS = Option(
    "index.<kind>.columns",
    parse_names,
    _NO_NAMES,
    "columns that a kind of the index database indexes; `auto`: suitable ones",
)
FILE_INDEX_COLUMNS = Option(
    "file-index.<kind>.columns", parse_names, _NO_NAMES, "columns that get a file index of a kind"
)
FILE_INDEX_PARAMETER = Option(
    "file-index.<kind>.<name>.<parameter>",
    str,
    "",
    "a parameter of the file index of one column, such as `file-index.bloom-filter.md5.fpp`",
)
