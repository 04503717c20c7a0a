"""Predicates as Spark SQL that keeps exactly the same rows."""

from __future__ import annotations

import math

import pyarrow as pa

from lockgate.errors import UnsupportedError
from lockgate.pushdown.description import describe_literal
from lockgate.pushdown.predicates import Comparison, Op, Predicate, PredicateVisitor

_TEXT = {
    Op.STARTS_WITH: "startswith",
    Op.ENDS_WITH: "endswith",
    Op.CONTAINS: "contains",
    Op.LIKE: "like",
    Op.ILIKE: "ilike",
}


class _Sql(PredicateVisitor[str]):
    def comparison(self, node: Comparison) -> str:
        field, values = sql_name(*node.field), [_literal(item) for item in node.literals]
        match node.op:
            case Op.IS_NULL:
                return f"({field} IS NULL)"
            case Op.IS_NOT_NULL:
                return f"({field} IS NOT NULL)"
            case Op.IN:
                return f"({field} IN ({', '.join(values or ['NULL'])}))"
        if node.op in (Op.RLIKE, Op.MATCH):
            raise UnsupportedError(f"{node.op.value} has another meaning in Spark")
        if node.op in _TEXT:
            return f"{_TEXT[node.op]}({field}, {values[0]})"
        return f"({field} {node.op.value} {values[0]})"

    def conjunction(self, children: list[str]) -> str:
        return f"({' AND '.join(children or ['TRUE'])})"

    def disjunction(self, children: list[str]) -> str:
        return f"({' OR '.join(children or ['FALSE'])})"

    def negation(self, child: str) -> str:
        return f"(NOT {child})"

    def constant(self, value: bool) -> str:
        return "TRUE" if value else "FALSE"


def to_sql(predicate: Predicate) -> str:
    """Return a predicate as Spark SQL; raises UnsupportedError for a literal of a type that Spark lacks."""
    return _Sql().visit(predicate)


def sql_name(*path: str) -> str:
    """Return a field's path with every name in backquotes.

    >>> sql_name("my col", "a`b")
    '`my col`.`a``b`'
    """
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def sql_text(text: str) -> str:
    r"""Return a text as a string literal of Spark SQL.

    >>> print(sql_text("it's \\"))
    'it\'s \\'
    """
    escaped = (
        text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{")
    )  # ${...} would be a variable of Spark
    return f"'{escaped}'"


def _literal(scalar: pa.Scalar) -> str:
    kind = scalar.type
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        raise UnsupportedError(f"Spark's SQL has no literal of type {kind}")
    if not scalar.is_valid or not (pa.types.is_string(kind) or pa.types.is_floating(kind)):
        return describe_literal(scalar)
    value = scalar.as_py()
    if isinstance(value, str):
        return sql_text(value)
    return f"CAST('{value}' AS DOUBLE)" if not math.isfinite(value) else f"{value!r}D"
