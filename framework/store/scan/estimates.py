"""Estimates for optimizers of the columns of a scan: bounds, nulls, how many values differ at most.

They come from the statistics of the files that remain after pruning; rows that a merge drops count too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lockgate.framework.store.manifests.column_bounds import ColumnBounds, bounds_of, partition_bounds
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.types import is_bounded, partition_key

if TYPE_CHECKING:
    from lockgate.framework.store.scan.scan import ScanPlan


@dataclass(frozen=True)
class ColumnEstimate:
    """Bounds as Spark holds values (days, microseconds, unscaled decimals); None: not known.

    `distinct` is a bound from above.
    """

    nulls: int
    min: int | None
    max: int | None
    distinct: int | None


def estimate_columns(plan: ScanPlan, columns: Iterable[str]) -> dict[str, ColumnEstimate]:
    """Return what is known of each of `columns`; those of which nothing is known are left out.

    Texts have no bounds here, for those of statistics may be cut off.
    """
    entries = [
        ManifestEntry(FileKind.ADD, partition_key(split.partition.values()), split.bucket, -1, file)
        for split in plan.splits
        for file in split.files
    ]
    found = {}
    for name in columns:
        bounds = _bounds(plan, entries, name) if entries else None
        if bounds is not None and (bounds.nulls >= 0).all():
            found[name] = _estimate(bounds, plan.row_count)
    return found


def _bounds(plan: ScanPlan, entries: Sequence[ManifestEntry], name: str) -> ColumnBounds | None:
    field = plan.schema.field(name)
    if not is_bounded(field.type):
        return None
    if name not in plan.schema.partition_keys:
        return bounds_of(entries, field, lambda schema_id: plan.schemas[schema_id], None)
    rows = np.fromiter((entry.file.row_count for entry in entries), np.int64, len(entries))
    values = [split.partition[name] for split in plan.splits for _ in split.files]
    return partition_bounds(values, np.arange(len(values)), rows, field.type)


def _estimate(bounds: ColumnBounds, rows: int) -> ColumnEstimate:
    # Of files with deletion vectors deleted rows are counted too.
    nulls = min(rows, int(bounds.nulls.sum()))
    filled = ~bounds.all_null
    if bounds.scale is None or not filled.any() or not bounds.valid[filled].all():
        return ColumnEstimate(nulls, None, None, 0 if not filled.any() else None)
    low, high = int(bounds.low[filled].min()), int(bounds.high[filled].max())
    return ColumnEstimate(nulls, low, high, min(rows - nulls, high - low + 1))
