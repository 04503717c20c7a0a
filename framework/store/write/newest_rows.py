"""Newest rows of keys among the rows of a commit, if columns say which is newer.

With `sequence.field` a late row may be older than the present one; followers of the table's changes must
ignore it (Paimon's issue #2621).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.merge.merge import MergePlan, merge_tables
from lockgate.framework.store.pruning.pruners import PartitionPruner, ValuePruner
from lockgate.framework.store.scan.read import FileReader
from lockgate.pushdown import Comparison, Op, Predicate

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_PLACE = "_PLACE"


def newest_rows(
    table: TableHandle, reader: FileReader, plan: MergePlan, rows: pa.Table, before: Sequence[ManifestEntry]
) -> pa.Table:
    """Return those of `rows` that are the newest of their keys, deletions included.

    `rows` have the plan's system columns and one row a key; `before` are the files of the same bucket that
    were live before and share keys with them. Of these only the columns to merge by are read, and nothing of
    a file whose statistics show that all its rows are older.
    """
    newer = _newer(plan, rows)
    if newer is not None:
        keeps = ValuePruner(table.schema, table.schema_of, PartitionPruner(table.schema, newer)).keeps_file
        before = [entry for entry in before if keeps(entry)]
    if not before or not rows.num_rows:
        return rows
    names = tuple(dict.fromkeys(plan.system_columns))
    # The order of `split.key_sections`: of rows that are equal in all, that of the later file wins.
    older = [_read(table, reader, entry, names) for entry in sorted(before, key=lambda one: -one.file.level)]
    inputs = [_placed(part, np.full(part.num_rows, -1)) for part in older]
    inputs.append(_placed(rows.select(list(names)), np.arange(rows.num_rows)))
    winners = merge_tables(plan, inputs, keep_deletes=True)[_PLACE]
    return rows.take(winners.filter(pc.greater_equal(winners, 0)))


def _newer(plan: MergePlan, rows: pa.Table) -> Predicate | None:
    """Return what a row of another file must meet to be newer than one of `rows`; None if any may be."""
    first = plan.sequence[0]
    column = rows[first]
    # A null is older than every row; of floating numbers, NaN is not among the bounds.
    if not rows.num_rows or column.null_count or pa.types.is_floating(column.type):
        return None
    bounds = pc.min_max(column)
    if first in plan.descending:
        return Comparison(Op.LE, (first,), (bounds["max"],))
    return Comparison(Op.GE, (first,), (bounds["min"],))


def _read(table: TableHandle, reader: FileReader, entry: ManifestEntry, names: tuple[str, ...]) -> pa.Table:
    path = table.paths.data_file(entry.partition, entry.bucket, entry.file)
    partition = dict(zip(table.schema.partition_keys, entry.partition, strict=True))
    return reader.whole(path, entry.file, names, partition)


def _placed(rows: pa.Table, places: object) -> pa.Table:
    return rows.append_column(_PLACE, pa.array(places, pa.int64()))
