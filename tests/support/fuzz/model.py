"""What a table holds, by the rules of tables: keys, sequence fields, ids of columns, snapshots and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from exact_rows import exact_rows

from fuzz.kinds import Column
from fuzz.plain import ROW

Key = tuple[Any, ...]


class SkipError(Exception):
    """Raised for a statement whose outcome is not promised, so that it is not run."""


class RefusedError(Exception):
    """Raised for a statement that must fail, with the words of which the error's kind has one."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(*kinds)
        self.kinds = kinds


@dataclass(frozen=True)
class State:
    """The rows of one snapshot: columns with their ids, and an Arrow table in their order."""

    columns: tuple[Column, ...]
    ids: tuple[int, ...]
    rows: pa.Table
    graves: dict[Key, Key] = field(default_factory=dict)

    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


@dataclass
class Model:
    """A table: its layout, its newest state, the states of its snapshots, and its tags."""

    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    sequence: str | None
    state: State
    snapshots: dict[int, State] = field(default_factory=dict)
    tags: dict[str, tuple[int, State]] = field(default_factory=dict)

    # --- rows ------------------------------------------------------------------------------------

    def check(self, rows: pa.Table) -> None:
        """Raise RefusedError for a null where none may be."""
        for column in self.state.columns:
            if not column.nullable and rows.column(column.name).null_count:
                raise RefusedError("NULL")

    def added(self, rows: pa.Table) -> State:
        """The state after rows came: of those with one key the newest stays."""
        state = self.state
        self.check(rows)
        rows = rows.select(state.names()).cast(state.rows.schema)
        together = pa.concat_tables([state.rows, rows])
        if not self.keys:
            return replace(state, rows=together)
        if len(set(self.keys_of(rows))) < rows.num_rows:
            raise SkipError("of rows with one key in one statement either may win")
        return self._newest(together, rows.num_rows)

    def _newest(self, together: pa.Table, new: int) -> State:
        ages = self._ages(together)
        kept: dict[Key, int] = {}
        for index, key in enumerate(self.keys_of(together)):
            if index >= together.num_rows - new and key in self.state.graves and self.sequence:
                raise SkipError("a row after the deletion of its key, whose age may be gone")
            if key not in kept or ages[index] >= ages[kept[key]]:
                kept[key] = index
        return replace(self.state, rows=together.take(pa.array(sorted(kept.values()), pa.int64())))

    def _ages(self, rows: pa.Table) -> list[Any]:
        if self.sequence is None:
            return [0] * rows.num_rows
        values = exact_rows(rows.select([self.sequence]))
        return [(value is not None, value if value is not None else 0) for (value,) in values]

    def keys_of(self, rows: pa.Table) -> list[Key]:
        """The key of each row."""
        return [tuple(row) for row in exact_rows(rows.select(list(self.keys)))]

    def without(self, numbers: Iterable[int]) -> State:
        """The state without some of its rows."""
        gone = set(numbers)
        keep = pa.array([index not in gone for index in range(self.state.rows.num_rows)], pa.bool_())
        graves = dict(self.state.graves)
        if self.keys:
            deleted = self.state.rows.take(pa.array(sorted(gone), pa.int64()))
            graves |= dict.fromkeys(self.keys_of(deleted), ())
        return replace(self.state, rows=self.state.rows.filter(keep), graves=graves)

    def changed(self, rows: pa.Table) -> State:
        """The state in which rows, told by their numbers, have other values; those numbered -1 are new."""
        self.check(rows)
        numbers = rows.column(ROW).to_pylist()
        if self.keys:
            self._check_keys_stay(rows, numbers)
            return self.added(rows.drop_columns([ROW]))
        left = self.without(number for number in numbers if number >= 0)
        values = rows.select(self.state.names()).cast(self.state.rows.schema)
        return replace(left, rows=pa.concat_tables([left.rows, values]))

    def _check_keys_stay(self, rows: pa.Table, numbers: Sequence[int]) -> None:
        old = self.keys_of(self.state.rows)
        for key, number in zip(self.keys_of(rows), numbers, strict=True):
            if number >= 0 and old[number] != key:
                raise RefusedError("")

    def only(self, rows: pa.Table, where: tuple[str, Any] | None = None) -> State:
        """The state after an overwrite, of everything or of the rows with one value of a partition."""
        self.check(rows)
        state = self.state
        rows = rows.select(state.names()).cast(state.rows.schema)
        if self.keys and len(set(self.keys_of(rows))) < rows.num_rows:
            raise SkipError("of rows with one key in one statement either may win")
        if where is None:
            return replace(state, rows=rows, graves={})
        name, value = where
        other = pc.fill_null(pc.not_equal(state.rows.column(name), pa.scalar(value)), True)
        return replace(state, rows=pa.concat_tables([state.rows.filter(other), rows]))

    # --- columns ---------------------------------------------------------------------------------

    def with_column(self, column: Column, rows: pa.Table, number: int) -> State:
        """The state with one column more; `rows` has it."""
        state = self.state
        return replace(state, columns=(*state.columns, column), ids=(*state.ids, number), rows=rows)

    def rename(self, old: str, new: str) -> State:
        """The state with a column of another name, also where the layout names it."""
        state = self.state
        columns = tuple(replace(each, name=new) if each.name == old else each for each in state.columns)
        self.keys = tuple(new if name == old else name for name in self.keys)
        self.sequence = new if self.sequence == old else self.sequence
        return replace(state, columns=columns, rows=state.rows.rename_columns([c.name for c in columns]))

    def drop(self, name: str) -> State:
        """The state without a column."""
        state = self.state
        at = state.names().index(name)
        columns, ids = list(state.columns), list(state.ids)
        del columns[at], ids[at]
        return replace(state, columns=tuple(columns), ids=tuple(ids), rows=state.rows.drop_columns([name]))

    # --- snapshots -------------------------------------------------------------------------------

    def roll_back(self, number: int) -> None:
        """Forget the snapshots after one; the columns stay as they are now."""
        old = seen(self.snapshots[number], self.state)
        self.snapshots = {key: state for key, state in self.snapshots.items() if key <= number}
        self.tags = {name: (at, state) for name, (at, state) in self.tags.items() if at <= number}
        self.state = old

    @property
    def fixed(self) -> set[str]:
        """Columns that neither go nor change their type."""
        return {*self.keys, *self.partitions, *([self.sequence] if self.sequence else [])}


def seen(old: State, now: State) -> State:
    """The rows of an older state under the columns of a newer one, by the ids of columns."""
    arrays = []
    for column, number in zip(now.columns, now.ids, strict=True):
        kind = now.rows.schema.field(column.name).type
        if number in old.ids:
            arrays.append(old.rows.column(old.ids.index(number)).cast(kind))
        else:
            arrays.append(pa.chunked_array([pa.nulls(old.rows.num_rows, kind)]))
    return replace(now, rows=pa.table(arrays, schema=now.rows.schema), graves=old.graves)
