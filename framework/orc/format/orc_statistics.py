"""Column statistics of ORC as Python values."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import TypeKind

_EPOCH = datetime.date(1970, 1, 1)
# Sign, point, and more digits than a decimal has.
_LONGEST_DECIMAL = 80
_EPOCH_UTC = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of a column's values in a file or stripe.

    `minimum` and `maximum` bound the values that are not null (they need not occur); None if unknown. Bounds
    of timestamps are in UTC; only those of a column with a time zone have one. `null_count` is None inside
    nested columns, and where a writer did not count.
    """

    minimum: Any
    maximum: Any
    null_count: int | None
    value_count: int


def column_statistics(type_: proto.Message, statistics: proto.Message, rows: int | None) -> ColumnStatistics:
    """Read one message over `rows` rows; None for a nested column, whose nulls cannot be counted."""
    if not statistics.HasField("number_of_values"):
        return ColumnStatistics(None, None, None, 0)  # Nothing is known, not even that there are values.
    count = statistics.number_of_values
    if count == 0 and rows and not statistics.has_null:
        # Neither values nor nulls: ORC's Java writer leaves all statistics empty if it writes no row index.
        return ColumnStatistics(None, None, None, 0)
    try:
        low, high = _bounds(TypeKind(type_.kind), statistics)
    except (InvalidOperation, OverflowError, ValueError):
        low = high = None
    return ColumnStatistics(low, high, None if rows is None else max(rows - count, 0), count)


def _bounds(kind: TypeKind, statistics: proto.Message) -> tuple[Any, Any]:
    if statistics.HasField("int_statistics"):
        return _plain(statistics.int_statistics)
    if statistics.HasField("double_statistics"):
        return _floats(statistics.double_statistics)
    if statistics.HasField("string_statistics"):
        return _strings(statistics.string_statistics)
    if statistics.HasField("decimal_statistics"):
        low, high = _plain(statistics.decimal_statistics)
        return _decimal(low), _decimal(high)
    if statistics.HasField("date_statistics"):
        low, high = _plain(statistics.date_statistics)
        return _date(low), _date(high)
    if statistics.HasField("timestamp_statistics"):
        return _timestamps(statistics.timestamp_statistics, kind is TypeKind.TIMESTAMP_INSTANT)
    if statistics.HasField("bucket_statistics") and len(statistics.bucket_statistics.count) == 1:
        return _booleans(statistics.bucket_statistics.count[0], statistics.number_of_values)
    return None, None


def _plain(message: proto.Message) -> tuple[Any, Any]:
    return (
        message.minimum if message.HasField("minimum") else None,
        message.maximum if message.HasField("maximum") else None,
    )


def _floats(message: proto.Message) -> tuple[Any, Any]:
    low, high = _plain(message)
    # A NaN among the values spoils the bounds: some writers skip it, others let it stick.
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None, None
    return low, high


def _strings(message: proto.Message) -> tuple[Any, Any]:
    # Long values are cut: the bounds are then lower and upper ones.
    low, high = _plain(message)
    if low is None and message.HasField("lower_bound"):
        low = message.lower_bound
    if high is None and message.HasField("upper_bound"):
        high = message.upper_bound
    if isinstance(low, bytes) or isinstance(high, bytes):
        raise ValueError("a bound is not text")  # Protobuf hands out bytes for what is not UTF-8.
    return low, high


def _decimal(text: str | None) -> Decimal | None:
    if text is None:
        return None
    number = Decimal(str(text)[: _LONGEST_DECIMAL + 1])
    # ORC's decimals have 38 digits. Arrow crashes on the exponents of others.
    exponent = number.as_tuple().exponent
    if len(text) > _LONGEST_DECIMAL or not isinstance(exponent, int) or abs(exponent) > _LONGEST_DECIMAL:
        raise ValueError("a bound is not a number of 38 digits")
    return number


def _date(days: int | None) -> datetime.date | None:
    return None if days is None else _EPOCH + datetime.timedelta(days=days)


def _timestamps(message: proto.Message, instant: bool) -> tuple[Any, Any]:
    """Return bounds, which are stored in milliseconds: the maximum is the end of its millisecond."""
    if not (message.HasField("minimum_utc") and message.HasField("maximum_utc")):
        return None, None
    zone = datetime.UTC if instant else None
    low = _EPOCH_UTC + datetime.timedelta(milliseconds=message.minimum_utc)
    high = _EPOCH_UTC + datetime.timedelta(milliseconds=message.maximum_utc + 1)
    # Writers round the milliseconds before 1970 differently.
    if message.minimum_utc < 0:
        low -= datetime.timedelta(milliseconds=1)
    return low.replace(tzinfo=zone), high.replace(tzinfo=zone)


def _booleans(true: int, values: int) -> tuple[Any, Any]:
    if values == 0:
        return None, None
    return true == values, true > 0
