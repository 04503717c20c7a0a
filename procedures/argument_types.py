"""Types of arguments and results, a small part of Spark's DDL: one check for SQL, Python and shell."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockgate.errors import InputError, UnsupportedTypeError, nearest
from lockgate.framework import types
from lockgate.framework.types import parse_iso_date, parse_iso_datetime

_SCALARS: Mapping[str, types.DataType] = {
    "STRING": types.STRING,
    "BOOLEAN": types.BOOLEAN,
    "INT": types.INT,
    "BIGINT": types.BIGINT,
    "DOUBLE": types.DOUBLE,
    "DATE": types.DATE,
    "TIMESTAMP": types.timestamp_ltz(6),
}
_RANGES = {"INT": 31, "BIGINT": 63}
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_ARRAY = re.compile(r"ARRAY<(\w+)>")
_MAP = re.compile(r"MAP<STRING,(\w+)>")


@dataclass(frozen=True)
class ValueType:
    """One of STRING, BOOLEAN, INT, BIGINT, DOUBLE, DATE, TIMESTAMP, or an ARRAY or a MAP by STRING of these.

    In Python a TIMESTAMP is a `datetime` in UTC; one without a zone is taken as local time, as Spark does.
    """

    scalar: str
    container: str = ""

    @property
    def ddl(self) -> str:
        """The type in Spark's DDL."""
        if self.container == "MAP":
            return f"MAP<STRING,{self.scalar}>"
        return f"ARRAY<{self.scalar}>" if self.container else self.scalar

    def check(self, value: Any) -> Any:
        """Return the value, converted where nothing is lost; InputError if it is of another type.

        A text stands for the value that it writes: the command line has nothing else, and SQL sends what is
        not of the type as text, since Spark's own casts cut 5.5 to 5 or make nulls of what they cannot read.
        """
        if value is None:
            return None
        if self.container == "MAP":
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise InputError(f"a {self.ddl} is a mapping of strings, not {value!r}")
            return {key: self._check_scalar(item) for key, item in value.items()}
        if self.container == "ARRAY":
            if not isinstance(value, list | tuple):
                raise InputError(f"an {self.ddl} is a list, not {value!r}")
            return [self._check_scalar(item) for item in value]
        return self._check_scalar(value)

    def from_text(self, text: str) -> Any:
        """Return the value of a text on the command line: `a,b` for an array, `k=v,...` for a map."""
        if self.container == "MAP":
            pairs = (item.partition("=") for item in text.split(",") if item.strip())
            return {key.strip(): self._check_scalar(item.strip()) for key, _, item in pairs}
        if self.container == "ARRAY":
            return [self._check_scalar(item.strip()) for item in text.split(",") if item.strip()]
        return self._check_scalar(text)

    def to_json(self, value: Any) -> Any:
        """Return the value as the bridge carries it."""
        return self._map(value, lambda item: types.value_to_json(_SCALARS[self.scalar], item))

    def from_json(self, json: Any) -> Any:
        """Return the value that the bridge carried; a value of another type comes as text."""
        return self._map(json, self._scalar_from_json)

    def to_sql(self, value: Any) -> str:
        """Return the value as a literal of Spark SQL."""
        if value is None:
            return "NULL"
        if self.container == "MAP":
            entries = (f"{_quoted(key)},{self._to_sql(item)}" for key, item in value.items())
            return f"CAST(map({','.join(entries)}) AS {self.ddl})"
        if self.container == "ARRAY":
            return f"CAST(array({','.join(map(self._to_sql, value))}) AS {self.ddl})"
        return self._to_sql(value)

    def _map(self, value: Any, function: Any) -> Any:
        if value is None:
            return None
        if self.container == "MAP":
            return {key: function(item) for key, item in value.items()}
        return [function(item) for item in value] if self.container else function(value)

    def _scalar_from_json(self, json: Any) -> Any:
        if isinstance(json, str) and self.scalar in _TEXTS:
            return json
        return types.value_from_json(_SCALARS[self.scalar], json)

    def _check_scalar(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            from_text = _TEXTS.get(self.scalar) if isinstance(value, str) else None
            checked = _CHECKS[self.scalar](value if from_text is None else from_text(value.strip()))
        except (ValueError, KeyError, OverflowError):
            checked = None
        if checked is None:
            article = "an" if self.scalar == "INT" else "a"
            raise InputError(f"{value!r} is not {article} {self.scalar}")
        bits = _RANGES.get(self.scalar)
        if bits is not None and not -(2**bits) <= checked < 2**bits:
            raise InputError(f"{value!r} is out of the range of {self.scalar}")
        return checked

    def _to_sql(self, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if self.scalar == "TIMESTAMP":
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        if self.scalar == "DATE":
            return f"DATE '{value.isoformat()}'"
        if self.scalar == "DOUBLE" and not math.isfinite(value):
            return f"DOUBLE({_quoted(str(value))})"
        return (
            _quoted(value) if isinstance(value, str) else f"{value}{'D' if self.scalar == 'DOUBLE' else ''}"
        )


def value_type(ddl: str) -> ValueType:
    """Parse a type such as `BIGINT` or `map<string, string>`; UnsupportedTypeError names the known ones."""
    text = re.sub(r"\s+", "", ddl).upper()
    array, mapping = _ARRAY.fullmatch(text), _MAP.fullmatch(text)
    container = "ARRAY" if array else "MAP" if mapping else ""
    scalar = (array or mapping or [text, text])[1]
    if scalar not in _SCALARS:
        raise UnsupportedTypeError(
            f"a procedure cannot take or return {ddl!r}{nearest(scalar, _SCALARS)} (alone, as ARRAY<...> "
            f"or as MAP<STRING,...>)"
        )
    return ValueType(scalar, container)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _check_int(value: Any) -> Any:
    return None if isinstance(value, bool) else value if isinstance(value, int) else None


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _check_float(value: Any) -> Any:
    return float(value) if isinstance(value, float | int) and not isinstance(value, bool) else None


def _check_timestamp(value: Any) -> Any:
    if isinstance(value, str):
        value = parse_iso_datetime(value)
    return value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else None


def _check_date(value: Any) -> Any:
    if isinstance(value, str):
        return parse_iso_date(value)
    return value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None


_CHECKS: Mapping[str, Any] = {
    "STRING": lambda value: value if isinstance(value, str) else None,
    "BOOLEAN": lambda value: value if isinstance(value, bool) else None,
    "INT": _check_int,
    "BIGINT": _check_int,
    "DOUBLE": _check_float,
    "DATE": _check_date,
    "TIMESTAMP": _check_timestamp,
}
_TEXTS: Mapping[str, Any] = {
    "BOOLEAN": lambda text: {"true": True, "false": False}[text.lower()],
    "INT": _integer,
    "BIGINT": _integer,
    "DOUBLE": float,
}
