"""Predicates as SQL-like text for reports and messages."""

from __future__ import annotations

import datetime as dt
import math
import re

import pyarrow as pa

from lockgate.pushdown.predicates import Comparison, FieldPath, Op, Predicate, PredicateVisitor

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT_FUNCTIONS = {
    Op.STARTS_WITH: "startswith",
    Op.ENDS_WITH: "endswith",
    Op.CONTAINS: "contains",
    Op.MATCH: "match",
}

# Runtime filters have long lists; a text shows only the first literals.
_MAX_LITERALS = 20

# Precedence of the outermost operator of a text, so that parentheses stand only where SQL needs them.
_OR, _AND, _NOT, _ATOM = 1, 2, 3, 4
_Text = tuple[str, int]


class _Describe(PredicateVisitor[_Text]):
    def comparison(self, node: Comparison) -> _Text:
        field = describe_field(node.field)
        literals = [describe_literal(item) for item in node.literals[:_MAX_LITERALS]]
        if len(node.literals) > _MAX_LITERALS:
            literals.append(f"... {len(node.literals):,} values")
        match node.op:
            case Op.IS_NULL:
                return f"{field} IS NULL", _ATOM
            case Op.IS_NOT_NULL:
                return f"{field} IS NOT NULL", _ATOM
            case Op.IN:
                return f"{field} IN ({', '.join(literals)})", _ATOM
        if node.op in _TEXT_FUNCTIONS:
            return f"{_TEXT_FUNCTIONS[node.op]}({field}, {literals[0]})", _ATOM
        return f"{field} {node.op.value} {literals[0]}", _ATOM

    def conjunction(self, children: list[_Text]) -> _Text:
        return self._join(children, " AND ", _AND, "TRUE")

    def disjunction(self, children: list[_Text]) -> _Text:
        return self._join(children, " OR ", _OR, "FALSE")

    def negation(self, child: _Text) -> _Text:
        return f"NOT ({child[0]})", _NOT

    def constant(self, value: bool) -> _Text:
        return "TRUE" if value else "FALSE", _ATOM

    @staticmethod
    def _join(children: list[_Text], operator: str, own_precedence: int, empty: str) -> _Text:
        if not children:
            return empty, _ATOM
        parts = [text if precedence > own_precedence else f"({text})" for text, precedence in children]
        return operator.join(parts), own_precedence


def describe(predicate: Predicate) -> str:
    """Return a predicate as SQL-like text.

    >>> from lockgate.pushdown import col
    >>> describe((col("a") == "it's") | ~col("my col").isin([1, 2]))
    "a = 'it''s' OR NOT (`my col` IN (1, 2))"
    """
    return _Describe().visit(predicate)[0]


def describe_field(path: FieldPath) -> str:
    """Return a field's path with dots; names are in backquotes where SQL needs them."""
    return ".".join(
        name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in path
    )


def describe_literal(scalar: pa.Scalar) -> str:
    """Return a literal as SQL writes it."""
    if not scalar.is_valid:
        return "NULL"
    if pa.types.is_timestamp(scalar.type):
        return _timestamp(scalar)
    value = scalar.as_py()
    match value:
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case float():
            return repr(value) if math.isfinite(value) else f"DOUBLE '{value}'"
        case dt.date():
            return f"DATE '{value}'"
        case dt.time():
            return f"TIME '{value}'"
    return str(value)


def _timestamp(scalar: pa.Scalar) -> str:
    nanos = int(scalar.value) * {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[scalar.type.unit]
    seconds, fraction = divmod(nanos, 10**9)
    try:
        time = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    except OverflowError:
        return f"TIMESTAMP '{nanos} ns since 1970-01-01'"
    decimals = f".{fraction:09d}".rstrip("0").rstrip(".")
    return f"TIMESTAMP '{time}{decimals}Z'" if scalar.type.tz else f"TIMESTAMP_NTZ '{time}{decimals}'"
