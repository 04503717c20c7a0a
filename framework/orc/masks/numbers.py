"""Redaction of numbers: all digits are replaced by one digit, as in Apache ORC's `redact`."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_POWERS = np.array([10**power for power in range(1, 19)], np.int64)
_ONES = np.array([int("1" * digits) for digits in range(1, 20)], np.int64)
_DOUBLE_POWERS = np.array([float(f"1e{power}") for power in range(-308, 308)])
_LEAST = np.iinfo(np.int64).min


def redact_integers(values: npt.NDArray[np.int64], digit: int) -> npt.NDArray[np.int64]:
    """Return each number with its digits replaced by `digit`; 19 nines would overflow, so they become 18."""
    sizes = np.abs(np.where(values == _LEAST, _LEAST + 1, values))
    ones = _ONES.copy()
    if digit == 9:
        ones[-1] = ones[-2]
    masked: npt.NDArray[np.int64] = (ones * digit)[np.searchsorted(_POWERS, sizes, side="right")]
    return np.where(values < 0, -masked, masked)


def redact_doubles(values: npt.NDArray[np.float64], digit: int) -> npt.NDArray[np.float64]:
    """Return each number as six digits times its power of ten; 0 counts as 1."""
    sizes = np.abs(values)
    places = np.maximum(np.searchsorted(_DOUBLE_POWERS, sizes, side="right") - 1, 0)
    # The order of multiplication is Java's, so that all bits are equal; NaN counts as negative in Java.
    base = np.where(values > 0, 1.11111, -1.11111)
    masked = digit * base * _DOUBLE_POWERS[places]
    flat = (values == 0) | (digit == 0)
    return np.where(flat, digit * 1.11111, masked)


def redact_decimals(values: pa.Array, digit: int) -> pa.Array:
    """Return each number with its digits replaced by `digit`, except trailing zeros of the fraction; a single
    zero before the point counts as a digit if the type has room for it.
    """
    precision, scale = values.type.precision, values.type.scale
    sizes = pc.abs(values.fill_null(decimal.Decimal(0)))
    # The limits fit into the type, except for the last, which is not compared.
    before = np.ones(len(values), np.int64)
    for power in range(1, precision - scale):
        limit = pa.scalar(decimal.Decimal(10) ** power, values.type)
        before += pc.greater_equal(sizes, limit).to_numpy(zero_copy_only=False)
    behind = np.full(len(values), max(scale, 0), np.int64)
    for places in range(scale - 1, -1, -1):
        is_shorter = pc.equal(_cut(sizes, places, precision - scale), sizes).to_numpy(zero_copy_only=False)
        if not is_shorter.any():
            break
        behind[is_shorter] = places
    negative = pc.less(values.fill_null(decimal.Decimal(0)), pa.scalar(decimal.Decimal(0), values.type))
    codes = (before * 64 + behind) * 2 + negative.to_numpy(zero_copy_only=False)
    distinct_codes, inverse = np.unique(codes, return_inverse=True)
    shapes = [_shape(int(code), digit, precision, scale) for code in distinct_codes]
    return pa.array(shapes, values.type).take(pa.array(inverse.astype(np.int64)))


def _cut(values: pa.Array, places: int, before: int) -> pa.Array:
    if places == before == 0:
        # Arrow fails to round to a type without integer digits.
        return pa.repeat(pa.scalar(decimal.Decimal(0), values.type), len(values))
    return pc.round(values, ndigits=places, round_mode="towards_zero")


def _shape(code: int, digit: int, precision: int, scale: int) -> decimal.Decimal:
    before, behind, negative = code // 128, code // 2 % 64, code % 2
    digits = [digit] * (before + behind) + [0] * (scale - behind)
    return decimal.Decimal((negative, tuple(digits[-precision:]), -scale))


def redact_texts(
    values: pa.Array, type_: pa.DataType, spell: Callable[[Any], str], redact: Callable[[str], Any]
) -> pa.Array:
    """Redact values as texts; each distinct value is redacted once."""
    encoded = values.dictionary_encode()
    masked = [redact(spell(value)) for value in encoded.dictionary.to_pylist()]
    return pa.array(masked, type_).take(encoded.indices)


def java_double(value: float) -> str:
    """Return a double in Java's notation: `1234.9`, `1.0E10`, `1.0E-4`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(decimal.Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    power = exponent + len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"
