"""Order of the rows that a compaction writes: by columns, or along a curve through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework import options as clustering_options
from lockgate.framework.options import parse_names
from lockgate.framework.store import ManifestEntry, Table
from lockgate.framework.store.confidential.confidential_columns import confidential_in
from lockgate.framework.store.maintenance.compaction import BucketJob, parts_of
from lockgate.framework.store.maintenance.curves import Curve, hilbert, on_curve, ranks_of, zorder
from lockgate.framework.store.maintenance.order_ranges import (
    Ranges,
    Sample,
    batches_of,
    positions_of_keys,
    sample_of,
)
from lockgate.framework.store.rows.row_conversion import file_schema
from lockgate.framework.store.scan.file_layout import part_left
from lockgate.framework.store.schema.clustering import clustering_columns, why_unordered

NONE, ORDER = "none", "order"
_CURVES: dict[str, Curve] = {"zorder": zorder, "hilbert": hilbert}
STRATEGIES = (NONE, ORDER, *_CURVES)
_MANY_COLUMNS = 5
# So many rows are in memory at a time.
_ROWS_AT_ONCE = 4_000_000

Parts: TypeAlias = Callable[[list[str]], Iterator[pa.Table]]
"""Yields columns of rows, the same ones in the same order each time."""


@dataclass(frozen=True)
class RowOrder:
    """How rows are ordered: by a strategy and columns."""

    strategy: str
    columns: tuple[str, ...]

    is_given: bool = True
    """Whether the call asks for the order, or else the table's options."""

    @classmethod
    def of(cls, table: Table, strategy: str | None, columns: str | None) -> RowOrder | None:
        """Return the order that arguments ask for, else the table's options; None for none.

        Raises InputError for unknown strategies and columns, UnsupportedError for tables with a primary key,
        which are ordered by it, and for encrypted columns, whose order would be seen without a key.
        """
        names = parse_names(columns or "")
        if strategy is None and not names:
            return cls.of_options(table)
        chosen = (strategy or NONE).lower()
        if chosen not in STRATEGIES:
            raise InputError(f"order_strategy cannot be {strategy!r}{nearest(chosen, STRATEGIES)}")
        if (chosen == NONE) is bool(names):
            raise InputError("order_by and an order_strategy other than 'none' are given together")
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"order_by: {name!r} is named twice")
            reason = why_unordered(table.schema, name)
            if reason is not None:
                names_wrong = name not in table.schema.field_names or table.schema.field(name).type.is_nested
                raise (InputError if names_wrong else UnsupportedError)(f"order_by: {reason}")
        return cls(chosen, names) if names else None

    @classmethod
    def of_options(cls, table: Table) -> RowOrder | None:
        """Return the order that `clustering.*` ask for."""
        names = clustering_columns(table.schema)
        if not names:
            return None
        strategy = table.schema.table_options.get_option(clustering_options.CLUSTERING_STRATEGY)
        if strategy == clustering_options.AUTO_STRATEGY:
            # As Paimon chooses.
            strategy = ORDER if len(names) == 1 else "zorder" if len(names) < _MANY_COLUMNS else "hilbert"
        return cls(strategy, names, is_given=False)

    @property
    def curve(self) -> Curve | None:
        """The curve that the rows lie along; None: they are sorted by the columns."""
        return _CURVES.get(self.strategy)

    def places(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Return the new place of each row, given the columns of the order."""
        ranks = [ranks_of(rows[name]) for name in self.columns]
        keys = ranks[::-1] if self.curve is None else [on_curve(self.curve, ranks)]
        order = np.lexsort(keys)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places


def fits_in_memory(rows: int) -> bool:
    """Return whether the rows fit into one process's memory for sorting."""
    return rows <= _ROWS_AT_ONCE


def ordered_rows(table: Table, job: BucketJob, order: RowOrder) -> Iterator[pa.Table]:
    """Yield the rows of a job in another order.

    Up to four million rows are ordered in memory. Of more rows a sample is, and the rows wait in files of a
    temporary folder; but rows with encrypted columns are not written there, and the columns of their order
    are in memory as a whole.
    """
    names = file_schema(table.schema).names
    rows = sum(entry.file.row_count for entry in job.entries)
    if fits_in_memory(rows) or confidential_in(table.schema):
        parts = partial(parts_of, table, job)
        keys = [part.select(order.columns) for part in parts(list(order.columns))]
        if keys:
            yield from _placed(parts, names, order.places(pa.concat_tables(keys)))
        return
    yield from _by_ranges(table, job, order, rows)


def _by_ranges(table: Table, job: BucketJob, order: RowOrder, rows: int) -> Iterator[pa.Table]:
    columns, names = list(order.columns), file_schema(table.schema).names
    found = sample_of((part.select(columns) for part in parts_of(table, job, columns)), rows)
    if found is None:
        return
    sample = Sample(found, order.curve)
    ranges = Ranges(sample, -(-2 * rows // _ROWS_AT_ONCE), file_schema(table.schema))
    try:
        for part in parts_of(table, job, names):
            ranges.add(part.select(names), columns)
        for path in ranges.written():
            parts = partial(batches_of, path)
            keys = list(parts(columns))
            if keys:
                yield from _placed(parts, names, _places_in_range(sample, order, keys))
    finally:
        ranges.close()


def _places_in_range(sample: Sample, order: RowOrder, keys: list[pa.Table]) -> npt.NDArray[np.int64]:
    """Return the new place of each row of a range, by the values or by the places on the curve."""
    if order.curve is None:
        return order.places(pa.concat_tables(keys))
    return positions_of_keys(np.concatenate([sample.keys(part) for part in keys]))


def _placed(parts: Parts, names: list[str], places: npt.NDArray[np.int64]) -> Iterator[pa.Table]:
    """Yield rows by their new places, so many at a time that memory holds them."""
    for first in range(0, len(places), _ROWS_AT_ONCE):
        yield _between(parts, names, places, first)


def _between(parts: Parts, names: list[str], places: npt.NDArray[np.int64], first: int) -> pa.Table:
    """Return the rows whose new places follow each other from `first` on."""
    end, at = first + _ROWS_AT_ONCE, 0
    chosen_parts, found = [], []
    for part in parts(names):
        own = places[at : at + part.num_rows]
        at += part.num_rows
        chosen = np.flatnonzero((own >= first) & (own < end))
        if len(chosen):
            chosen_parts.append(part.take(chosen))
            found.append(own[chosen])
    whole = pa.concat_tables(chosen_parts)
    return whole.take(np.argsort(np.concatenate(found)))


def pruned_share(table: Table, entries: Sequence[ManifestEntry], order: RowOrder) -> float | None:
    """Return the share of files that the bounds of a value leave out, on average over the columns."""
    if not entries:
        return None
    return 1 - float(np.mean([part_left(table, entries, name) for name in order.columns]))


def best_share(files: int, order: RowOrder) -> float | None:
    """Return what a perfect curve leaves out: of d columns over N files, each has N ** (1 / d) slices."""
    return 1 - files ** (-1 / len(order.columns)) if files else None
