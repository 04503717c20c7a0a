"""Defaults of columns, for rows whose writer gives no value.

A schema keeps them as text (`defaultValue`), spelled so that Paimon, which takes off quotes around it and
casts the rest to the column's type, means the same. Source: Paimon's `DefaultValueUtils`. A given null stays
null, as in SQL; Paimon's writer replaces it by the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.types import DataField, DataType, Kind, parse_iso_date, parse_iso_datetime, to_arrow

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<number>[-+]?\s*(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?:bd|[lsydf])?)(?![\w.])
      | (?P<word>[a-z_]+)
      | (?P<mark>[(),])
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
_TEMPORAL = frozenset({Kind.DATE, Kind.TIMESTAMP})
_TYPED_TEXTS = frozenset({"date", "timestamp", "timestamp_ntz"})
_MAKERS = frozenset({"array", "map", "struct", "named_struct"})


class _Text(str):
    """A text that was quoted, or the text of a typed literal."""


class _Made(list[Any]):
    """The arguments of ARRAY(...) and its like; `maker` says which."""

    maker = ""


def with_stored_default(field: DataField) -> DataField:
    """Return a column whose default is SQL with the default as schemas keep it; DEFAULT NULL is none.

    Raises InputError if it is no constant of the column's type, UnsupportedError for types whose constants
    Paimon reads in another way.
    """
    if field.default is None:
        return field
    if field.type.kind is Kind.TIMESTAMP_LTZ or field.type.is_binary:
        raise UnsupportedError(
            f"column {field.name!r} of type {field.type} cannot have a DEFAULT: engines read its text in "
            "different ways"
        )
    parsed = _parsed(field, field.default)
    if parsed is None:
        return replace(field, default=None)
    value = _value(field, field.type, parsed)
    if field.type.is_nested:
        return replace(field, default=field.default.strip())
    if field.type.kind in (Kind.CHAR, Kind.VARCHAR) or field.type.kind in _TEMPORAL:
        return replace(field, default=f"'{value}'")
    return replace(field, default=str(value).lower() if isinstance(value, bool) else str(value))


def default_value(field: DataField) -> Any:
    """Return the value that a column's stored default stands for; None if it has none.

    Raises InputError if another engine stored what is not understood here.
    """
    if field.default is None:
        return None
    text = field.default.strip()
    if field.type.is_nested:
        return _value(field, field.type, _parsed(field, text))
    inner = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text
    return _value(field, field.type, _Text(inner))


def default_array(field: DataField, rows: int) -> pa.Array:
    """Return what so many rows get in a column that their writer leaves out: its default, or nulls."""
    kind = to_arrow(field.type)
    if field.default is None:
        return pa.nulls(rows, kind)
    return pa.repeat(pa.scalar(default_value(field), kind), rows)


def default_sql(field: DataField) -> str | None:
    """Return a column's default as Spark's SQL spells it; None if it has none."""
    if field.default is None or field.type.is_nested:
        return field.default
    value, kind = default_value(field), field.type.kind
    if kind in _TEMPORAL:
        return f"{'DATE' if kind is Kind.DATE else 'TIMESTAMP_NTZ'} '{value}'"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{escaped}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- constants of SQL ----------------------------------------------------------------------------


def _parsed(field: DataField, text: str) -> Any:
    parser = _Parser(field, text)
    parsed = parser.constant()
    if parser.tokens:
        raise parser.error()
    return parsed


class _Parser:
    """Reads a constant of SQL from the front of its tokens."""

    def __init__(self, field: DataField, text: str) -> None:
        self._field, self._text = field, text.strip()
        self.tokens = list(self._split())

    def error(self) -> InputError:
        return InputError(
            f"the DEFAULT of column {self._field.name!r} must be a constant such as 5, 'a', "
            f"DATE '2024-03-01' or ARRAY(1, 2), not {self._text}"
        )

    def _split(self) -> Iterator[tuple[str, str]]:
        position = 0
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                raise self.error()
            position = match.end()
            yield str(match.lastgroup), match[str(match.lastgroup)]

    def _next(self, kind: str, *words: str) -> str | None:
        """Take the next token if it is of a kind, and one of `words` if there are any."""
        if self.tokens and self.tokens[0][0] == kind and (not words or self.tokens[0][1].lower() in words):
            return self.tokens.pop(0)[1]
        return None

    def constant(self) -> Any:
        """Take a constant: a text, a number, a truth value, null, or what ARRAY and its like make."""
        number = self._next("number")
        if number is not None:
            return Decimal(re.sub(r"(?i)(bd|[lsydf])$|\s", "", number))
        word = self._next("word", "null", "true", "false")
        if word is not None:
            return {"null": None, "true": True, "false": False}[word.lower()]
        maker = self._next("word", *_MAKERS)
        if maker is not None:
            return self._made(maker.lower())
        self._next("word", *_TYPED_TEXTS)
        text = self._next("text")
        if text is None:
            raise self.error()
        return _unquoted(text)

    def _made(self, maker: str) -> _Made:
        if self._next("mark", "(") is None:
            raise self.error()
        found = _Made()
        found.maker = maker
        if self._next("mark", ")"):
            return found
        while True:
            found.append(self.constant())
            if self._next("mark", ")"):
                return found
            if self._next("mark", ",") is None:
                raise self.error()


def _unquoted(token: str) -> _Text:
    quote = token[0]

    def plain(match: re.Match[str]) -> str:
        return quote if match[0] == quote * 2 else _ESCAPES.get(match[1], match[1])

    return _Text(re.sub(rf"\\(.)|{quote}{quote}", plain, token[1:-1], flags=re.DOTALL))


# --- values of types -----------------------------------------------------------------------------


def _value(field: DataField, data_type: DataType, parsed: Any) -> Any:
    """Return the value of a type that a constant stands for; InputError if it is none of that type."""
    if parsed is None:
        if data_type.nullable:
            return None
        raise InputError(f"the DEFAULT of column {field.name!r} is null, but {data_type} holds no nulls")
    try:
        value = _nested(field, data_type, parsed) if data_type.is_nested else _atom(data_type, parsed)
        if not data_type.is_nested:
            pa.scalar(value, to_arrow(data_type))
    except (ArithmeticError, TypeError, ValueError, LookupError) as error:
        if isinstance(error, InputError):
            raise
        shown = parsed if not isinstance(parsed, _Made) else parsed.maker.upper() + "(...)"
        raise InputError(f"the DEFAULT {shown} of column {field.name!r} is no {data_type}: {error}") from None
    return value


def _atom(data_type: DataType, parsed: Any) -> Any:
    if isinstance(parsed, _Made):
        raise TypeError(f"{parsed.maker.upper()}(...) makes another type")
    text = str(parsed).strip() if isinstance(parsed, _Text | Decimal) else parsed
    if data_type.kind is Kind.BOOLEAN:
        return {"true": True, "false": False}[str(text).lower()]
    if data_type.kind in (Kind.CHAR, Kind.VARCHAR):
        return _fitting(data_type, str(parsed))
    if isinstance(parsed, bool):
        raise TypeError("a truth value is of type BOOLEAN")
    if data_type.kind is Kind.DATE:
        return parse_iso_date(text)
    if data_type.kind is Kind.TIMESTAMP:
        return parse_iso_datetime(text)
    if data_type.kind is Kind.DECIMAL:
        exact = Decimal(text).quantize(Decimal(1).scaleb(-(data_type.scale or 0)))
        if exact != Decimal(text):
            raise ValueError(f"it has more than {data_type.scale} digits after the point")
        return exact
    if data_type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return float(text)
    return int(Decimal(text).to_integral_exact()) if Decimal(text) % 1 == 0 else int(text)


def _fitting(data_type: DataType, text: str) -> str:
    if data_type.length is not None and len(text) > data_type.length:
        raise ValueError(f"it is longer than {data_type.length} characters")
    return text


def _nested(field: DataField, data_type: DataType, parsed: Any) -> Any:
    maker = getattr(parsed, "maker", "")
    if data_type.kind is Kind.ARRAY and maker == "array":
        return [_value(field, data_type.element_type(), item) for item in parsed]
    if data_type.kind is Kind.MAP and maker == "map" and len(parsed) % 2 == 0:
        pairs = zip(parsed[::2], parsed[1::2], strict=True)
        return [
            (_value(field, data_type.key_type(), key), _value(field, data_type.value_type(), item))
            for key, item in pairs
        ]
    if data_type.kind is Kind.ROW and maker == "struct" and len(parsed) == len(data_type.fields):
        members = zip(data_type.fields, parsed, strict=True)
        return {member.name: _value(field, member.type, item) for member, item in members}
    if data_type.kind is Kind.ROW and maker == "named_struct" and len(parsed) % 2 == 0:
        named = dict(zip(map(str, parsed[::2]), parsed[1::2], strict=True))
        if len(named) == len(data_type.fields):
            return {
                member.name: _value(field, member.type, named[member.name]) for member in data_type.fields
            }
    raise ValueError(
        f"write it by {data_type.kind.lower() if data_type.kind is not Kind.ROW else 'struct'}(...)"
    )
