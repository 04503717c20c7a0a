"""Options: key, parser, default and description."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from functools import cached_property
from typing import Generic, NewType, TypeVar

from lockgate.errors import InputError, OptionError

T = TypeVar("T")
Size = NewType("Size", int)

_SIZE_UNITS = {"": 1, "b": 1, "kb": 2**10, "k": 2**10, "mb": 2**20, "m": 2**20, "gb": 2**30, "g": 2**30}
_SIZE_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "bytes": 1}
_TIME_UNITS = {"ms": 0.001, "": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "m": 60.0}
_TIME_UNITS |= {"minute": 60.0, "h": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
# So much of a value stands in messages.
_SHOWN = 100
_FOLDER = re.compile(r"[^\x00-\x1f\x7f/\\]+")
_QUANTITY = re.compile(r"(\d+)\s*([a-z]*)", re.IGNORECASE)


def parse_size(text: str) -> Size:
    """Return the bytes of a size such as `128 mb`; a bare number counts bytes."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise ValueError("expected a size such as '128 mb'")
    return Size(int(match[1]) * _SIZE_UNITS[match[2].lower()])


def parse_some_size(text: str) -> Size:
    """Return the bytes of a size, which must not be zero."""
    size = parse_size(text)
    if size < 1:
        raise ValueError("expected 1 byte or more")
    return size


def parse_duration(text: str) -> timedelta:
    """Return the time of a duration such as `1 h` or `500 ms`; a bare number counts milliseconds."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError("expected a duration such as '1 h'")
    unit = match[2].lower()
    if unit not in _TIME_UNITS:
        unit = unit.removesuffix("s")
    if unit not in _TIME_UNITS:
        raise ValueError("expected a duration such as '1 h'")
    try:
        return timedelta(seconds=int(match[1]) * _TIME_UNITS[unit])
    except OverflowError:
        raise ValueError("expected a duration of less than a billion days") from None


def parse_bool(text: str) -> bool:
    """Return the truth of `true` or `false`."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.strip().lower() == "true"


def parse_names(text: str) -> tuple[str, ...]:
    """Return the names of a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def check_names(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of an argument; InputError for a single text, whose letters would be names."""
    if isinstance(names, str):
        raise InputError(f"{argument} takes a list of names, such as [{names!r}], not a text")
    checked = tuple(names)
    for name in checked:
        if not isinstance(name, str):
            raise InputError(f"{argument} takes names, not {name!r}")
    return checked


def parse_folder(text: str) -> str:
    """Return the names of a folder within another, such as `a/b`, as a path."""
    parts = text.strip().removesuffix("/").split("/")
    if any(part in ("", ".", "..") or not _FOLDER.fullmatch(part) for part in parts):
        raise ValueError("expected the names of folders, such as 'data' or 'a/b'")
    return "/".join(parts)


def parse_by_level(text: str) -> Mapping[int, str]:
    """Return what `0:avro,5:parquet` says of levels of files, in lower case."""
    found: dict[int, str] = {}
    for part in parse_names(text):
        level, colon, value = (piece.strip() for piece in part.partition(":"))
        if not (colon and value and level.isdecimal()):
            raise ValueError("expected levels and values such as '0:zstd,5:none'")
        found[int(level)] = value.lower()
    return found


@dataclass(frozen=True)
class OneOf:
    """A parser that accepts exactly `allowed`, in any case."""

    allowed: tuple[str, ...]

    def __call__(self, text: str) -> str:
        if text.strip().lower() not in self.allowed:
            raise ValueError(f"expected one of: {', '.join(filter(None, self.allowed))}")
        return text.strip().lower()


def one_of(*allowed: str) -> Callable[[str], str]:
    """Make a parser that accepts exactly `allowed`, in any case."""
    return OneOf(allowed)


