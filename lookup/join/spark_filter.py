"""A condition on the dimension as a Spark column, for joins by Spark itself."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from lockgate.errors import UnsupportedError
from lockgate.pushdown import Comparison, FieldPath, Op, Predicate, PredicateVisitor

if TYPE_CHECKING:
    from pyspark.sql import Column


def spark_column(predicate: Predicate) -> Column:
    """Return the column that is true exactly where `predicate` is, by Spark's three-valued logic."""
    return _ToSpark().visit(predicate)


class _ToSpark(PredicateVisitor["Column"]):
    def comparison(self, node: Comparison) -> Column:  # noqa: C901 - one case for each operator
        field = _field(node.field)
        literals = [_literal(each) for each in node.literals]
        match node.op:
            case Op.IS_NULL:
                return field.isNull()
            case Op.IS_NOT_NULL:
                return field.isNotNull()
            case Op.IN:
                return field.isin(*literals) if literals else functions.lit(False)
            case Op.EQ:
                return field == literals[0]
            case Op.NE:
                return field != literals[0]
            case Op.LT:
                return field < literals[0]
            case Op.LE:
                return field <= literals[0]
            case Op.GT:
                return field > literals[0]
            case Op.GE:
                return field >= literals[0]
            case Op.EQ_NULL_SAFE:
                return field.eqNullSafe(literals[0])
            case Op.STARTS_WITH:
                return functions.startswith(field, literals[0])
            case Op.ENDS_WITH:
                return functions.endswith(field, literals[0])
            case Op.CONTAINS:
                return functions.contains(field, literals[0])
            case Op.LIKE:
                return functions.like(field, literals[0])
            case Op.ILIKE:
                return functions.ilike(field, literals[0])
            case Op.RLIKE | Op.MATCH:
                raise UnsupportedError(f"{node.op.value} means something else in Spark: filter before")

    def conjunction(self, children: list[Column]) -> Column:
        joined = functions.lit(True)
        for child in children:
            joined = joined & child
        return joined

    def disjunction(self, children: list[Column]) -> Column:
        joined = functions.lit(False)
        for child in children:
            joined = joined | child
        return joined

    def negation(self, child: Column) -> Column:
        return ~child

    def constant(self, value: bool) -> Column:
        return functions.lit(value)


def _field(path: FieldPath) -> Column:
    return functions.col(".".join("`" + name.replace("`", "``") + "`" for name in path))


def _literal(scalar: pa.Scalar) -> Column:
    value = scalar.as_py()
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        # Spark would read a datetime without a zone in the session's zone.
        return functions.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
    if isinstance(value, bytes):
        return functions.lit(bytearray(value))
    return functions.lit(value)
