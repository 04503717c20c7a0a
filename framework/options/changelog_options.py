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
    "source of the changelog files: `input` (the written rows), `lookup` (changes that each `compact` "
    "finds), `full-compaction` (differences between full compactions)",
)
ROW_DEDUPLICATE = Option(
    "changelog-producer.row-deduplicate",
    parse_bool,
    False,
    "with `lookup` and `full-compaction`: store no change whose new row equals the old one",
)
DEDUPLICATE_IGNORES = Option(
    "changelog-producer.row-deduplicate-ignore-fields",
    parse_names,
    _NO_NAMES,
    "columns that `changelog-producer.row-deduplicate` does not compare",
)