def parse_whole(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


@dataclass(frozen=True)
class AtLeast:
    """A parser of whole numbers from `least` on."""

    least: int

    def __call__(self, text: str) -> int:
        value = parse_whole(text)
        if value < self.least:
            raise ValueError(f"expected {self.least} or more")
        return value


def at_least(least: int) -> Callable[[str], int]:
    """Make a parser of whole numbers from `least` on."""
    return AtLeast(least)


def _bucket_count(text: str) -> int:
    value = parse_whole(text)
    if value < -2 or value == 0:
        raise ValueError("expected a positive number of buckets, or -1 for an append table without buckets")
    return value


def parse_share(text: str) -> float:
    """Parse a share from 0 to 1; ValueError for any other text."""
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(f"a share must be from 0 to 1, not {text}")
    return share


# What a parser returns, as documentation names it.
_TYPE_NAMES = {
    "Size": "size",
    "bool": "`true` or `false`",
    "float": "number",
    "int": "whole number",
    "timedelta": "duration",
    "tuple[str, ...]": "list",
}
_WITHOUT_LIMIT = 2**31 - 1


class Effect(Enum):
    """What an option of a table does here; the last four are refused, because they change rows."""

    APPLIED = "applied"
    CARRIED = "kept for other engines"
    IGNORED = "nothing"
    NOT_WRITTEN = "read, not written"
    # Of a snapshot: how its files hold rows, by the schema that it was committed with.
    FILES_NOT_READ = "not written; snapshots with it are not read"
    # Of the table as it is now, whichever snapshot is read.
    NOT_READ = "neither read nor written"
    SELECTS = "applied by some reads, else only queries that select a state themselves are read"


REFUSED = frozenset({Effect.NOT_WRITTEN, Effect.FILES_NOT_READ, Effect.NOT_READ, Effect.SELECTS})


class Change(Enum):
    """When a table's option can be set, changed and removed."""

    ANY_TIME = ""
    WITHOUT_ROWS = "cannot change once the table has rows"
    AT_CREATION = "cannot change"


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option: its key, the parser of its text, its default (already parsed) and its description.

    A key may have placeholders for names, `index.<kind>.columns`, and end in `*` for any text; only a
    `<column>` may have dots. `effect` and `change` are for options of tables. If `effect` refuses tables,
    `doc` is the reason; with a value in `off`, or without a primary key if `needs_key`, the option means
    nothing.
    `shown_default` replaces the default in documentation.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    shown_default: str = field(default="", kw_only=True)
    effect: Effect = field(default=Effect.APPLIED, kw_only=True)
    change: Change = field(default=Change.ANY_TIME, kw_only=True)
    off: frozenset[str] = field(default=frozenset(), kw_only=True)
    needs_key: bool = field(default=False, kw_only=True)

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """The pattern of keys; None if there is only one."""
        parts = re.split(r"(<\w+>|\*$)", self.key)
        texts = {"<column>": "(.+)", "*": ".*"}
        regex = "".join(
            texts.get(part, "[^.]+") if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
        return re.compile(regex) if len(parts) > 1 else None

    def match(self, key: str) -> re.Match[str] | None:
        """Return how a key fits the pattern: the column is the first group."""
        return self.pattern.fullmatch(key) if self.pattern else None

    def of_column(self, name: str) -> Option[T]:
        """Return the option of one column."""
        return replace(self, key=self.key.replace("<column>", name))

    def has_meaning(self, value: str, *, has_key: bool) -> bool:
        """Return whether a value has a meaning in a table, with or without a primary key."""
        text = value.strip().lower()
        return bool(text) and text not in self.off and (has_key or not self.needs_key)

    def value_of(self, text: str) -> T:
        """Parse `text`; OptionError says what was expected."""
        try:
            return self.parse(text)
        except ValueError as error:
            value = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise OptionError(f"option {self.key!r} cannot be {value!r}: {error}") from None

    @property
    def type_name(self) -> str:
        """The type of its values, or the values that are allowed."""
        if isinstance(self.parse, OneOf):
            return ", ".join(f"`{each}`" for each in self.parse.allowed if each)
        if isinstance(self.parse, AtLeast):
            return f"whole number, {self.parse.least} or more"
        return _TYPE_NAMES.get(getattr(self.parse, "__annotations__", {}).get("return", ""), "text")

    @property
    def default_text(self) -> str:
        """The default as it would be written in an option; empty if there is none."""
        if self.shown_default:
            return self.shown_default
        if self.default == _WITHOUT_LIMIT:
            return "no limit"
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.default, timedelta):
            return _in_units(round(self.default.total_seconds() * 1000), _SHOWN_TIMES)
        if self.type_name == "size" and isinstance(self.default, int):
            return _in_units(self.default, _SHOWN_SIZES)
        return str(self.default) if isinstance(self.default, str | int | float) else ""


_SHOWN_TIMES = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1}
_SHOWN_SIZES = {"gb": 2**30, "mb": 2**20, "kb": 2**10, "bytes": 1}


def _in_units(number: int, units: Mapping[str, int]) -> str:
    unit = next(unit for unit, size in units.items() if size == 1 or (number and number % size == 0))
    return f"{number // units[unit]} {unit}"
