"""ORC's column statistics as Python values."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import TypeKind

_EPOCH = datetime.date(1970, 1, 1)
# Longer than any valid decimal with sign and point.
_MAX_DECIMAL_LENGTH = 80
_EPOCH_UTC = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of a column in a file or stripe.

    `minimum` and `maximum` bound the non-null values; they need not occur, and are None if unknown. Bounds of
    timestamps are in UTC; they have a time zone only if the column has one. `null_count` is None inside
    nested columns, and if the writer did not count nulls.
    """

    minimum: Any
    maximum: Any
    null_count: int | None
    value_count: int


def column_statistics(type_: proto.Message, statistics: proto.Message, rows: int | None) -> ColumnStatistics:
    """Return the statistics of a message; `rows` is None for a nested column, whose nulls are unknown."""
    if not statistics.HasField("number_of_values"):
        return ColumnStatistics(None, None, None, 0)  # The writer counted nothing.
    count = statistics.number_of_values
    if count == 0 and rows and not statistics.has_null:
        # Neither values nor nulls: ORC's Java writer leaves statistics empty if it writes no row index.
        return ColumnStatistics(None, None, None, 0)
    try:
        low, high = _bounds(TypeKind(type_.kind), statistics)
    except (InvalidOperation, OverflowError, ValueError):
        low = high = None
    return ColumnStatistics(low, high, None if rows is None else max(rows - count, 0), count)


def _bounds(kind: TypeKind, statistics: proto.Message) -> tuple[Any, Any]:
    if statistics.HasField("int_statistics"):
        return _minimum_maximum(statistics.int_statistics)
    if statistics.HasField("double_statistics"):
        return _floats(statistics.double_statistics)
    if statistics.HasField("string_statistics"):
        return _strings(statistics.string_statistics)
    if statistics.HasField("decimal_statistics"):
        low, high = _minimum_maximum(statistics.decimal_statistics)
        return _decimal(low), _decimal(high)
    if statistics.HasField("date_statistics"):
        low, high = _minimum_maximum(statistics.date_statistics)
        return _date(low), _date(high)
    if statistics.HasField("timestamp_statistics"):
        return _timestamps(statistics.timestamp_statistics, kind is TypeKind.TIMESTAMP_INSTANT)
    if statistics.HasField("bucket_statistics") and len(statistics.bucket_statistics.count) == 1:
        return _booleans(statistics.bucket_statistics.count[0], statistics.number_of_values)
    return None, None


def _minimum_maximum(message: proto.Message) -> tuple[Any, Any]:
    return (
        message.minimum if message.HasField("minimum") else None,
        message.maximum if message.HasField("maximum") else None,
    )


def _floats(message: proto.Message) -> tuple[Any, Any]:
    low, high = _minimum_maximum(message)
    # NaN makes bounds unreliable: some writers ignore it, others make it a bound.
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return None, None
    return low, high


def _strings(message: proto.Message) -> tuple[Any, Any]:
    # Bounds of long values are truncated, and stored as lower and upper bound.
    low, high = _minimum_maximum(message)
    if low is None and message.HasField("lower_bound"):
        low = message.lower_bound
    if high is None and message.HasField("upper_bound"):
        high = message.upper_bound
    if isinstance(low, bytes) or isinstance(high, bytes):
        raise ValueError("a bound is not text")  # Protobuf returns invalid UTF-8 as bytes.
    return low, high


def _decimal(text: str | None) -> Decimal | None:
    if text is None:
        return None
    number = Decimal(str(text)[: _MAX_DECIMAL_LENGTH + 1])
    # ORC's decimals have up to 38 digits; Arrow crashes on larger exponents.
    exponent = number.as_tuple().exponent
    if (
        len(text) > _MAX_DECIMAL_LENGTH
        or not isinstance(exponent, int)
        or abs(exponent) > _MAX_DECIMAL_LENGTH
    ):
        raise ValueError("a bound is not a number of 38 digits")
    return number


def _date(days: int | None) -> datetime.date | None:
    return None if days is None else _EPOCH + datetime.timedelta(days=days)


def _timestamps(message: proto.Message, instant: bool) -> tuple[Any, Any]:
    """Return the bounds, stored in milliseconds; the maximum becomes the end of its millisecond."""
    if not (message.HasField("minimum_utc") and message.HasField("maximum_utc")):
        return None, None
    zone = datetime.UTC if instant else None
    low = _EPOCH_UTC + datetime.timedelta(milliseconds=message.minimum_utc)
    high = _EPOCH_UTC + datetime.timedelta(milliseconds=message.maximum_utc + 1)
    # Writers differ in rounding milliseconds before 1970.
    if message.minimum_utc < 0:
        low -= datetime.timedelta(milliseconds=1)
    return low.replace(tzinfo=zone), high.replace(tzinfo=zone)


def _booleans(true: int, values: int) -> tuple[Any, Any]:
    if values == 0:
        return None, None
    return true == values, true > 0
