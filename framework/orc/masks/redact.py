"""Apache ORC's mask `redact`: values keep their shape (length, digits, year) and lose the rest.

The parameters and their effect on each type are those of `RedactMaskFactory` in Apache ORC 2.3. Where its
code differs from its documentation, this follows the documentation (docs/encryption.md lists the
differences).
"""

from __future__ import annotations

import decimal
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import OptionError
from lockgate.framework.orc.masks.numbers import (
    java_double,
    redact_decimals,
    redact_doubles,
    redact_integers,
    redact_texts,
)
from lockgate.framework.orc.masks.text import CLASSES, KEEP, Ranges, TextRedaction, keeps

_DIGITS = 2  # Index of the class of digits.
# Name, default and highest value of each time parameter; the value None keeps that part.
_TIMES: Sequence[tuple[str, int | None, int]] = (
    ("year", None, 4000),
    ("month", 1, 12),
    ("day", 1, 31),
    ("hour", 0, 23),
    ("minute", 0, 59),
    ("second", 0, 59),
)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_OVERFLOW = 111_111_111_111_111_111
_Numbers = npt.NDArray[np.int64]


class Redact:
    """A mask for arrays of any flat type, with up to three parameters.

    1. the characters that replace upper-case letters, lower-case letters, digits, symbols, punctuation,
       separators, other letters, marks, other numbers and everything else; `_` keeps a class. By default
       ``Xx9$._ªः²۝``. The third is also the digit of numbers, and makes booleans false if it is 0;
    2. year, month, day, hour, minute and second of dates and times, separated by blanks; `_` keeps a part.
       By default `_ 1 1 0 0 0`;
    3. positions to keep, `first:last`, several separated by commas; counted from 0, negative from the end.

    Raises `OptionError` for invalid parameters.
    """

    def __init__(self, parameters: Sequence[str]) -> None:
        if len(parameters) > 3:
            raise OptionError(f"redact takes at most 3 parameters, not {len(parameters)}")
        characters, times, ranges = (*parameters, *[""] * (3 - len(parameters)))
        replacements = _replacements(characters)
        self._times = _time_parts(times)
        self._ranges = _ranges(ranges)
        self._character = replacements[_DIGITS]
        self._digit = _digit(self._character)
        self._text = TextRedaction(replacements, self._ranges)

    def __call__(self, values: pa.Array) -> pa.Array:
        """Return the redacted array; nulls stay."""
        for test, redact in self._kinds():
            if test(values.type):
                return _with_nulls(redact(values), values)
        # Binaries have no shape to keep.
        return pa.nulls(len(values), values.type)

    def _kinds(self) -> Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]]]:
        return (
            (pa.types.is_boolean, self._booleans),
            (pa.types.is_integer, self._integers),
            (pa.types.is_floating, self._doubles),
            (pa.types.is_decimal, self._decimals),
            (pa.types.is_string, self._text),
            (pa.types.is_large_string, self._text),
            (pa.types.is_date32, self._dates),
            (pa.types.is_timestamp, self._timestamps),
        )

    def _booleans(self, values: pa.Array) -> pa.Array:
        if self._character == KEEP:
            return values
        return pa.repeat(pa.scalar(self._digit != 0), len(values))

    def _integers(self, values: pa.Array) -> pa.Array:
        if self._character == KEEP:
            return values
        if self._ranges:
            masked = redact_texts(values, pa.int64(), str, self._integer)
        else:
            masked = pa.array(redact_integers(_numbers(values), self._digit))
        # Keep the low bits, as Java does: a mask with as many digits may be too large for the type.
        return pa.array(_numbers(masked).astype(values.type.to_pandas_dtype()))

    def _integer(self, text: str) -> int:
        masked = self._replace_digits(text)
        number = int(masked) if re.fullmatch(r"-?\d+", masked) else 1 << 63
        return number if -(1 << 63) <= number < 1 << 63 else _OVERFLOW * self._digit

    def _doubles(self, values: pa.Array) -> pa.Array:
        if self._character == KEEP:
            return values
        doubles = values.cast(pa.float64()).fill_null(0.0)
        if self._ranges:
            masked = redact_texts(doubles, pa.float64(), java_double, self._double).to_numpy()
        else:
            masked = redact_doubles(doubles.to_numpy(zero_copy_only=False), self._digit)
        with np.errstate(over="ignore"):
            return pa.array(masked.astype(values.type.to_pandas_dtype()))

    def _double(self, text: str) -> float:
        masked = self._replace_digits(text)
        if not masked.isascii():
            return float(_OVERFLOW * self._digit)
        try:
            return float(masked)
        except ValueError:
            return float(_OVERFLOW * self._digit)

    def _decimals(self, values: pa.Array) -> pa.Array:
        if self._character == KEEP:
            return values
        if not self._ranges:
            return redact_decimals(values, self._digit)
        return redact_texts(
            values, values.type, _plain_decimal, lambda text: self._decimal(text, values.type)
        )

    def _decimal(self, text: str, type_: Any) -> decimal.Decimal:
        masked = decimal.Decimal(self._replace_digits(text, str(self._digit)))
        sign, digits, exponent = masked.as_tuple()
        assert isinstance(exponent, int)
        digits = (*digits, *[0] * (type_.scale + exponent))
        return decimal.Decimal((sign, digits[-type_.precision :], -type_.scale))

    def _replace_digits(self, text: str, digit: str | None = None) -> str:
        """Return a number's text with its digits replaced, except digits in ranges to keep."""
        # Texts of numbers are ASCII.
        return "".join(
            (digit or self._character)
            if character in "0123456789" and not keeps(self._ranges, index, len(text))
            else character
            for index, character in enumerate(text)
        )

    def _dates(self, values: pa.Array) -> pa.Array:
        if self._times[:3] == [None] * 3:
            return values
        days = _numbers(values.cast(pa.int32()))
        return pa.array(self._date(days).astype(np.int32)).cast(pa.date32())

    def _timestamps(self, values: pa.Array) -> pa.Array:
        if self._times == [None] * 6:
            return values
        per_second = _PER_SECOND[values.type.unit]
        year = self._times[0]
        if values.type.unit == "ns" and year is not None and not 1678 <= year <= 2261:
            raise OptionError(
                f"a timestamp in nanoseconds cannot have the year {year}; cast it to microseconds first"
            )
        seconds = np.floor_divide(_numbers(values.cast(pa.int64())), per_second)
        days, second_of_day = np.divmod(seconds, _DAY)
        parts = [second_of_day // 3600, second_of_day // 60 % 60, second_of_day % 60]
        hour, minute, second = (
            part if parameter is None else np.full_like(part, parameter)
            for part, parameter in zip(parts, self._times[3:], strict=True)
        )
        masked = self._date(days) * _DAY + hour * 3600 + minute * 60 + second
        return pa.array(masked * per_second).cast(values.type)

    def _date(self, days: _Numbers) -> _Numbers:
        """Return days since 1970 with year, month and day replaced; a day beyond the month's end runs into
        the next month.
        """
        year, month, day = self._times[:3]
        if year is None and month is None and day is None:
            return days
        dates = days.astype("M8[D]")
        months = dates.astype("M8[M]")
        numbers = months.astype(np.int64)
        days_before = (dates - months.astype("M8[D]")).astype(np.int64)
        years = np.floor_divide(numbers, 12) if year is None else np.full_like(numbers, year - 1970)
        months_in = numbers % 12 if month is None else np.full_like(numbers, month - 1)
        first = (years * 12 + months_in).astype("M8[M]").astype("M8[D]").astype(np.int64)
        result: _Numbers = first + (days_before if day is None else day - 1)
        return result


def _numbers(values: pa.Array) -> _Numbers:
    numbers: _Numbers = values.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def _with_nulls(masked: pa.Array, values: pa.Array) -> pa.Array:
    if not values.null_count or masked is values:
        return masked
    return pc.if_else(values.is_valid(), masked, pa.scalar(None, masked.type))


def _plain_decimal(value: decimal.Decimal) -> str:
    """Return a decimal in Hive's form: without exponent and without trailing zeros of the fraction."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


# --- parameters ---


def _replacements(text: str) -> list[str]:
    if len(text) > len(CLASSES):
        raise OptionError(
            f"the first parameter of redact has a character for each of {len(CLASSES)} classes "
            f"({', '.join(name for name, _, _ in CLASSES)}), but {text!r} has {len(text)}"
        )
    return [*text, *(default for _, default, _ in CLASSES[len(text) :])]


def _digit(character: str) -> int:
    """Return the digit that replaces the digits of numbers: the character's value, or 9 if it has none."""
    is_number = unicodedata.category(character) in ("Nd", "Nl", "No")
    value = unicodedata.numeric(character, -1.0) if is_number else -1.0
    return int(value) if value in range(10) else 9


def _time_parts(text: str) -> list[int | None]:
    values = re.findall(r"\w+", text, re.ASCII)
    if len(values) > len(_TIMES) or re.search(r"[^\s\w/:,.]", text):
        raise OptionError(
            f"the second parameter of redact has up to {len(_TIMES)} numbers or _ "
            f"({', '.join(name for name, _, _ in _TIMES)}), not {text!r}"
        )
    parts: list[int | None] = [default for _, default, _ in _TIMES]
    for index, value in enumerate(values):
        name, _, highest = _TIMES[index]
        if value.startswith("_"):
            parts[index] = None
        elif value.isdigit() and int(value) <= highest:
            parts[index] = int(value)
        else:
            raise OptionError(f"redact: the {name} of times is 0 to {highest} or _, not {value!r}")
    return parts


def _ranges(text: str) -> Ranges:
    ranges: dict[int, int] = {}
    for part in text.split(",") if text.strip() else ():
        match = re.fullmatch(r"\s*([+-]?\d{1,9}):([+-]?\d{1,9})\s*", part)
        if match is None:
            raise OptionError(
                "the third parameter of redact has ranges of positions as in '0:3,-4:-1', not "
                f"{part.strip()!r}"
            )
        ranges[int(match[1])] = int(match[2])
    return ranges
