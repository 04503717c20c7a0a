"""The merge: combines the rows of one key in several files.

How rows merge is written once, as a `MergePlan`; this module interprets it on Arrow tables, the connector's
`RowMerge` interprets the same plan on pages of columns, from which it picks rows without copying them, and
both pass the fixtures in `tests/fixtures/merge`.

Source: Paimon's specification, page "DataFile", and its merge functions; a row that is alone with its key is
not merged (`ReducerMergeFunctionWrapper`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.framework.store.merge.group_codes import Codes, group_codes, last_of_each
from lockgate.framework.store.merge.merge_engines import RowVersions, composed
from lockgate.framework.store.merge.merge_options import merge_plan, why_no_sequence
from lockgate.framework.store.merge.merge_plan import (
    FIRST_ROW,
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    MergePlan,
    RowKind,
)
from lockgate.framework.store.merge.sequence_order import by_sequence

__all__ = [
    "KEY_PREFIX",
    "SEQUENCE_NUMBER",
    "VALUE_KIND",
    "MergePlan",
    "RowKind",
    "merge_plan",
    "merge_tables",
    "sort_by_key",
    "why_no_sequence",
]


def merge_tables(
    plan: MergePlan, tables: Sequence[pa.Table], *, ordered: bool = False, keep_deletes: bool = False
) -> pa.Table:
    """Merge tables, given in commit order, to one row a key.

    Rows of a key count from old to new by their sequence, on equal sequences in the order given; what they
    become is up to the plan's engine. A key whose row is a deletion vanishes, unless `keep_deletes`. All
    columns of the inputs are kept. With `ordered`, the rows are sorted by key, as data files need them; else
    their order is unspecified. Raises InputError for rows that the engine cannot merge.
    """
    merged = _picked(plan, tables) if plan.picks_rows else _composed(plan, tables)
    if not keep_deletes and merged.num_rows:
        living = ~_retracts(merged[plan.kind])
        merged = merged if living.all() else merged.filter(pa.array(living))
    return sort_by_key(merged, plan.key) if ordered else merged


def _picked(plan: MergePlan, tables: Sequence[pa.Table]) -> pa.Table:
    """Return of each key one of its rows: the newest, or with first-row the oldest."""
    if plan.ignore_delete:
        tables = [_without_retracts(plan, table) for table in tables]
    table = pa.concat_tables(tables)
    codes, count = group_codes([table[name] for name in plan.key], table.num_rows)
    order = _by_age(plan, tables, codes, count)
    if plan.engine == FIRST_ROW:
        _check_first_row(table[plan.kind], codes, count)
        order = (np.arange(table.num_rows, dtype=np.int64) if order is None else order)[::-1]
    winners = last_of_each(codes, count, order)
    return table.take(pa.array(winners)) if len(winners) < table.num_rows else table


def _without_retracts(plan: MergePlan, table: pa.Table) -> pa.Table:
    retracts = _retracts(table[plan.kind])
    return table.filter(pa.array(~retracts)) if retracts.any() else table


def _check_first_row(kinds: pa.ChunkedArray, codes: Codes, count: int) -> None:
    several = np.bincount(codes, minlength=count)[codes] > 1
    if (_retracts(kinds) & several).any():
        raise InputError(
            "a row of kind -U or -D is in a table with merge engine 'first-row', which takes such rows with "
            "option 'ignore-delete' only"
        )


def _composed(plan: MergePlan, tables: Sequence[pa.Table]) -> pa.Table:
    """Return of each key a row that is put together of all; one that is alone stays as it is."""
    table = pa.concat_tables(tables)
    codes, count = group_codes([table[name] for name in plan.key], table.num_rows)
    sizes = np.bincount(codes, minlength=count)
    several = sizes[codes] > 1
    if not several.any():
        return table
    order = _by_age(plan, tables, codes, count)
    order = np.arange(table.num_rows, dtype=np.int64) if order is None else order
    order = order[several[order]]
    rows = order[np.argsort(codes[order], kind="stable")]
    counts = sizes[sizes > 1]
    keys = RowVersions(rows, np.cumsum(counts) - counts, counts)
    merged = composed(plan, table, keys)
    return pa.concat_tables([table.filter(pa.array(~several)), merged])


def sort_by_key(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort by key columns: numbers by value, text and bytes by their bytes."""
    if len(key) == 1:
        return table.take(pc.sort_indices(table[key[0]].combine_chunks()))
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in key]))


def keys_ascend(table: pa.Table, key: Sequence[str]) -> bool:
    """Return whether the rows are sorted by key, as `sort_by_key` does, and none has the key of another."""
    undecided = np.ones(max(table.num_rows - 1, 0), dtype=np.bool_)
    has_other_zero = np.zeros_like(undecided)
    for name in key:
        values = table[name].combine_chunks()
        values = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
        one, other = values[:-1], values[1:]
        less, equal = _mask(pc.less(one, other)), _mask(pc.equal(one, other))
        if pa.types.is_floating(values.type):
            nan = _mask(pc.is_nan(values))
            less |= nan[1:] & ~nan[:-1]
            equal |= nan[1:] & nan[:-1]
            # Other writers take zeros of the two signs for two keys.
            sign = np.signbit(values.to_numpy(zero_copy_only=False))
            has_other_zero |= equal & (sign[1:] != sign[:-1]) & ~nan[1:]
        if (undecided & ~less & ~equal).any():
            return False
        undecided &= equal
        if not undecided.any():
            return True
    return bool((has_other_zero | ~undecided).all())


def _mask(found: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.array(found.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _by_age(plan: MergePlan, tables: Sequence[pa.Table], codes: Codes, count: int) -> Codes | None:
    """Return the positions of all rows so that of each key's the newest is last; None if they are so."""
    if len(plan.sequence) > 1 or plan.descending:
        every = pa.concat_tables(tables).select(list(dict.fromkeys(plan.sequence)))
        return by_sequence(every, plan.sequence, plan.descending, codes, count)
    parts = [_numbers(table[plan.sequence[0]]) for table in tables]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    spans = [(part.min(), part.max(), index) for index, part in enumerate(parts) if len(part)]
    spans.sort()
    apart = all(before[1] < after[0] for before, after in pairwise(spans))
    if not apart:
        return np.argsort(np.concatenate(parts), kind="stable").astype(np.int64)
    # Files of different commits: whole files are older or newer, and mostly no key comes twice in one.
    order = []
    for _, _, index in spans:
        positions = np.arange(starts[index], starts[index + 1], dtype=np.int64)
        if _has_repeats(codes[positions[0] : positions[-1] + 1], count):
            positions = positions[np.argsort(parts[index], kind="stable")]
        order.append(positions)
    return np.concatenate(order) if order else None


def _has_repeats(codes: Codes, count: int) -> bool:
    seen = np.full(count, -1, dtype=np.int64)
    places = np.arange(len(codes), dtype=np.int64)
    seen[codes] = places
    return bool((seen[codes] != places).any())


def _retracts(kinds: pa.ChunkedArray) -> Any:
    values = _numbers(kinds)
    return (values == RowKind.DELETE) | (values == RowKind.UPDATE_BEFORE)


def _numbers(column: pa.ChunkedArray) -> Any:
    if column.null_count:
        raise InputError("sequence numbers and kinds of rows cannot be null")
    return column.to_numpy()
