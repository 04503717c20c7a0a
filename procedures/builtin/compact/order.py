"""Order of the rows that a compaction writes: by columns, or along a curve through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.options import clustering_options
from lockgate.framework.options.option import parse_names
from lockgate.framework.store import ManifestEntry, Table
from lockgate.framework.store.rows.rows import file_schema
from lockgate.framework.store.scan.file_layout import part_left
from lockgate.framework.store.schema.row_order import clustering_columns, why_unordered
from lockgate.procedures.builtin.compact.compaction import BucketJob, parts_of
from lockgate.procedures.builtin.compact.curves import Curve, hilbert, on_curve, ranks_of, zorder

NONE, ORDER = "none", "order"
_CURVES: dict[str, Curve] = {"zorder": zorder, "hilbert": hilbert}
STRATEGIES = (NONE, ORDER, *_CURVES)
_MANY_COLUMNS = 5
# So many rows are in memory at a time; files are read once for each such part of a bucket.
_ROWS_AT_ONCE = 4_000_000


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
        strategy = table.schema.table_options.get_option(clustering_options.STRATEGY)
        if strategy == clustering_options.AUTO:
            # As Paimon chooses.
            strategy = ORDER if len(names) == 1 else "zorder" if len(names) < _MANY_COLUMNS else "hilbert"
        return cls(strategy, names, is_given=False)

    def places(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Return the new place of each row, given the columns of the order."""
        ranks = [ranks_of(rows[name]) for name in self.columns]
        keys = ranks[::-1] if self.strategy == ORDER else [on_curve(_CURVES[self.strategy], ranks)]
        order = np.lexsort(keys)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places


def ordered_rows(table: Table, job: BucketJob, order: RowOrder) -> Iterator[pa.Table]:
    """Yield the rows of a job in another order; the columns of the order are in memory as a whole."""
    names = file_schema(table.schema).names
    keys = [part.select(order.columns) for part in parts_of(table, job, list(order.columns))]
    if not keys:
        return
    places = order.places(pa.concat_tables(keys))
    del keys
    for first in range(0, len(places), _ROWS_AT_ONCE):
        yield _between(table, job, names, places, first)


def _between(
    table: Table, job: BucketJob, names: list[str], places: npt.NDArray[np.int64], first: int
) -> pa.Table:
    """Return the rows whose new places follow each other from `first` on."""
    end, at = first + _ROWS_AT_ONCE, 0
    parts, found = [], []
    for part in parts_of(table, job, names):
        own = places[at : at + part.num_rows]
        at += part.num_rows
        chosen = np.flatnonzero((own >= first) & (own < end))
        if len(chosen):
            parts.append(part.take(chosen))
            found.append(own[chosen])
    whole = pa.concat_tables(parts)
    return whole.take(np.argsort(np.concatenate(found)))


def pruned_share(table: Table, entries: Sequence[ManifestEntry], order: RowOrder) -> float | None:
    """Return the share of files that the bounds of a value leave out, on average over the columns."""
    if not entries:
        return None
    return 1 - float(np.mean([part_left(table, entries, name) for name in order.columns]))


def best_share(files: int, order: RowOrder) -> float | None:
    """Return what a perfect curve leaves out: of d columns over N files, each has N ** (1 / d) slices."""
    return 1 - files ** (-1 / len(order.columns)) if files else None
