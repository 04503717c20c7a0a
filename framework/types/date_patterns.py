"""Parsing and formatting of times by Java's patterns, as in `java.time.format.DateTimeFormatter`.

Parsing is strict as in Java: each field has its width, so `202611` does not match `yyyyMMdd`. Pattern letters
that depend on a language, a time zone or the first day of the week are refused.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import lru_cache

from lockgate.errors import InputError

_MAX_LENGTH, _MAX_DEPTH = 200, 16
_MAX_DIGITS = 19
_BASE_YEAR = 2000
_DIGITS = frozenset("0123456789")
_MAX_VALUES = {"y": 9999, "M": 12, "d": 31, "D": 366}
# Letters that stand at most twice in a row; a single one matches any number of digits.
_SHORT = frozenset("MLdHms")
_LETTERS = "y, u, M, L, d, D, H, m, s and S"


class _Sign(Enum):
    NONE = auto()  # as in `dd`
    MINUS = auto()  # as in `d`
    PLUS_IF_LONGER = auto()  # as in `yyyy`


@dataclass(frozen=True)
class _Number:
    """A numeric field; `following` is the width of the numbers right after it, None for a fixed width.

    A field leaves as many digits as `following` to the numbers after it.
    """

    letter: str
    min_digits: int
    max_digits: int
    sign: _Sign
    following: int | None = 0

    def parse(self, text: str, start: int, fields: dict[str, int]) -> int | None:
        """Parse the number at `start` into `fields`, and return its end; None if the text does not match."""
        position, sign = start, text[start : start + 1]
        if sign in ("+", "-") and sign:
            if self.sign is _Sign.NONE or (sign == "+" and self.sign is _Sign.MINUS):
                return None
            position += 1
        digits = 0
        while (
            digits < self.max_digits + (self.following or 0)
            and text[position + digits : position + digits + 1] in _DIGITS
        ):
            digits += 1
        if self.following:
            digits = min(digits, max(self.min_digits, digits - self.following))
        if digits < self.min_digits:
            return None
        if self.sign is _Sign.PLUS_IF_LONGER and sign != "-" and (sign == "+") != (digits > self.min_digits):
            return None
        value = self._value(text[position : position + digits], sign)
        if value is None or fields.setdefault(self.letter, value) != value:
            return None
        return position + digits

    def _value(self, digits: str, sign: str) -> int | None:
        if self.letter == "S":
            return int(digits.ljust(9, "0"))
        value = int(digits) + (_BASE_YEAR if self.letter in "yu" and self.max_digits == 2 else 0)
        if sign == "-":
            return -value or None  # Java refuses minus zero
        return value

    def format(self, time: datetime.datetime) -> str:
        """Return the field's digits for a time."""
        if self.letter == "S":
            return f"{time.microsecond * 1000:09d}"[: self.max_digits]
        value = {
            "y": time.year,
            "u": time.year,
            "M": time.month,
            "d": time.day,
            "D": time.timetuple().tm_yday,
            "H": time.hour,
            "m": time.minute,
            "s": time.second,
        }[self.letter]
        if self.letter in "yu" and self.max_digits == 2:
            value %= 100
        return f"{value:0{self.min_digits}d}"


@dataclass(frozen=True)
class _Literal:
    text: str

    def parse(self, text: str, start: int, fields: dict[str, int]) -> int | None:
        return start + len(self.text) if text.startswith(self.text, start) else None

    def format(self, time: datetime.datetime) -> str:
        return self.text


@dataclass(frozen=True)
class _Optional:
    """An optional section, `[ ]`."""

    parts: tuple[_Part, ...]

    def parse(self, text: str, start: int, fields: dict[str, int]) -> int | None:
        new_fields = dict(fields)
        end = _parse(self.parts, text, start, new_fields)
        if end is None:
            return start
        fields.update(new_fields)
        return end

    def format(self, time: datetime.datetime) -> str:
        return "".join(part.format(time) for part in self.parts)


