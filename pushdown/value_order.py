"""Exact comparison of values, whatever numeric types they have, in Spark's order.

A scalar is made *plain*: integers, floats and decimals stay numbers (Python compares those exactly with each
other), strings become their UTF-8 bytes, dates become days, times and timestamps become nanoseconds. NaN
equals NaN and is greater than every other number; -0.0 equals 0.0.
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
"""What `plain` makes of a scalar that is not null."""

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


# By type id, because a scan asks for every bound of every file.
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
    """Say whether values of the two types can be compared; a null literal goes with every type."""
    one, other = family_of(left), family_of(right)
    if one is None or other is None:
        return one is Family.NULL or other is Family.NULL
    return one is other or Family.NULL in (one, other)


def is_null(scalar: pa.Scalar) -> bool:
    """Say whether a scalar is null."""
    return not scalar.is_valid


def plain(scalar: pa.Scalar) -> Plain:
    """Make a scalar that is not null plain; raises UnsupportedTypeError for types without an order."""
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
    """Say whether a plain value is NaN."""
    return isinstance(value, float) and math.isnan(value)


def compare(left: Plain, right: Plain) -> int:
    """Return a number below, equal to or above zero, as `left` sorts before, with or after `right`.

    >>> compare(1, Decimal("1.0")), compare(float("nan"), float("inf")), compare(0.1, Decimal("0.1"))
    (0, 1, 1)
    """
    one, other = is_nan(left), is_nan(right)
    if one or other:
        return int(one) - int(other)
    return int(left > right) - int(left < right)  # type: ignore[operator]  # see `comparable`


def between(values: Sequence[Plain], low: Plain | None, high: Plain | None) -> bool:
    """Say whether one of `values`, in ascending order, is `low`, `high` or between them; None: no bound."""
    first = 0 if low is None else _first(values, lambda value: compare(value, low) >= 0)
    return first < len(values) and (high is None or compare(values[first], high) <= 0)


def _first(values: Sequence[Plain], reached: Callable[[Plain], bool]) -> int:
    return bisect.bisect_left(values, True, key=reached)


class Rank(enum.Enum):
    """Ranks of a literal among the values of a type."""

    BELOW = "below every value"
    AT = "equal to a value"
    BETWEEN = "right above a value"
    ABOVE = "above every value"


@dataclass(frozen=True)
class Ranked:
    """A literal seen from a type: `value` (of that type) is the literal itself or the next value below it."""

    rank: Rank
    value: pa.Scalar | None = None


def rank_of(scalar: pa.Scalar, data_type: pa.DataType) -> Ranked:
    """Rank a literal that is not null among the values of `data_type`, without loss.

    111.321 lies `BETWEEN` with value 111 for an INT, `AT` for a DECIMAL(6,3), `ABOVE` every TINYINT if it
    were 200. Raises UnsupportedTypeError if the two types cannot be compared.
    """
    if not comparable(scalar.type, data_type):
        raise UnsupportedTypeError(f"a {scalar.type} cannot be compared with a {data_type}")
    if scalar.type == data_type:
        return Ranked(Rank.AT, scalar)
    value = plain(scalar)
    if pa.types.is_integer(data_type):
        low, high = _integer_bounds(data_type)
        return _placed_integer(value, 1, low, high, lambda whole: pa.scalar(whole, data_type))
    if pa.types.is_decimal(data_type):
        high = 10**data_type.precision - 1
        step = Fraction(1, 10**data_type.scale) if data_type.scale >= 0 else Fraction(10**-data_type.scale)
        return _placed_integer(
            value, step, -high, high, lambda n: pa.scalar(_decimal(n, data_type.scale), data_type)
        )
    if pa.types.is_floating(data_type):
        return _placed_float(value, data_type)
    if family_of(data_type) in (Family.TIMESTAMP, Family.INSTANT, Family.TIME):
        return _placed_integer(
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


def _placed_integer(value: Plain, step: int | Fraction, low: int, high: int, make: object) -> Ranked:
    """Rank a number among the multiples of `step` from low * step to high * step."""
    assert callable(make)
    if isinstance(value, float) and not math.isfinite(value):
        return Ranked(Rank.BELOW if value < 0 else Rank.ABOVE)  # NaN sorts above every integer
    assert not isinstance(value, bytes)
    exact = Fraction(value)
    whole = math.floor(exact / step)
    if whole < low:
        return Ranked(Rank.BELOW)
    if whole > high:
        return Ranked(Rank.ABOVE)
    at = whole * step == exact
    if not at and whole == high:
        return Ranked(Rank.ABOVE)
    return Ranked(Rank.AT if at else Rank.BETWEEN, make(whole))


def _placed_float(value: Plain, data_type: pa.DataType) -> Ranked:
    dtype = np.dtype(data_type.to_pandas_dtype()).type
    with np.errstate(over="ignore"):
        try:
            near = dtype(float(value))
        except OverflowError:  # an integer beyond the largest double
            near = dtype(math.copysign(math.inf, value))  # type: ignore[arg-type]  # an int
        if is_nan(float(near)):
            return Ranked(Rank.AT, pa.scalar(float("nan"), data_type))
        # The detour over double rounds twice, so the neighbour may be one step off in either direction.
        while compare(float(near), value) > 0:
            near = np.nextafter(near, dtype(-math.inf))
        while near != math.inf and compare(float(np.nextafter(near, dtype(math.inf))), value) <= 0:
            near = np.nextafter(near, dtype(math.inf))
    exact = compare(float(near), value) == 0
    return Ranked(Rank.AT if exact else Rank.BETWEEN, pa.scalar(near, data_type))
