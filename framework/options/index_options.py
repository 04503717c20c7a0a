"""The options of a table that say how its index database is built."""

from __future__ import annotations

from lockgate.framework.options.option import Option, at_least, parse_share

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
