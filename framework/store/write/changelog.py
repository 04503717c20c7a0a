"""Changelogs: changes of keys, in files of their own for streams of other engines.

With producer `input` a write stores its rows as given. With `lookup` and `full-compaction` a compaction
stores what it changed: with `lookup` by the rows of level 0 that it took in, with `full-compaction` by all
that were not at the top level. Source: Paimon's `LookupChangelogMergeFunctionWrapper` and
`FullChangelogMergeFunctionWrapper`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lockgate.framework import options as table_options
from lockgate.framework.options import (
    COMPACTION_CHANGELOG,
    DEDUPLICATE_IGNORES,
    LOOKUP_CHANGELOG,
    ROW_DEDUPLICATE,
)
from lockgate.framework.store.merge.group_codes import Codes, group_codes
from lockgate.framework.store.merge.merge import MergePlan, RowKind, sort_by_key
from lockgate.framework.store.merge.merge_plan import FIRST_ROW
from lockgate.framework.store.schema.schema import TableSchema

if TYPE_CHECKING:
    from lockgate.framework.store.manifests.manifest import ManifestEntry


def lowest_settled_level(schema: TableSchema) -> int | None:
    """Return the level from which on changes of rows have been recorded; None if compactions tell of none."""
    if schema.changelog_producer == LOOKUP_CHANGELOG:
        return 1
    if schema.changelog_producer == COMPACTION_CHANGELOG:
        return schema.table_options.get_option(table_options.NUM_LEVELS) - 1
    return None


def is_unrecorded(schema: TableSchema, entry: ManifestEntry) -> bool:
    """Say whether a compaction that takes a file in tells of its rows."""
    settled = lowest_settled_level(schema)
    return settled is not None and entry.file.level < settled


def changed_rows(
    schema: TableSchema, plan: MergePlan, before: pa.Table, after: pa.Table, unrecorded: pa.Table
) -> pa.Table:
    """Return the merged rows of the keys of `unrecorded`, sorted by key.

    `before` and `after` hold at most one row a key, none that is deleted, and all columns of data files. A
    row that came is +I, one that went -D, one that another took the place of -U before +U. With
    `changelog-producer.row-deduplicate`, rows that stayed as they were are left out.
    """
    codes = _codes([before, after, unrecorded], plan.key)
    bound = 1 + max((int(part.max()) for part in codes if len(part)), default=-1)
    old, new = _positions(codes[0], bound), _positions(codes[1], bound)
    concerned = np.zeros(bound, bool)
    concerned[codes[2]] = True
    came = concerned & (old < 0) & (new >= 0)
    went = concerned & (old >= 0) & (new < 0)
    both = np.flatnonzero(concerned & (old >= 0) & (new >= 0))
    if plan.engine == FIRST_ROW:
        both = both[:0]  # the first row stays, whatever comes
    elif schema.table_options.get_option(ROW_DEDUPLICATE):
        both = both[_differ(schema, before.take(old[both]), after.take(new[both]))]
    parts = [
        _of_kind(before, old[both], RowKind.UPDATE_BEFORE, plan),
        _of_kind(before, old[went], RowKind.DELETE, plan),
        _of_kind(after, new[both], RowKind.UPDATE_AFTER, plan),
        _of_kind(after, new[came], RowKind.INSERT, plan),
    ]
    # Sorting keeps the order of rows of one key.
    return sort_by_key(pa.concat_tables(parts), plan.key)


def inserted_rows(rows: pa.Table, plan: MergePlan) -> pa.Table:
    """Return rows of keys that there were none of, as +I."""
    return _of_kind(rows, np.arange(rows.num_rows), RowKind.INSERT, plan)


def _codes(tables: Sequence[pa.Table], key: Sequence[str]) -> list[Codes]:
    keys = pa.concat_tables([table.select(list(key)) for table in tables])
    codes, _ = group_codes(keys.columns, keys.num_rows)
    ends = np.cumsum([table.num_rows for table in tables])
    return np.split(codes, ends[:-1])


def _positions(codes: Codes, bound: int) -> Codes:
    """Return the row of each key, -1 for none."""
    found = np.full(bound, -1, np.int64)
    found[codes] = np.arange(len(codes))
    return found


def _of_kind(rows: pa.Table, positions: Codes, kind: RowKind, plan: MergePlan) -> pa.Table:
    chosen = rows.take(pa.array(positions, pa.int64()))
    kinds = pa.array(np.full(len(positions), int(kind), np.int8))
    return chosen.set_column(chosen.schema.get_field_index(plan.kind), plan.kind, kinds)


def _differ(schema: TableSchema, before: pa.Table, after: pa.Table) -> np.ndarray:
    """Say of each pair of rows whether a column that counts is different."""
    ignored = {*schema.primary_keys, *schema.table_options.get_option(DEDUPLICATE_IGNORES)}
    differ = np.zeros(before.num_rows, bool)
    for field in schema.fields:
        if field.name not in ignored:
            old, new = before[field.name], after[field.name]
            differ |= _unequal_values(old, new) if field.type.is_nested else _unequal(old, new)
    return differ


def _unequal(old: pa.ChunkedArray, new: pa.ChunkedArray) -> np.ndarray:
    codes, _ = group_codes([pa.chunked_array([*old.chunks, *new.chunks], old.type)], 2 * len(old))
    unequal: np.ndarray = codes[: len(old)] != codes[len(old) :]
    return unequal


def _unequal_values(old: Iterable[pa.Scalar], new: Iterable[pa.Scalar]) -> np.ndarray:
    # Arrow compares no nested values of two columns.
    return np.array([not one.equals(other) for one, other in zip(old, new, strict=True)], bool)
