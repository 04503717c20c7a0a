"""Exact comparison of values in Spark's order, across numeric types.

Scalars are compared as *plain* values: integers, floats and decimals stay numbers, which Python compares
exactly; strings become UTF-8 bytes, dates become days, times and timestamps become nanoseconds. NaN equals
NaN and is greater than every other number; -0.0 equals 0.0.
"""

from __future__ import annotations

import bisect
import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from lockgate.errors import UnsupportedTypeError

Plain = bool | int | float | Decimal | bytes
"""The plain form of a non-null scalar."""

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INT64 = (-(2**63), 2**63 - 1)


class Family(enum.Enum):
    """Types whose values can be compared with each other."""

    NULL = "null"
    BOOLEAN = "boolean"
    NUMBER = "number"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp without time zone"
    INSTANT = "timestamp with local time zone"


# A lookup by type id is fast; a scan needs the family of every bound of every file.
_SAMPLES = {
    Family.NULL: [pa.null()],
    Family.BOOLEAN: [pa.bool_()],
    Family.NUMBER: [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(1), pa.decimal256(1)),
    ],
    Family.STRING: [pa.string(), pa.large_string(), pa.string_view()],
    Family.BINARY: [pa.binary(), pa.large_binary(), pa.binary(1)],
    Family.DATE: [pa.date32(), pa.date64()],
    Family.TIME: [pa.time32("s"), pa.time64("us")],
    Family.TIMESTAMP: [pa.timestamp("us")],
}
_FAMILIES = {kind.id: family for family, kinds in _SAMPLES.items() for kind in kinds}


def family_of(data_type: pa.DataType) -> Family | None:
    """Return the family of an Arrow type, None for types without an order (lists, maps, structs, ...)."""
    family = _FAMILIES.get(data_type.id)
    return Family.INSTANT if family is Family.TIMESTAMP and data_type.tz else family


def comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether values of the two types can be compared; null compares with every type."""
    left_family, right_family = family_of(left), family_of(right)
    if left_family is None or right_family is None:
        return left_family is Family.NULL or right_family is Family.NULL
    return left_family is right_family or Family.NULL in (left_family, right_family)


def is_null(scalar: pa.Scalar) -> bool:
    """Return whether a scalar is null."""
    return not scalar.is_valid


def plain(scalar: pa.Scalar) -> Plain:
    """Return a non-null scalar as a plain value; raises UnsupportedTypeError for types without an order."""
    family = family_of(scalar.type)
    if family in (Family.TIMESTAMP, Family.INSTANT, Family.TIME):
        return int(scalar.value) * _NANOS[scalar.type.unit]
    if family is Family.DATE:
        value = int(scalar.value)
        return value if pa.types.is_date32(scalar.type) else value // 86_400_000
    if family is Family.STRING:
        return str(scalar.as_py()).encode("utf-8", "surrogatepass")
    if family in (Family.NUMBER, Family.BOOLEAN, Family.BINARY):
        value_ = scalar.as_py()
        return float(value_) if isinstance(value_, np.floating) else value_
    raise UnsupportedTypeError(f"values of type {scalar.type} cannot be compared")


def is_nan(value: Plain) -> bool:
    """Return whether a plain value is NaN."""
    return isinstance(value, float) and math.isnan(value)


def compare(left: Plain, right: Plain) -> int:
    """Return -1, 0 or 1 if `left` sorts before, equals or sorts after `right`.

    >>> compare(1, Decimal("1.0")), compare(float("nan"), float("inf")), compare(0.1, Decimal("0.1"))
    (0, 1, 1)
    """
    left_is_nan, right_is_nan = is_nan(left), is_nan(right)
    if left_is_nan or right_is_nan:
        return int(left_is_nan) - int(right_is_nan)
    return int(left > right) - int(left < right)  # type: ignore[operator]  # see `comparable`


def between(values: Sequence[Plain], low: Plain | None, high: Plain | None) -> bool:
    """Return whether one of the ascending `values` lies in [low, high]; None is no bound."""
    first = 0 if low is None else _first(values, lambda value: compare(value, low) >= 0)
    return first < len(values) and (high is None or compare(values[first], high) <= 0)


def _first(values: Sequence[Plain], reached: Callable[[Plain], bool]) -> int:
    return bisect.bisect_left(values, True, key=reached)


class Rank(enum.Enum):
    """Position of a literal among all values of a type."""

    BELOW = "below every value"
    AT = "equal to a value"
    BETWEEN = "right above a value"
    ABOVE = "above every value"


@dataclass(frozen=True)
class Ranked:
    """A literal's rank in a type; `value`, of that type, equals the literal or is the next value below it."""

    rank: Rank
    value: pa.Scalar | None = None


