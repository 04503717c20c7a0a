"""The options of a table that say which columns the rule `auto` of its index database takes."""

from __future__ import annotations

from lockgate.framework.options.option import Option, parse_share

AUTO_SHARE = Option(
    "index.auto.max-distinct-share",
    parse_share,
    0.5,
    "share of distinct values in a file up to which `auto` indexes a column",
)
