"""May a file match: the question that lets a scan skip files by their minimum, maximum and null count."""

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

    `min` and `max` bound every value that is not null, and may be wider than the values are (truncated
    strings). `nan_count` matters for floats, because writers disagree whether a maximum covers NaN (ORC's
    leaves it out). Unless it is 0, the column may hold a NaN, the greatest of all values.
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
    """Say whether `predicate` may be true for a row of a file with these statistics.

    False is certain: no row matches. A field without statistics never excludes a file.
    """
    if row_count == 0:
        return False
    return _may(with_literals(predicate), statistics, row_count)


def _may(
    predicate: Predicate, statistics: Mapping[FieldPath, ColumnStatistics], row_count: int | None
) -> bool:
    match predicate:
        case And(children):
            return all(_may(child, statistics, row_count) for child in children)
        case Or(children):
            return any(_may(child, statistics, row_count) for child in children)
        case Not(Comparison() as node):
            found = statistics.get(node.field)
            return found is None or _may_not(node, found, row_count)
        case Comparison() as node:
            found = statistics.get(node.field)
            return found is None or _may_compare(node, found, row_count)
        case AlwaysFalse():
            return False
    return True


def _may_compare(node: Comparison, found: ColumnStatistics, row_count: int | None) -> bool:
    op = node.op
    if op is Op.IS_NULL or (op is Op.EQ_NULL_SAFE and not node.literals[0].is_valid):
        return found.null_count != 0
    if found.null_count is not None and found.null_count == row_count:
        return False  # only nulls: nothing but IS NULL can be true
    if op is Op.IS_NOT_NULL:
        return True
    if not any(item.is_valid for item in node.literals):
        return False
    bounds = _bounds(found, node)
    if bounds is None:
        return True
    if op is Op.IN:
        return between(node.ascending, bounds.low, bounds.high)
    return _may_value(op, plain(node.literals[0]), bounds)


def _bounds(found: ColumnStatistics, node: Comparison) -> _Bounds | None:
    """Return what bounds the values, None if they cannot be compared with the literals."""
    bounds = [bound for bound in (found.min, found.max) if bound is not None and bound.is_valid]
    if not all(comparable(bound.type, kind) for bound in bounds for kind in node.literal_types):
        return None
    low = plain(found.min) if found.min is not None and found.min.is_valid else None
    high = plain(found.max) if found.max is not None and found.max.is_valid else None
    if low is not None and is_nan(low) and found.nan_count != 0:
        low = None  # a writer that met NaN first may have kept it as both bounds
    if isinstance(high, float) and found.nan_count != 0:
        high = None
    return _Bounds(low, high)


def _may_value(op: Op, value: Plain, bounds: _Bounds) -> bool:
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
            return _may_start(value, low, high)
    return True


def _may_start(prefix: Plain, low: Plain | None, high: Plain | None) -> bool:
    if not isinstance(prefix, bytes):
        return True
    # Bounds cut to the prefix's length keep their order.
    if isinstance(low, bytes) and low[: len(prefix)] > prefix:
        return False
    return not (isinstance(high, bytes) and high[: len(prefix)] < prefix)


def _may_not(node: Comparison, found: ColumnStatistics, row_count: int | None) -> bool:
    """Answer for NOT around STARTS_WITH, ENDS_WITH and CONTAINS."""
    if found.null_count is not None and found.null_count == row_count:
        return False
    if not node.literals[0].is_valid:
        return False
    bounds = _bounds(found, node)
    if node.op is not Op.STARTS_WITH or bounds is None:
        return True
    prefix, low, high = plain(node.literals[0]), bounds.low, bounds.high
    if not (isinstance(prefix, bytes) and isinstance(low, bytes) and isinstance(high, bytes)):
        return True
    return not (low.startswith(prefix) and high.startswith(prefix))