def rank_of(scalar: pa.Scalar, data_type: pa.DataType) -> Ranked:
    """Return the rank of a non-null literal among the values of `data_type`, without loss.

    111.321 is `BETWEEN`, with value 111, for an INT, and `AT` for a DECIMAL(6,3); 200 is `ABOVE` for a
    TINYINT. Raises UnsupportedTypeError if the two types cannot be compared.
    """
    if not comparable(scalar.type, data_type):
        raise UnsupportedTypeError(f"a {scalar.type} cannot be compared with a {data_type}")
    if scalar.type == data_type:
        return Ranked(Rank.AT, scalar)
    value = plain(scalar)
    if pa.types.is_integer(data_type):
        low, high = _integer_bounds(data_type)
        return _rank_in_steps(value, 1, low, high, lambda whole: pa.scalar(whole, data_type))
    if pa.types.is_decimal(data_type):
        high = 10**data_type.precision - 1
        step = Fraction(1, 10**data_type.scale) if data_type.scale >= 0 else Fraction(10**-data_type.scale)
        return _rank_in_steps(
            value, step, -high, high, lambda n: pa.scalar(_decimal(n, data_type.scale), data_type)
        )
    if pa.types.is_floating(data_type):
        return _rank_in_floats(value, data_type)
    if family_of(data_type) in (Family.TIMESTAMP, Family.INSTANT, Family.TIME):
        return _rank_in_steps(
            value, _NANOS[data_type.unit], *_INT64, lambda ticks: pa.scalar(ticks, data_type)
        )
    if isinstance(value, bytes):
        if pa.types.is_fixed_size_binary(data_type):
            raise UnsupportedTypeError(f"a {scalar.type} cannot be compared with a {data_type}")
        text = family_of(data_type) is Family.STRING
        return Ranked(Rank.AT, pa.scalar(value.decode() if text else value, data_type))
    return Ranked(Rank.AT, scalar.cast(data_type))


def _integer_bounds(data_type: pa.DataType) -> tuple[int, int]:
    bits = data_type.bit_width
    if pa.types.is_unsigned_integer(data_type):
        return 0, int(2**bits - 1)
    return -int(2 ** (bits - 1)), int(2 ** (bits - 1) - 1)


def _decimal(unscaled: int, scale: int) -> Decimal:
    # Decimal arithmetic would round to the context's precision; the constructor does not.
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))


def _rank_in_steps(value: Plain, step: int | Fraction, low: int, high: int, to_scalar: object) -> Ranked:
    """Return the rank of a number among the multiples of `step` from low * step to high * step."""
    assert callable(to_scalar)
    if isinstance(value, float) and not math.isfinite(value):
        return Ranked(Rank.BELOW if value < 0 else Rank.ABOVE)  # NaN sorts above every integer
    assert not isinstance(value, bytes)
    exact = Fraction(value)
    multiple = math.floor(exact / step)
    if multiple < low:
        return Ranked(Rank.BELOW)
    if multiple > high:
        return Ranked(Rank.ABOVE)
    is_equal = multiple * step == exact
    if not is_equal and multiple == high:
        return Ranked(Rank.ABOVE)
    return Ranked(Rank.AT if is_equal else Rank.BETWEEN, to_scalar(multiple))


def _rank_in_floats(value: Plain, data_type: pa.DataType) -> Ranked:
    dtype = np.dtype(data_type.to_pandas_dtype()).type
    with np.errstate(over="ignore"):
        try:
            nearest = dtype(float(value))
        except OverflowError:  # an integer beyond the largest double
            nearest = dtype(math.copysign(math.inf, value))  # type: ignore[arg-type]  # an int
        if is_nan(float(nearest)):
            return Ranked(Rank.AT, pa.scalar(float("nan"), data_type))
        # Converting by way of double rounds twice, so the result may be one step off in either direction.
        while compare(float(nearest), value) > 0:
            nearest = np.nextafter(nearest, dtype(-math.inf))
        while nearest != math.inf and compare(float(np.nextafter(nearest, dtype(math.inf))), value) <= 0:
            nearest = np.nextafter(nearest, dtype(math.inf))
    is_equal = compare(float(nearest), value) == 0
    return Ranked(Rank.AT if is_equal else Rank.BETWEEN, pa.scalar(nearest, data_type))
