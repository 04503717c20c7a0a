"""Bounds of one column in many files: arrays of the smallest and largest values, as manifests hold
them.

It handles types whose values become whole numbers or text: integers, DATE, DECIMAL up to 18 digits, TIMESTAMP
up to microseconds, and text. Other types and missing statistics skip nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, DataType, scale_of, statistics_hold, stored_values
from lockgate.pushdown import AlwaysTrue, And, Comparison, Op, Or, Plain, Predicate, plain

Mask = npt.NDArray[np.bool_]
SchemaOf = Callable[[int], TableSchema]
BoundsOf = Callable[[str], "ColumnBounds | None"]

ABSENT = -1
_LONG = np.iinfo(np.int64)
_Columns = tuple[str, ...] | None
_Layout = tuple[int, _Columns, _Columns]


@dataclass(frozen=True)
class ColumnBounds:
    """Of each file the smallest and largest value of a column; where `valid` is false they mean nothing.

    Values are whole numbers in units of 1 / `scale`, or text if `scale` is None. `all_null` is true where the
    column holds nothing but nulls, `no_null` where it holds none; `nulls` counts them (-1: not known).
    `partial` is true where one of the two values is known.
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    valid: Mask
    all_null: Mask
    no_null: Mask
    nulls: npt.NDArray[np.int64]
    partial: Mask
    scale: Fraction | None


def may_match_files(predicate: Predicate, bounds: BoundsOf, count: int) -> Mask:
    """Say of each of `count` files whether `predicate` may be true in it; False is certain.

    Leaves out no more than asking each file would, often a little less: those that remain are to be asked.
    """
    match predicate:
        case And(children):
            parts = [may_match_files(child, bounds, count) for child in children]
            return _truth(np.logical_and.reduce(parts))
        case Or(children):
            parts = [may_match_files(child, bounds, count) for child in children]
            return _truth(np.logical_or.reduce(parts))
        case Comparison(field=(name,)) as node:
            found = bounds(name)
            if found is not None:
                return _may_compare(node, found)
    return np.ones(count, np.bool_)


def undecided_files(predicate: Predicate, bounds: BoundsOf, count: int) -> Mask:
    """Say of each file whether asking it by itself may leave it out where `may_match_files` does not."""
    match predicate:
        case And(children) | Or(children):
            return _truth(np.logical_or.reduce([undecided_files(each, bounds, count) for each in children]))
        case Comparison(field=(name,)) as node:
            found = bounds(name)
            if found is not None and _is_decided(node, found.scale):
                return found.partial
        case AlwaysTrue():
            return np.zeros(count, np.bool_)
    return np.ones(count, np.bool_)


def _is_decided(node: Comparison, scale: Fraction | None) -> bool:
    if node.op in (Op.IS_NULL, Op.IS_NOT_NULL):
        return True
    if node.op is not Op.IN and node.op not in _RANGES:
        return False
    values = node.ascending if node.op is Op.IN else [plain(each) for each in node.literals if each.is_valid]
    return all(_neighbours(value, scale)[0] is not None for value in values)


def _may_compare(node: Comparison, found: ColumnBounds) -> Mask:
    if node.op is Op.IS_NULL:
        return ~found.no_null
    if node.op is Op.EQ_NULL_SAFE:
        return np.ones_like(found.valid)
    if not found.valid.any():
        return ~found.all_null
    if node.op is Op.IN:
        may = _may_be_in(node.ascending, found)
    elif node.op in _RANGES:
        literal = node.literals[0]
        may = _in_range(node.op, plain(literal), found) if literal.is_valid else np.zeros_like(found.valid)
    else:
        may = np.ones_like(found.valid)
    return (may | ~found.valid) & ~found.all_null


def _may_be_in(values: Sequence[Plain], found: ColumnBounds) -> Mask:
    """Say of each file whether one of `values`, in ascending order, lies between its bounds."""
    pairs = [_neighbours(value, found.scale) for value in values]
    if any(below is None for below, _ in pairs):
        return np.ones_like(found.valid)
    # A literal between two values of the column equals none of them.
    exact = np.asarray([below for below, above in pairs if below == above], found.low.dtype)
    return _truth(np.searchsorted(exact, found.low, "left") < np.searchsorted(exact, found.high, "right"))


_RANGES = {Op.EQ, Op.LT, Op.LE, Op.GT, Op.GE}


def _in_range(op: Op, value: Plain, found: ColumnBounds) -> Mask:
    below, above = _neighbours(value, found.scale)
    if below is None or above is None:
        return np.ones_like(found.valid)
    # As whole numbers: low < value means low < above, and low <= value means low <= below.
    if op is Op.LT:
        return _truth(found.low < above)
    if op is Op.LE:
        return _truth(found.low <= below)
    if op is Op.GT:
        return _truth(found.high > below)
    if op is Op.GE:
        return _truth(found.high >= above)
    return _truth(found.low <= below) & _truth(found.high >= above)


def _truth(compared: Any) -> Mask:
    return np.asarray(compared, np.bool_)


