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


def family_of(kind: pa.DataType) -> Family | None:
    """Return the family of an Arrow type, None for types without an order (lists, maps, structs, ...)."""
    family = _FAMILIES.get(kind.id)
    return Family.INSTANT if family is Family.TIMESTAMP and kind.tz else family


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


class Place(enum.Enum):
    """Places of a literal among the values of a type."""

    BELOW = "below every value"
    AT = "equal to a value"
    BETWEEN = "right above a value"
    ABOVE = "above every value"


@dataclass(frozen=True)
class Placed:
    """A literal seen from a type: `value` (of that type) is the literal itself or the next value below it."""

    place: Place
    value: pa.Scalar | None = None


def place(scalar: pa.Scalar, kind: pa.DataType) -> Placed:
    """Place a literal that is not null among the values of `kind`, without loss.

    111.321 lies `BETWEEN` with value 111 for an INT, `AT` for a DECIMAL(6,3), `ABOVE` every TINYINT if it
    were 200. Raises UnsupportedTypeError if the two types cannot be compared.
    """
    if not comparable(scalar.type, kind):
        raise UnsupportedTypeError(f"a {scalar.type} cannot be compared with a {kind}")
    if scalar.type == kind:
        return Placed(Place.AT, scalar)
    value = plain(scalar)
    if pa.types.is_integer(kind):
        low, high = _integer_bounds(kind)
        return _placed_integer(value, 1, low, high, lambda whole: pa.scalar(whole, kind))
    if pa.types.is_decimal(kind):
        high = 10**kind.precision - 1
        step = Fraction(1, 10**kind.scale) if kind.scale >= 0 else Fraction(10**-kind.scale)
        return _placed_integer(value, step, -high, high, lambda n: pa.scalar(_decimal(n, kind.scale), kind))
    if pa.types.is_floating(kind):
        return _placed_float(value, kind)
    if family_of(kind) in (Family.TIMESTAMP, Family.INSTANT, Family.TIME):
        return _placed_integer(value, _NANOS[kind.unit], *_INT64, lambda ticks: pa.scalar(ticks, kind))
    if isinstance(value, bytes):
        if pa.types.is_fixed_size_binary(kind):
            raise UnsupportedTypeError(f"a {scalar.type} cannot be compared with a {kind}")
        text = family_of(kind) is Family.STRING
        return Placed(Place.AT, pa.scalar(value.decode() if text else value, kind))
    return Placed(Place.AT, scalar.cast(kind))


def _integer_bounds(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    if pa.types.is_unsigned_integer(kind):
        return 0, int(2**bits - 1)
    return -int(2 ** (bits - 1)), int(2 ** (bits - 1) - 1)


def _decimal(unscaled: int, scale: int) -> Decimal:
    # Decimal arithmetic would round to the context's precision; the constructor does not.
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))


def _placed_integer(value: Plain, step: int | Fraction, low: int, high: int, make: object) -> Placed:
    """Place a number among the multiples of `step` from low * step to high * step."""
    assert callable(make)
    if isinstance(value, float) and not math.isfinite(value):
        return Placed(Place.BELOW if value < 0 else Place.ABOVE)  # NaN sorts above every integer
    assert not isinstance(value, bytes)
    exact = Fraction(value)
    whole = math.floor(exact / step)
    if whole < low:
        return Placed(Place.BELOW)
    if whole > high:
        return Placed(Place.ABOVE)
    at = whole * step == exact
    if not at and whole == high:
        return Placed(Place.ABOVE)
    return Placed(Place.AT if at else Place.BETWEEN, make(whole))


def _placed_float(value: Plain, kind: pa.DataType) -> Placed:
    dtype = np.dtype(kind.to_pandas_dtype()).type
    with np.errstate(over="ignore"):
        try:
            near = dtype(float(value))
        except OverflowError:  # an integer beyond the largest double
            near = dtype(math.copysign(math.inf, value))  # type: ignore[arg-type]  # an int
        if is_nan(float(near)):
            return Placed(Place.AT, pa.scalar(float("nan"), kind))
        # The detour over double rounds twice, so the neighbour may be one step off in either direction.
        while compare(float(near), value) > 0:
            near = np.nextafter(near, dtype(-math.inf))
        while near != math.inf and compare(float(np.nextafter(near, dtype(math.inf))), value) <= 0:
            near = np.nextafter(near, dtype(math.inf))
    exact = compare(float(near), value) == 0
    return Placed(Place.AT if exact else Place.BETWEEN, pa.scalar(near, kind))
