"""Order of the rows that a compaction writes: by columns, or along a curve through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.store import Table
from lockgate.framework.store.rows.rows import file_schema
from lockgate.framework.store.schema.secret_columns import secrets_of
from lockgate.procedures.builtin.compact.compaction import BucketJob, parts_of
from lockgate.procedures.builtin.compact.curves import Curve, hilbert, on_curve, ranks_of, zorder

NONE, ORDER = "none", "order"
_CURVES: dict[str, Curve] = {"zorder": zorder, "hilbert": hilbert}
STRATEGIES = (NONE, ORDER, *_CURVES)
# So many rows are in memory at a time; files are read once for each such part of a bucket.
_ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class RowOrder:
    """How rows are ordered: by a strategy and columns."""

    strategy: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, strategy: str, columns: str | None) -> RowOrder | None:
        """Return the order that arguments ask for, None for none.

        Raises InputError for unknown strategies and columns, UnsupportedError for tables with a primary key,
        which are ordered by it, and for encrypted columns, whose order would be seen without a key.
        """
        chosen = strategy.lower()
        if chosen not in STRATEGIES:
            raise InputError(f"order_strategy cannot be {strategy!r}{nearest(strategy, STRATEGIES)}")
        names = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
        if (chosen == NONE) is bool(names):
            raise InputError("order_by and an order_strategy other than 'none' are given together")
        if not names:
            return None
        if table.schema.has_primary_key:
            raise UnsupportedError(
                f"rows of {table.identifier} are ordered by its primary key: leave order_strategy out"
            )
        for name in names:
            _check_column(table, name)
        return cls(chosen, names)

    def places(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Return the new place of each row, given the columns of the order."""
        ranks = [ranks_of(rows[name]) for name in self.columns]
        keys = ranks[::-1] if self.strategy == ORDER else [on_curve(_CURVES[self.strategy], ranks)]
        order = np.lexsort(keys)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return places


def _check_column(table: Table, name: str) -> None:
    schema = table.schema
    if name not in schema.field_names:
        raise InputError(f"order_by: there is no column {name!r}{nearest(name, schema.field_names)}")
    if name in secrets_of(schema).top_level(schema):
        raise UnsupportedError(
            f"order_by: {name!r} is encrypted, and the order of rows would show without a key how its values "
            "are ordered: leave it out"
        )
    if schema.field(name).type.is_nested:
        raise InputError(f"order_by: {name!r} is {schema.field(name).type.bare_name}, which has no order")


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
