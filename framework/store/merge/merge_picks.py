"""Columns whose merged value comes from one of the rows: finds that row, for many keys at a time.

Every step takes `at`, the numbers of keys, and `rows`, the position of one row of each. Source: Paimon's
`FieldLastValueAgg` and its kin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store.merge.group_codes import Codes
from lockgate.framework.store.merge.sequence_order import total_order

if TYPE_CHECKING:
    from lockgate.framework.store.merge.merge_plan import ColumnMerge

NONE = -1
"""The row of a value that is null."""


class Pick:
    """The newest row's value; what other functions have in common."""

    def __init__(self, plan: ColumnMerge, column: pa.ChunkedArray, keys: int) -> None:
        self._column = column
        self._valid = column.is_valid().to_numpy() if column.null_count else None
        self.rows = np.full(keys, NONE, dtype=np.int64)

    def valid(self, rows: Codes) -> Any:
        """Say for each row whether it has a value."""
        return np.ones(len(rows), np.bool_) if self._valid is None else self._valid[rows]

    def missing(self, at: Codes) -> Any:
        """Say for each key whether its value is null so far."""
        rows = self.rows[at]
        return (rows == NONE) | ~self.valid(rows)

    def add(self, at: Codes, rows: Codes) -> None:
        """Take in a row that is newer than those before."""
        self.rows[at] = rows

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Take in a row that is older, in its group, than one before."""

    def retract(self, at: Codes, rows: Codes) -> None:
        """Take back what a row says."""
        self.rows[at] = NONE

    def retract_late(self, at: Codes, rows: Codes) -> None:
        """Take back what a row says that is older, in its group, than one before."""
        self.retract(at, rows)

    def replace(self, at: Codes, rows: Codes) -> None:
        """Begin with a row's values."""
        self.rows[at] = rows

    def result(self) -> pa.Array | pa.ChunkedArray:
        """Return the value of each key."""
        return self._column.take(pc.if_else(pa.array(self.rows == NONE), None, pa.array(self.rows)))


class Key(Pick):
    """A column of the key, which all rows share."""

    def retract(self, at: Codes, rows: Codes) -> None:
        """Keep the key."""
        self.rows[at] = rows


class Last(Pick):
    """`last_value`."""


class SetInGroup(Pick):
    """A column of a group that has no function: a retraction that comes late does not touch it."""

    def retract_late(self, at: Codes, rows: Codes) -> None:
        """Leave the value."""


class LastNonNull(Pick):
    """`last_non_null_value`, and columns of partial-update outside groups."""

    def add(self, at: Codes, rows: Codes) -> None:
        """Take values that are not null."""
        valid = self.valid(rows)
        self.rows[at[valid]] = rows[valid]

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Take the value where there is none."""
        missing = self.missing(at)
        self.rows[at[missing]] = rows[missing]

    def retract(self, at: Codes, rows: Codes) -> None:
        """Drop the value, unless a null is taken back."""
        self.rows[at[self.valid(rows)]] = NONE


class First(Pick):
    """`first_value`."""

    def __init__(self, plan: ColumnMerge, column: pa.ChunkedArray, keys: int) -> None:
        super().__init__(plan, column, keys)
        self._begun = np.zeros(keys, np.bool_)

    def add(self, at: Codes, rows: Codes) -> None:
        """Take the first row's value."""
        new = ~self._begun[at] & self._counts(rows)
        self.rows[at[new]] = rows[new]
        self._begun[at[new]] = True

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Take an older row's value for the first."""
        stays = ~self._begun[at] & self._stands(at)
        self._begun[at[stays]] = True
        self.rows[at[~stays]] = rows[~stays]

    def _counts(self, rows: Codes) -> Any:
        return np.ones(len(rows), np.bool_)

    def _stands(self, at: Codes) -> Any:
        return np.ones(len(at), np.bool_)


class FirstNonNull(First):
    """`first_non_null_value`."""

    def _counts(self, rows: Codes) -> Any:
        return self.valid(rows)

    def _stands(self, at: Codes) -> Any:
        return ~self.missing(at)


class Greatest(Pick):
    """`max`, `bool_or`."""

    def __init__(self, plan: ColumnMerge, column: pa.ChunkedArray, keys: int) -> None:
        super().__init__(plan, column, keys)
        self._order = total_order(column)

    def add(self, at: Codes, rows: Codes) -> None:
        """Keep the larger value."""
        before = self.rows[at]
        larger = self.valid(rows) & (self.missing(at) | (self._order[before] < self._order[rows]))
        self.rows[at[larger]] = rows[larger]

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Keep the larger value; its age does not matter."""
        self.add(at, rows)


class Least(Greatest):
    """`min`, `bool_and`."""

    def __init__(self, plan: ColumnMerge, column: pa.ChunkedArray, keys: int) -> None:
        super().__init__(plan, column, keys)
        self._order = ~self._order
