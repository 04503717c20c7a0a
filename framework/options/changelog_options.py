"""The options of a table that say how changes of its keys are stored, as Paimon names them."""

from __future__ import annotations

from lockgate.framework.options.option import Option, one_of, parse_bool, parse_names

NO_CHANGELOG = "none"
INPUT = "input"
LOOKUP = "lookup"
FULL_COMPACTION = "full-compaction"

_NO_NAMES: tuple[str, ...] = ()

CHANGELOG_PRODUCER = Option(
    "changelog-producer",
    one_of(NO_CHANGELOG, INPUT, LOOKUP, FULL_COMPACTION),
    NO_CHANGELOG,
    "how changes of keys are stored in files of their own: `input` as they are written, `lookup` when "
    "`compact` takes new rows in, `full-compaction` as differences between its results",
)
ROW_DEDUPLICATE = Option(
    "changelog-producer.row-deduplicate",
    parse_bool,
    False,
    "store no change of a row that became what it was, with `lookup` and `full-compaction`",
)
DEDUPLICATE_IGNORES = Option(
    "changelog-producer.row-deduplicate-ignore-fields",
    parse_names,
    _NO_NAMES,
    "columns whose change alone is none for `changelog-producer.row-deduplicate`",
)
