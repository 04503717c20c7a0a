"""The options of a table that say in which order its rows lie, as Paimon names them."""

from __future__ import annotations

from lockgate.framework.options.option import Option, one_of, parse_bool, parse_names

AUTO_STRATEGY = "auto"
_NO_COLUMNS: tuple[str, ...] = ()

CLUSTERING_COLUMNS = Option(
    "clustering.columns",
    parse_names,
    _NO_COLUMNS,
    "columns by which writers and `compact` order the rows of an append table",
)
CLUSTERING_STRATEGY = Option(
    "clustering.strategy",
    one_of(AUTO_STRATEGY, "order", "zorder", "hilbert"),
    AUTO_STRATEGY,
    "order that `compact` gives rows; `auto`: `order` for one column, `zorder` up to four, else `hilbert`",
)
CLUSTERING_INCREMENTAL = Option(
    "clustering.incremental",
    parse_bool,
    False,
    "`true`: `compact` orders only files that no compaction has written, unless the strategy is `full`",
)