_Part = _Number | _Literal | _Optional


def _parse(parts: tuple[_Part, ...], text: str, start: int, fields: dict[str, int]) -> int | None:
    end: int | None = start
    for part in parts:
        if end is None:
            return None
        end = part.parse(text, end, fields)
    return end


@dataclass(frozen=True)
class DatePattern:
    """A pattern such as `yyyyMMdd` or `yyyy-MM-dd HH:mm[:ss]`; create it by `date_pattern`.

    >>> date_pattern("yyyyMMdd").parse("20260131")
    datetime.datetime(2026, 1, 31, 0, 0)
    >>> date_pattern("yyyyMMdd").parse("202611")
    """

    parts: tuple[_Part, ...]

    def parse(self, text: str) -> datetime.datetime | None:
        """Parse a time, or a date as its midnight; None if the text does not match."""
        fields: dict[str, int] = {}
        if _parse(self.parts, text, 0, fields) != len(text):
            return None
        try:
            return _time_of(fields)
        except (ValueError, OverflowError):  # a field out of range, or a year that Python does not support
            return None

    def format(self, time: datetime.datetime) -> str:
        """Return the text of a time, including optional sections."""
        return "".join(part.format(time) for part in self.parts)


@lru_cache(maxsize=128)
def date_pattern(pattern: str) -> DatePattern:
    """Parse a pattern of Java's letters; InputError for an invalid one, or one without a date."""
    if len(pattern) > _MAX_LENGTH:
        why = f"it has {len(pattern):,} characters, more than {_MAX_LENGTH}"
        raise _refusal(f"{pattern[:20]}...", why)
    parts = tuple(_parse_pattern(pattern))
    letters = {part.letter for part in _numbers(parts)}
    if not letters & {"y", "u"} or not ({"M", "d"} <= letters or "D" in letters):
        raise _refusal(pattern, "a date needs a year, a month and a day, as in 'yyyy-MM-dd'")
    return DatePattern(parts)


def _refusal(pattern: str, why: str) -> InputError:
    return InputError(f"{pattern!r} is not a pattern of times: {why}")


def _numbers(parts: tuple[_Part, ...]) -> Iterator[_Number]:
    for part in parts:
        if isinstance(part, _Number):
            yield part
        elif isinstance(part, _Optional):
            yield from _numbers(part.parts)


@dataclass
class _Section:
    """The parsed parts of a pattern's section; `head` is the index of a number that adjacent numbers
    follow.
    """

    parts: list[_Part] = field(default_factory=list)
    head: int | None = None

    def add(self, part: _Part) -> None:
        self.parts.append(part)
        self.head = None

    def add_number(self, number: _Number) -> None:
        """Add a number; the first of adjacent numbers leaves digits to following ones of fixed width."""
        if self.head is None:
            self.parts.append(number)
            self.head = len(self.parts) - 1
            return
        first = self.parts[self.head]
        assert isinstance(first, _Number)
        if number.min_digits == number.max_digits and number.sign is _Sign.NONE:
            self.parts[self.head] = replace(first, following=(first.following or 0) + number.max_digits)
            self.parts.append(replace(number, following=None))
        else:
            self.parts[self.head] = replace(first, following=first.following or None)
            self.parts.append(number)
            self.head = len(self.parts) - 1


def _parse_pattern(pattern: str) -> list[_Part]:
    sections = [_Section()]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character.isascii() and character.isalpha():
            count = len(pattern[position:]) - len(pattern[position:].lstrip(character))
            sections[-1].add_number(_number_part(pattern, character, count))
            position += count
            continue
        if character == "'":
            text, position = _quoted(pattern, position)
            sections[-1].add(_Literal(text))
            continue
        if character == "[":
            sections[-1].head = None
            sections.append(_Section())
            if len(sections) > _MAX_DEPTH:
                raise _refusal(pattern, f"'[' is nested deeper than {_MAX_DEPTH - 1} levels")
        elif character == "]":
            if len(sections) == 1:
                raise _refusal(pattern, "']' has no '[' before it")
            _close_section(sections)
        elif character in "{}#":
            raise _refusal(pattern, f"{character!r} is reserved: write it in quotes")
        else:
            sections[-1].add(_Literal(character))
        position += 1
    while len(sections) > 1:
        _close_section(sections)
    return sections[0].parts


