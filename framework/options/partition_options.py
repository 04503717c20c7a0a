"""The options of a table that say which partitions `expire_partitions` removes, as Paimon names them."""

from __future__ import annotations

from datetime import timedelta

from lockgate.framework.options.option import Option, at_least, one_of, parse_duration
from lockgate.framework.types import date_pattern

_NO_TIME: timedelta | None = None
_NO_TEXT: str | None = None


def _parse_formatter(text: str) -> str:
    date_pattern(text)
    return text


EXPIRATION_TIME = Option(
    "partition.expiration-time",
    parse_duration,
    _NO_TIME,
    "age above which `expire_partitions` removes a partition",
)
TIMESTAMP_FORMATTER = Option(
    "partition.timestamp-formatter",
    _parse_formatter,
    "yyyy-M-d[ H:m:s]",
    "form of times in partition values, a pattern of Java's: `yyyyMMdd`",
)
TIMESTAMP_PATTERN = Option(
    "partition.timestamp-pattern",
    str,
    _NO_TEXT,
    "how the values of partition columns form a time: `$day $hour`; default: the first partition column",
)
EXPIRATION_STRATEGY = Option(
    "partition.expiration-strategy",
    one_of("values-time", "update-time"),
    "values-time",
    "whether a partition's age is that of its values, or of its newest file",
)
EXPIRATION_MAX_NUM = Option(
    "partition.expiration-max-num",
    at_least(1),
    100,
    "partitions that one call of `expire_partitions` removes",
)
