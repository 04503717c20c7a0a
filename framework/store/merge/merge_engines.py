"""Merge engines that combine several rows of a key: partial-update and aggregation.

Keys are merged side by side: first the oldest row of each, then the second oldest, and so on, so that each
step is one of whole columns. Source: Paimon's `PartialUpdateMergeFunction` and `AggregateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.store.merge.group_codes import Codes, group_codes
from lockgate.framework.store.merge.merge_functions import SEQUENCE, State, function_of
from lockgate.framework.store.merge.merge_plan import (
    AGGREGATION,
    ColumnMerge,
    MergePlan,
    RowKind,
    SequenceGroup,
)
from lockgate.framework.store.merge.sequence_order import by_sequence


@dataclass(frozen=True)
class RowVersions:
    """The rows of keys that have several: those of key `n` are `rows[starts[n]:starts[n] + counts[n]]`, from
    old to new.
    """

    rows: Codes
    starts: Codes
    counts: Codes


def composed(plan: MergePlan, table: pa.Table, keys: RowVersions) -> pa.Table:
    """Return one row a key, with the columns of `table`; the kind says whether it is a deletion.

    Raises InputError for rows that retract what cannot be retracted, and for numbers that overflow.
    """
    engine = (
        _Aggregation(plan, table, keys) if plan.engine == AGGREGATION else _PartialUpdate(plan, table, keys)
    )
    for number in range(int(keys.counts.max(initial=0))):
        at = np.flatnonzero(keys.counts > number)
        engine.step(at, keys.rows[keys.starts[at] + number])
    return engine.result()


class _Engine:
    """The common part of both engines: a state for each column, the newest row and the kind of each key."""

    def __init__(self, plan: MergePlan, table: pa.Table, keys: RowVersions) -> None:
        self.plan = plan
        self.table = table
        count = len(keys.counts)
        self.kinds = table[plan.kind].to_numpy()
        self.retracts = (self.kinds == RowKind.DELETE) | (self.kinds == RowKind.UPDATE_BEFORE)
        self.newest = np.zeros(count, dtype=np.int64)
        self.removed = np.zeros(count, np.bool_)
        chosen = [column for column in plan.columns if column.name in table.column_names]
        self.columns = [
            (column, function_of(column.function).state(column, table[column.name], count))
            for column in chosen
            if column.function != SEQUENCE
        ]

    def step(self, at: Codes, rows: Codes) -> None:
        """Take in one row of each of some keys."""
        raise NotImplementedError

    def deleted(self) -> Any:
        """Say for each key whether its row is a deletion."""
        return self.removed

    def replace(self, at: Codes, rows: Codes) -> None:
        """Begin with the values of a row."""
        for _, state in self.columns:
            state.replace(at, rows)

    def result(self) -> pa.Table:
        """Return the rows."""
        newest = self.table.take(pa.array(self.newest))
        values = {column.name: state.result() for column, state in self.columns} | self.ordering()
        kinds = np.where(self.deleted(), int(RowKind.DELETE), int(RowKind.INSERT))
        values[self.plan.kind] = pa.array(kinds, self.table[self.plan.kind].type)
        arrays = [values.get(name, newest[name]) for name in self.table.column_names]
        return pa.Table.from_arrays(arrays, schema=self.table.schema)

    def ordering(self) -> dict[str, Any]:
        """Return the columns that order groups."""
        return {}


class _Aggregation(_Engine):
    def step(self, at: Codes, rows: Codes) -> None:
        self.newest[at] = rows
        retracts = self.retracts[rows]
        if not retracts.any():
            self.removed[at] = False
            self._add(at, rows)
            return
        removes = retracts & self.plan.remove_on_delete & (self.kinds[rows] == RowKind.DELETE)
        self.removed[at] = removes
        self.replace(at[removes], rows[removes])
        back = retracts & ~removes
        for column, state in self.columns:
            _retract(column, state, at[back], rows[back])
        self._add(at[~retracts], rows[~retracts])

    def _add(self, at: Codes, rows: Codes) -> None:
        for _, state in self.columns:
            state.add(at, rows)


class _PartialUpdate(_Engine):
    def __init__(self, plan: MergePlan, table: pa.Table, keys: RowVersions) -> None:
        super().__init__(plan, table, keys)
        count = len(keys.counts)
        self._filled = np.zeros(count, np.bool_)
        self._inserted = np.zeros(count, np.bool_)
        names = set(table.column_names)
        self._groups = [
            (_Group(group, table, count), [each for each in self.columns if each[0].group == number])
            for number, group in enumerate(plan.groups)
            if names.issuperset(group.columns)
        ]
        self._free = [state for column, state in self.columns if column.group is None]

    def deleted(self) -> Any:
        return self.removed | ~self._inserted

    def ordering(self) -> dict[str, Any]:
        return {name: column for group, _ in self._groups for name, column in group.result().items()}

    def replace(self, at: Codes, rows: Codes) -> None:
        super().replace(at, rows)
        for group, _ in self._groups:
            group.rows[at] = rows

    def step(self, at: Codes, rows: Codes) -> None:
        self.removed[at] = False
        retracts = self.retracts[rows]
        if retracts.any():
            self._take_back(at[retracts], rows[retracts])
            at, rows = at[~retracts], rows[~retracts]
        self.newest[at] = rows
        self._filled[at] = True
        self._inserted[at] = True
        for state in self._free:
            state.add(at, rows)
        for group, columns in self._groups:
            newer, late = group.split(at, rows)
            for _, state in columns:
                state.add(at[newer], rows[newer])
                state.add_late(at[late], rows[late])
            group.rows[at[newer]] = rows[newer]

    def _take_back(self, at: Codes, rows: Codes) -> None:
        fresh = ~self._filled[at]
        self.replace(at[fresh], rows[fresh])
        self._filled[at] = True
        self.newest[at[fresh]] = rows[fresh]
        if self.plan.ignore_delete:
            return
        self.newest[at] = rows
        if self.plan.groups:
            self._retract_in_groups(at, rows)
        elif self.plan.remove_on_delete:
            self._remove(at, rows, self.kinds[rows] == RowKind.DELETE)
        else:
            raise InputError(
                "a row of kind -U or -D is in a table with merge engine 'partial-update' that has no "
                "sequence groups, nor 'partial-update.remove-record-on-delete', nor 'ignore-delete'"
            )

    def _remove(self, at: Codes, rows: Codes, removes: Any) -> None:
        self.removed[at[removes]] = True
        self.replace(at[removes], rows[removes])

    def _retract_in_groups(self, at: Codes, rows: Codes) -> None:
        removes = np.zeros(len(at), np.bool_)
        for group, _ in self._groups:
            if group.removes:
                removes |= group.split(at, rows)[0] & (self.kinds[rows] == RowKind.DELETE)
        self._remove(at, rows, removes)
        at, rows = at[~removes], rows[~removes]
        for group, columns in self._groups:
            newer, late = group.split(at, rows)
            for column, state in columns:
                _retract(column, state, at[newer], rows[newer])
                _retract(column, state, at[late], rows[late], late=True)
            group.rows[at[newer]] = rows[newer]


class _Group:
    """A sequence group: of each key, the row whose values order it."""

    def __init__(self, plan: SequenceGroup, table: pa.Table, keys: int) -> None:
        self._plan = plan
        self._table = table
        self.removes = plan.removes
        self.rows = np.full(keys, -1, dtype=np.int64)
        self._rank = _ranks(table, plan.columns)
        self._empty = np.logical_and.reduce([table[name].is_null().to_numpy() for name in plan.columns])

    def split(self, at: Codes, rows: Codes) -> tuple[Any, Any]:
        """Say which rows are newest in the group, and which come late; a row without order is neither."""
        touched = ~self._empty[rows]
        before = self.rows[at]
        newer = (before < 0) | (self._rank[rows] >= self._rank[before])
        return touched & newer, touched & ~newer

    def result(self) -> dict[str, Any]:
        rows = pa.array(self.rows, mask=self.rows < 0)
        return {name: self._table[name].take(rows) for name in self._plan.columns}


def _ranks(table: pa.Table, names: Sequence[str]) -> Codes:
    """Return numbers that order rows by some columns, equal for equal rows."""
    count = table.num_rows
    order = by_sequence(table.select(list(names)), names, (), np.zeros(count, np.int64), 1)
    turns = np.zeros(count, np.int64)
    for name in names:
        column = table[name].take(pa.array(order))
        codes, _ = group_codes([column], count)
        turns[1:] |= codes[1:] != codes[:-1]
    ranks = np.empty(count, np.int64)
    ranks[order] = np.cumsum(turns)
    return ranks


def _retract(column: ColumnMerge, state: State, at: Codes, rows: Codes, *, late: bool = False) -> None:
    if column.ignore_retract or not len(at):
        return
    if not column.takes_retracts:
        raise InputError(
            f"column {column.name!r}: {column.function!r} cannot retract a row of kind -U or -D; with "
            f"option 'fields.{column.name}.ignore-retract' = 'true' such rows leave the column unchanged"
        )
    if late:
        state.retract_late(at, rows)
    else:
        state.retract(at, rows)