def _close_section(sections: list[_Section]) -> None:
    closed = sections.pop()
    if closed.parts:
        sections[-1].add(_Optional(tuple(closed.parts)))


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    position, text = start + 1, ""
    while position < len(pattern):
        if pattern[position] != "'":
            text += pattern[position]
        elif pattern[position + 1 : position + 2] == "'":
            text += "'"
            position += 1
        else:
            return text or "'", position + 1
        position += 1
    raise _refusal(pattern, "a quote is not closed")


def _number_part(pattern: str, letter: str, count: int) -> _Number:
    if letter in "yu":
        if count == 2:
            return _Number(letter, 2, 2, _Sign.NONE)
        return _Number(letter, count, _MAX_DIGITS, _Sign.PLUS_IF_LONGER if count > 3 else _Sign.MINUS)
    if letter in _SHORT and count <= 2:
        field_letter = "M" if letter == "L" else letter
        return (
            _Number(field_letter, 2, 2, _Sign.NONE)
            if count == 2
            else _Number(field_letter, 1, _MAX_DIGITS, _Sign.MINUS)
        )
    if letter == "D" and count <= 3:
        return _Number("D", count, 3, _Sign.NONE) if count > 1 else _Number("D", 1, _MAX_DIGITS, _Sign.MINUS)
    if letter == "S" and count <= 9:
        return _Number("S", count, count, _Sign.NONE)
    raise _refusal(pattern, f"{letter * count!r} is not one of {_LETTERS} in a supported number")


def _time_of(fields: dict[str, int]) -> datetime.datetime:
    """Return the time of parsed fields, resolved as in Java's mode SMART; ValueError if they are invalid."""
    for letter in "yMdD":
        if letter in fields and not 1 <= fields[letter] <= _MAX_VALUES[letter]:
            raise ValueError(letter)
    year = fields.get("u", fields.get("y", 0))
    if fields.get("y", year) != year:
        raise ValueError("two years")
    day = _date_of(year, fields)
    return day + _time_within(fields)


def _date_of(year: int, fields: dict[str, int]) -> datetime.datetime:
    if "M" in fields and "d" in fields:
        first = datetime.datetime(year, fields["M"], 1)
        # As in mode SMART, the 31st of a month of 30 days is its last day.
        following = first.replace(day=28) + datetime.timedelta(days=4)
        last = (following - datetime.timedelta(days=following.day)).day
        day = first.replace(day=min(fields["d"], last))
        if fields.get("D", day.timetuple().tm_yday) != day.timetuple().tm_yday:
            raise ValueError("two days")
        return day
    day = datetime.datetime(year, 1, 1) + datetime.timedelta(days=fields["D"] - 1)
    if day.year != year or fields.get("M", day.month) != day.month or fields.get("d", day.day) != day.day:
        raise ValueError("two days")
    return day


def _time_within(fields: dict[str, int]) -> datetime.timedelta:
    """Return the time of day; midnight if a larger unit is missing, as in Java."""
    hour, minute, second, nanos = (fields.get(letter) for letter in "HmsS")
    if hour is None or (minute is None and (second, nanos) != (None, None)):
        return datetime.timedelta(0)
    if second is None and nanos is not None:
        return datetime.timedelta(0)
    minute, second, nanos = minute or 0, second or 0, nanos or 0
    is_end_of_day = hour == 24 and not (minute or second or nanos)
    if not (is_end_of_day or 0 <= hour < 24) or not (0 <= minute < 60 and 0 <= second < 60):
        raise ValueError("no time of day")
    return datetime.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=nanos // 1000)
