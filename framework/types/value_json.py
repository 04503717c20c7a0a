"""Conversion of single values to and from JSON, for the connector and for metadata in messages.

Python values are those of `pyarrow.Scalar.as_py`: `int`, `float`, `bool`, `str`, `bytes`, `Decimal`,
`date`, `time`, a naive `datetime` for TIMESTAMP and one in UTC for TIMESTAMP_LTZ, a list for ARRAY, a list of
pairs for MAP and a dictionary for ROW. The Java twin is the connector's `Values`.
"""

from __future__ import annotations

import base64
import datetime
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.types.datatype import FLOAT_KINDS, DataType, Kind

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = datetime.timedelta(microseconds=1)
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SIGNED_BITS = {Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}
# Exact for every decimal of a column; raises Inexact for one with too many digits.
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])


def days_of(value: datetime.date) -> int:
    """Return the days between 1970-01-01 and `value`."""
    return value.toordinal() - _EPOCH_DAY


def date_of(days: int) -> datetime.date:
    """Return the date `days` days after 1970-01-01."""
    return datetime.date.fromordinal(days + _EPOCH_DAY)


def micros_of(value: datetime.datetime) -> int:
    """Return microseconds since the epoch; a naive value counts as UTC."""
    return (value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND


def timestamp_of(micros: int, *, utc: bool) -> datetime.datetime:
    """Return the timestamp `micros` microseconds after the epoch, naive or in UTC."""
    return (_EPOCH_UTC if utc else _EPOCH) + datetime.timedelta(microseconds=micros)


def millis_of_day(value: datetime.time) -> int:
    """Return the milliseconds since midnight of a time of day."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def time_of(millis: int) -> datetime.time:
    """Return the time of day `millis` milliseconds after midnight."""
    return (_EPOCH + datetime.timedelta(milliseconds=millis)).time()


def one_nan(value: float) -> float:
    """Return the number, or for any NaN the object `math.nan`.

    NaN does not equal NaN, but tuples with the same object are equal. Convert values of partitions by this
    function before comparing them or looking them up.

    >>> (one_nan(float("nan")),) == (one_nan(float("nan")),)
    True
    """
    return value if value == value else math.nan


def value_to_json(data_type: DataType, value: Any) -> Any:
    """Return the JSON of a value; null for None.

    DECIMAL is a plain string, BINARY base64, DATE days and timestamps microseconds since the epoch, NaN and
    the infinities their names. ARRAY is an array, ROW an object, MAP an object if its keys are texts and else
    an array of pairs.
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
    return _nested_to_json(data_type, value) if data_type.is_nested else value


def _float_to_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _nested_to_json(data_type: DataType, value: Any) -> Any:
    if data_type.kind is Kind.ARRAY:
        return [value_to_json(data_type.element_type(), item) for item in value]
    if data_type.kind is Kind.ROW:
        return {field.name: value_to_json(field.type, value[field.name]) for field in data_type.fields}
    key_type, value_type = data_type.key_type(), data_type.value_type()
    pairs = [[value_to_json(key_type, key), value_to_json(value_type, item)] for key, item in value]
    return dict(pairs) if key_type.is_string else pairs


def value_from_json(data_type: DataType, json: Any) -> Any:
    """Return the value of JSON from `value_to_json`; InputError if the JSON does not fit the type.

    Nothing is converted: a number is no text, 1.0 is no INT, and a too large number or a decimal with too
    many digits is an error.
    """
    if json is None:
        return None
    try:
        return _from_json(data_type, json)
    except (ArithmeticError, TypeError, ValueError, struct.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{json!r} is not a value of type {data_type.bare_name}: {error}") from None


def _from_json(data_type: DataType, json: Any) -> Any:
    kind = data_type.kind
    if kind is Kind.DECIMAL:
        return _decimal_from_json(data_type, _checked_type(str, json))
    if data_type.is_binary:
        return base64.b64decode(_checked_type(str, json), validate=True)
    if kind is Kind.DATE:
        return date_of(_checked_type(int, json))
    if kind is Kind.TIME:
        return time_of(_checked_type(int, json))
    if data_type.is_timestamp:
        return timestamp_of(_checked_type(int, json), utc=kind is Kind.TIMESTAMP_LTZ)
    if kind in FLOAT_KINDS:
        return _float_from_json(kind, json)
    if data_type.is_integer:
        return _integer_from_json(kind, _checked_type(int, json))
    if kind is Kind.BOOLEAN:
        return _checked_type(bool, json)
    return _NESTED[kind](data_type, json) if kind in _NESTED else _text_from_json(_checked_type(str, json))


def _checked_type(expected: type, json: Any) -> Any:
    if type(json) is not expected:  # type(), because a bool is an int
        raise TypeError(f"a {type(json).__name__}, not a {expected.__name__}")
    return json


def _text_from_json(json: str) -> str:
    json.encode()  # raises a ValueError for half of a surrogate pair
    return json


def _integer_from_json(kind: Kind, json: int) -> int:
    bits = _SIGNED_BITS[kind]
    if not -(1 << bits) <= json < 1 << bits:
        raise OverflowError("the number is too large")
    return json


def _float_from_json(kind: Kind, json: Any) -> float:
    if isinstance(json, str):
        if json not in _SPECIAL_FLOATS:
            raise ValueError("a text, not a number")
        return _SPECIAL_FLOATS[json]
    value = float(json if type(json) is int else _checked_type(float, json))
    if not math.isfinite(value):
        raise OverflowError("the number is too large")
    if kind is Kind.FLOAT:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return value


def _decimal_from_json(data_type: DataType, json: str) -> Decimal:
    value = Decimal(json)
    precision, scale = data_type.precision or 0, data_type.scale or 0
    if not value.is_finite():
        raise ValueError("the number is not finite")
    exact = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)  # Inexact is an ArithmeticError
    if exact.adjusted() >= precision - scale and exact:
        raise OverflowError("the number is too large")
    return exact


def _array_from_json(data_type: DataType, json: Any) -> list[Any]:
    return [value_from_json(data_type.element_type(), item) for item in _checked_type(list, json)]


def _map_from_json(data_type: DataType, json: Any) -> list[tuple[Any, Any]]:
    key_type, value_type = data_type.key_type(), data_type.value_type()
    pairs: Sequence[Any] = (
        list(_checked_type(dict, json).items()) if key_type.is_string else _checked_type(list, json)
    )
    if any(len(pair) != 2 or pair[0] is None for pair in pairs):
        raise ValueError("an entry of a map is a pair, and its key is not null")
    return [(value_from_json(key_type, key), value_from_json(value_type, item)) for key, item in pairs]


def _row_from_json(data_type: DataType, json: Any) -> dict[str, Any]:
    types = {field.name: field.type for field in data_type.fields}
    if _checked_type(dict, json).keys() != types.keys():
        raise ValueError(f"the fields are not {', '.join(types)}")
    return {name: value_from_json(kind, json[name]) for name, kind in types.items()}


_NESTED: Mapping[Kind, Callable[[DataType, Any], Any]] = {
    Kind.ARRAY: _array_from_json,
    Kind.MAP: _map_from_json,
    Kind.ROW: _row_from_json,
}


def wall_clock(millis: int) -> datetime.datetime:
    """Return a time since 1970 in milliseconds as the clocks of this computer's zone show it."""
    seconds, rest = divmod(millis, 1000)
    return datetime.datetime.fromtimestamp(seconds) + datetime.timedelta(milliseconds=rest)