def _neighbours(value: Plain, scale: Fraction | None) -> tuple[Any, Any]:
    """Return the values of the column at or right below and at or right above a literal; None: not known."""
    if scale is None:
        text = value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else None
        return text, text
    if isinstance(value, (bytes, bool)) or (isinstance(value, float) and not math.isfinite(value)):
        return None, None
    if not isinstance(value, (int, float)) and not getattr(value, "is_finite", lambda: False)():
        return None, None
    if isinstance(value, int) and scale.denominator == 1:
        below = above = value * scale.numerator
    else:
        exact = Fraction(value) * scale
        below, above = math.floor(exact), math.ceil(exact)
    return (below, above) if _LONG.min <= below and above <= _LONG.max else (None, None)


def partition_bounds(
    values: Sequence[Any], partition: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], data_type: DataType
) -> ColumnBounds:
    """Return the bounds of a partition column, exact: `values` are those of the partitions by number."""
    low, valid = stored_values(values, data_type)
    nulls = np.where(valid[partition], 0, rows)
    return ColumnBounds(
        low=low[partition],
        high=low[partition],
        valid=valid[partition],
        all_null=~valid[partition],
        no_null=valid[partition],
        nulls=nulls,
        partial=np.zeros(len(partition), np.bool_),
        scale=scale_of(data_type),
    )


# --- from manifests ------------------------------------------------------------------------------


def bounds_of(
    entries: Sequence[ManifestEntry], field: DataField, schema_of: SchemaOf, of_key: int | None
) -> ColumnBounds:
    """Collect the bounds of a column, files of one layout of statistics at a time."""
    count = len(entries)
    scale = scale_of(field.type)
    empty = np.full(count, "", object) if scale is None else np.zeros(count, np.int64)
    found = ColumnBounds(
        low=empty,
        high=empty.copy(),
        valid=np.zeros(count, np.bool_),
        all_null=np.zeros(count, np.bool_),
        no_null=np.zeros(count, np.bool_),
        nulls=np.full(count, -1, np.int64),
        partial=np.zeros(count, np.bool_),
        scale=scale,
    )
    layouts: dict[_Layout, list[int]] = {}
    for number, entry in enumerate(entries):
        file = entry.file
        layouts.setdefault((file.schema_id, file.value_stats_cols, file.write_cols), []).append(number)
    for layout, numbers in layouts.items():
        position = stats_position(field, schema_of(layout[0]), *layout[1:]) if of_key is None else of_key
        if position is None:
            continue
        rows = np.fromiter((entries[number].file.row_count for number in numbers), np.int64, len(numbers))
        if position == ABSENT:
            found.all_null[numbers] = True
            found.nulls[numbers] = rows
        else:
            stats = [
                entries[number].file.value_stats if of_key is None else entries[number].file.key_stats
                for number in numbers
            ]
            _fill(found, np.asarray(numbers), stats, rows, position, field.type)
    return found


def joined_bounds(parts: Sequence[ColumnBounds]) -> ColumnBounds:
    """Put bounds of a column one behind the other."""
    return ColumnBounds(
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
        valid=np.concatenate([part.valid for part in parts]),
        all_null=np.concatenate([part.all_null for part in parts]),
        no_null=np.concatenate([part.no_null for part in parts]),
        nulls=np.concatenate([part.nulls for part in parts]),
        partial=np.concatenate([part.partial for part in parts]),
        scale=parts[0].scale,
    )


def stats_position(
    field: DataField, written: TableSchema, columns: _Columns, write_columns: _Columns
) -> int | None:
    """Return the place of a column in statistics of files; None if they do not tell of it.

    ABSENT if files written under `written` do not have the column at all, so that it is null in every row.
    """
    own = next((member for member in written.fields if member.id == field.id), None)
    if own is None:
        return ABSENT
    if not statistics_hold(own.type, field.type):
        return None
    covered = columns if columns is not None else write_columns
    names = written.field_names if covered is None else covered
    return names.index(own.name) if own.name in names else None


def _fill(
    found: ColumnBounds,
    numbers: npt.NDArray[np.int64],
    stats: Sequence[SimpleStats],
    rows: npt.NDArray[np.int64],
    position: int,
    data_type: DataType,
) -> None:
    counts = (each.null_counts[position] if position < len(each.null_counts) else None for each in stats)
    nulls = np.fromiter((-1 if count is None else count for count in counts), np.int64, len(stats))
    found.all_null[numbers] = (nulls == rows) & (nulls >= 0)
    found.no_null[numbers] = nulls == 0
    found.nulls[numbers] = nulls
    low, low_known = _values(stats, "min", position, data_type)
    high, high_known = _values(stats, "max", position, data_type)
    found.low[numbers], found.high[numbers] = low, high
    found.valid[numbers] = low_known & high_known
    found.partial[numbers] = low_known ^ high_known


def _values(
    stats: Sequence[SimpleStats], which: Literal["min", "max"], position: int, data_type: DataType
) -> tuple[npt.NDArray[Any], Mask]:
    return stored_values([each.bound(which, position) for each in stats], data_type)
