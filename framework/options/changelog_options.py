"""The options of a table that say how changes of its keys are stored, as Paimon names them."""

from __future__ import annotations

from datetime import timedelta

from lockgate.framework.options.option import (
    Option,
    at_least,
    one_of,
    parse_bool,
    parse_duration,
    parse_names,
)

NO_CHANGELOG = "none"
INPUT_CHANGELOG = "input"
LOOKUP_CHANGELOG = "lookup"
COMPACTION_CHANGELOG = "full-compaction"

_NO_NAMES: tuple[str, ...] = ()
_NO_NUMBER: int | None = None
_NO_TIME: timedelta | None = None

CHANGELOG_PRODUCER = Option(
    "changelog-producer",
    one_of(NO_CHANGELOG, INPUT_CHANGELOG, LOOKUP_CHANGELOG, COMPACTION_CHANGELOG),
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
CHANGELOG_RETAIN_MIN = Option(
    "changelog.num-retained.min",
    at_least(1),
    _NO_NUMBER,
    "commits whose changes `expire_changelogs` keeps whatever their age; default: as for snapshots",
)
CHANGELOG_RETAIN_MAX = Option(
    "changelog.num-retained.max",
    at_least(1),
    _NO_NUMBER,
    "number of commits above which `expire_changelogs` removes even young changes; default: as for snapshots",
)
CHANGELOG_TIME_RETAINED = Option(
    "changelog.time-retained",
    parse_duration,
    _NO_TIME,
    "age above which `expire_changelogs` removes changes; default: as for snapshots",
)
