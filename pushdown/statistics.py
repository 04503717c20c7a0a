"""Whether a file may have a matching row, by the minimum, maximum and null count of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lockgate.pushdown.evaluation import ordered
from lockgate.pushdown.predicates import (
    AlwaysFalse,
    And,
    Comparison,
    FieldPath,
    Not,
    Op,
    Or,
    Predicate,
)
from lockgate.pushdown.texts.required_literals import with_literals
from lockgate.pushdown.value_order import Plain, between, comparable, compare, is_nan, plain


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of a column in a file; None if unknown.

    `min` and `max` bound every non-null value; truncated strings make them wider than the values. `nan_count`
    is for floats: writers disagree whether the maximum covers NaN (ORC's does not). Unless it is 0, the
    column may hold NaN, the greatest of all values.
    """

    min: pa.Scalar | None = None
    max: pa.Scalar | None = None
    null_count: int | None = None
    nan_count: int | None = None


@dataclass(frozen=True)
class _Bounds:
    low: Plain | None
    high: Plain | None


def may_match(
    predicate: Predicate, statistics: Mapping[FieldPath, ColumnStatistics], row_count: int | None = None
) -> bool:
    """Return whether a file with these statistics may have a row for which `predicate` is true.

    False means that no row matches. A field without statistics never excludes a file.
    """
    if row_count == 0:
        return False
    return _may_match(with_literals(predicate), statistics, row_count)


def _may_match(
    predicate: Predicate, statistics: Mapping[FieldPath, ColumnStatistics], row_count: int | None
) -> bool:
    match predicate:
        case And(children):
            return all(_may_match(child, statistics, row_count) for child in children)
        case Or(children):
            return any(_may_match(child, statistics, row_count) for child in children)
        case Not(Comparison() as node):
            column = statistics.get(node.field)
            return column is None or _negation_may_match(node, column, row_count)
        case Comparison() as node:
            column = statistics.get(node.field)
            return column is None or _comparison_may_match(node, column, row_count)
        case AlwaysFalse():
            return False
    return True


def _comparison_may_match(node: Comparison, column: ColumnStatistics, row_count: int | None) -> bool:
    op = node.op
    if op is Op.IS_NULL or (op is Op.EQ_NULL_SAFE and not node.literals[0].is_valid):
        return column.null_count != 0
    if column.null_count is not None and column.null_count == row_count:
        return False  # of nulls, only IS NULL is true
    if op is Op.IS_NOT_NULL:
        return True
    if not any(item.is_valid for item in node.literals):
        return False
    bounds = _bounds(column, node)
    if bounds is None:
        return True
    if op is Op.IN:
        return between(node.ascending, bounds.low, bounds.high)
    return _value_may_match(op, plain(node.literals[0]), bounds)


def _bounds(column: ColumnStatistics, node: Comparison) -> _Bounds | None:
    """Return the bounds of the column's values, None if their types do not compare with the literals."""
    bounds = [bound for bound in (column.min, column.max) if bound is not None and bound.is_valid]
    if not all(comparable(bound.type, kind) for bound in bounds for kind in node.literal_types):
        return None
    low = plain(column.min) if column.min is not None and column.min.is_valid else None
    high = plain(column.max) if column.max is not None and column.max.is_valid else None
    if low is not None and is_nan(low) and column.nan_count != 0:
        low = None  # a writer whose first value was NaN may have stored NaN as both bounds
    if isinstance(high, float) and column.nan_count != 0:
        high = None
    return _Bounds(low, high)


def _value_may_match(op: Op, value: Plain, bounds: _Bounds) -> bool:
    low, high = bounds.low, bounds.high
    match op:
        case Op.EQ | Op.EQ_NULL_SAFE:
            return (low is None or ordered(Op.LE, low, value)) and (
                high is None or ordered(Op.GE, high, value)
            )
        case Op.NE:
            return low is None or high is None or compare(low, high) != 0 or compare(low, value) != 0
        case Op.LT | Op.LE:
            return low is None or ordered(op, low, value)
        case Op.GT | Op.GE:
            return high is None or ordered(op, high, value)
        case Op.STARTS_WITH:
            return _prefix_may_match(value, low, high)
    return True


def _prefix_may_match(prefix: Plain, low: Plain | None, high: Plain | None) -> bool:
    if not isinstance(prefix, bytes):
        return True
    # Truncating the bounds to the prefix's length keeps their order.
    if isinstance(low, bytes) and low[: len(prefix)] > prefix:
        return False
    return not (isinstance(high, bytes) and high[: len(prefix)] < prefix)


def _negation_may_match(node: Comparison, column: ColumnStatistics, row_count: int | None) -> bool:
    """Return whether NOT around STARTS_WITH, ENDS_WITH or CONTAINS may match."""
    if column.null_count is not None and column.null_count == row_count:
        return False
    if not node.literals[0].is_valid:
        return False
    bounds = _bounds(column, node)
    if node.op is not Op.STARTS_WITH or bounds is None:
        return True
    prefix, low, high = plain(node.literals[0]), bounds.low, bounds.high
    if not (isinstance(prefix, bytes) and isinstance(low, bytes) and isinstance(high, bytes)):
        return True
    return not (low.startswith(prefix) and high.startswith(prefix))
