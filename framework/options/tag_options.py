"""The options of a table that say which tags are made by time, as Paimon names them."""

from __future__ import annotations

import zoneinfo
from datetime import timedelta

from lockgate.framework.options.option import Option, at_least, one_of, parse_bool, parse_duration

_NO_TIME: timedelta | None = None
_NO_LIMIT: int | None = None
_LONGEST_PERIOD = timedelta(days=36525)


def _parse_period(text: str) -> timedelta:
    period = parse_duration(text)
    if period < timedelta(minutes=1):
        raise ValueError("expected a minute or more, because names of tags have no seconds")
    if period > _LONGEST_PERIOD:
        raise ValueError(f"expected {_LONGEST_PERIOD.days} days or less")
    return period


def _parse_zone(text: str) -> str:
    try:
        return zoneinfo.ZoneInfo(text.strip()).key
    except (ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError("expected a time zone such as 'Europe/Berlin'") from None


AUTOMATIC_CREATION = Option(
    "tag.automatic-creation",
    one_of("none", "process-time", "watermark", "batch"),
    "none",
    "clock of `trigger_tag_automatic_creation`: the time of the commit, or the watermark",
)
CREATION_PERIOD = Option(
    "tag.creation-period",
    one_of("daily", "hourly", "two-hours"),
    "daily",
    "period after which a tag is created",
)
CREATION_PERIOD_DURATION = Option(
    "tag.creation-period-duration", _parse_period, _NO_TIME, "period of any length, instead of the named ones"
)
CREATION_DELAY = Option(
    "tag.creation-delay",
    parse_duration,
    timedelta(0),
    "wait for late rows after the end of a period; shorter than the period",
)
PERIOD_FORMATTER = Option(
    "tag.period-formatter",
    one_of("with_dashes", "without_dashes", "without_dashes_and_spaces"),
    "with_dashes",
    "form of the tags' names: `2024-03-01 17`, `20240301 17` or `2024030117`",
)
AUTOMATIC_COMPLETION = Option(
    "tag.automatic-completion",
    parse_bool,
    False,
    "after periods without a commit, name the next tag after the first period that is due",
)
TAGS_RETAINED_MAX = Option("tag.num-retained-max", at_least(1), _NO_LIMIT, "number of automatic tags to keep")
TAG_TIME_RETAINED = Option(
    "tag.default-time-retained",
    parse_duration,
    _NO_TIME,
    "time after which `expire_tags` deletes an automatic tag",
)
WATERMARK_ZONE = Option(
    "sink.watermark-time-zone", _parse_zone, "UTC", "time zone in which a watermark's day begins"
)
