"""Single values to and from JSON, as the connector and the metadata in messages spell them.

A Python value is what `pyarrow.Scalar.as_py` gives: `int`, `float`, `bool`, `str`, `bytes`, `Decimal`,
`date`, `time`, a naive `datetime` for TIMESTAMP and one in UTC for TIMESTAMP_LTZ.
"""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from typing import Any

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.types.datatype import FLOAT_KINDS, DataType, Kind

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def days_of(value: datetime.date) -> int:
    """Return the days between 1970-01-01 and `value`."""
    return value.toordinal() - _EPOCH_DAY


def date_of(days: int) -> datetime.date:
    """Return the date so many days after 1970-01-01."""
    return datetime.date.fromordinal(days + _EPOCH_DAY)


def micros_of(value: datetime.datetime) -> int:
    """Return microseconds since the epoch; a naive value is read as if its clock showed UTC."""
    return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND


def timestamp_of(micros: int, *, utc: bool) -> datetime.datetime:
    """Return the timestamp so many microseconds after the epoch, naive or in UTC."""
    return (_EPOCH_UTC if utc else _EPOCH) + datetime.timedelta(microseconds=micros)


def millis_of_day(value: datetime.time) -> int:
    """Return the milliseconds of a time of day."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_of(millis: int) -> datetime.time:
    """Return the time of day so many milliseconds after midnight."""
    return (_EPOCH + datetime.timedelta(milliseconds=millis)).time()


def one_nan(value: float) -> float:
    """Return the number itself, or for any NaN the same object `math.nan`.

    NaN is not equal to NaN, but tuples with the very same object are equal. Pass values of partitions through
    this function before you compare or look them up.

    >>> (one_nan(float("nan")),) == (one_nan(float("nan")),)
    True
    """
    return value if value == value else math.nan


def value_to_json(data_type: DataType, value: Any) -> Any:
    """Return the JSON of a value of an atomic type; null for None.

    DECIMAL is a plain string, BINARY base64, DATE days and timestamps microseconds since the epoch, NaN and
    the infinities their names. Raises UnsupportedTypeError for nested types.
    """
    if value is None:
        return None
    kind = data_type.kind
    if kind is Kind.DECIMAL:
        return f"{value:f}"
    if data_type.is_binary:
        return base64.b64encode(value).decode("ascii")
    if kind is Kind.DATE:
        return days_of(value)
    if kind is Kind.TIME:
        return millis_of_day(value)
    if data_type.is_timestamp:
        return micros_of(value)
    if kind in FLOAT_KINDS:
        return _float_to_json(float(value))
    if data_type.is_nested:
        raise UnsupportedTypeError(f"a value of type {data_type.bare_name} has no JSON form")
    return value


def _float_to_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def value_from_json(data_type: DataType, json: Any) -> Any:
    """Return the value that `value_to_json` wrote; InputError if the JSON does not fit the type."""
    if json is None:
        return None
    try:
        return _from_json(data_type, json)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise InputError(f"{json!r} is not a value of type {data_type.bare_name}: {error}") from None


def _from_json(data_type: DataType, json: Any) -> Any:
    kind = data_type.kind
    if kind is Kind.DECIMAL:
        return Decimal(str(json))
    if data_type.is_binary:
        return base64.b64decode(json, validate=True)
    if kind is Kind.DATE:
        return date_of(int(json))
    if kind is Kind.TIME:
        return time_of(int(json))
    if data_type.is_timestamp:
        return timestamp_of(int(json), utc=kind is Kind.TIMESTAMP_LTZ)
    if kind in FLOAT_KINDS:
        return _SPECIAL_FLOATS[json] if json in _SPECIAL_FLOATS else float(json)
    if data_type.is_integer:
        return int(json)
    if data_type.is_nested:
        raise UnsupportedTypeError(f"a value of type {data_type.bare_name} has no JSON form")
    wanted = bool if kind is Kind.BOOLEAN else str
    if not isinstance(json, wanted):
        raise InputError(f"{json!r} is not a value of type {data_type.bare_name}")
    return json
