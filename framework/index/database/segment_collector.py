"""Collector of the indexed columns' keys of a new data file, as a segment of one unnamed file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lockgate.errors import InputError
from lockgate.framework import options as index_options
from lockgate.framework.index.database.blooms import BLOOM
from lockgate.framework.index.database.collected_keys import blocks_of, read_keys, task_column
from lockgate.framework.index.database.kind_versions import versioned
from lockgate.framework.plugins import IndexKind, TaskKeys, plugins
from lockgate.framework.store import IndexedField, TableHandle, indexed_fields
from lockgate.framework.types import to_arrow, type_to_json
from lockgate.pushdown.index import Files, PartContent, PartName, distinct, sorted_pairs, write_segment

NAME = "segment"
Words = npt.NDArray[np.uint64]


def part_name(indexed: IndexedField) -> PartName:
    """Return the name of an indexed column's part in new segments."""
    data_type = indexed.field.type.with_nullable(True)
    return PartName(versioned(indexed.kind), indexed.field.id, str(type_to_json(data_type)))


@dataclass(frozen=True)
class TaskParts:
    """Segment parts that the writing task has built, and its row count."""

    rows: int
    parts: Mapping[PartName, PartContent] = field(hash=False)


class SegmentCollector:
    """Collects the keys of new files; `indexed` has the fields to index, by default those of the options.

    `task_parts` are parts that the task has built already.
    """

    name = NAME

    def __init__(
        self,
        table: TableHandle,
        indexed: Sequence[IndexedField] | None = None,
        task_parts: TaskParts | None = None,
    ) -> None:
        self._table = table
        self._task_parts = task_parts
        self.indexed = indexed_fields(table.schema) if indexed is None else list(indexed)
        self._block_rows = table.options.get_option(index_options.BLOCK_ROWS)
        self._most_distinct = {part_name(each): max_keys_per_row(table, each.kind) for each in self.indexed}

    @property
    def _uncollected(self) -> list[IndexedField]:
        """The indexed fields without parts from the task."""
        task_parts = self._task_parts.parts if self._task_parts is not None else {}
        return [each for each in self.indexed if part_name(each) not in task_parts]

    @property
    def columns(self) -> Sequence[str]:
        """The columns whose values the collector needs."""
        return tuple(dict.fromkeys(each.field.name for each in self._uncollected))

    def begin(self) -> SegmentCollection:
        """Begin a file."""
        return SegmentCollection(self._uncollected, self._block_rows, self._most_distinct, self._task_parts)

    def task_keys(self) -> TaskKeys | None:
        """Return the columns for tasks to collect: those of kinds with a twin in the connector."""
        kinds = plugins().index_kinds()
        task_columns = [task_column(each, kinds[each.kind]) for each in self.indexed]
        columns = tuple(each for each in task_columns if each is not None)
        return TaskKeys(columns, self._block_rows) if columns else None

    def completing(self, keys: bytes, rows: int) -> SegmentCollector:
        """Return a collector of the columns that tasks have not collected; InputError for invalid keys."""
        kinds = plugins().index_kinds()
        task_fields = [each for each in self.indexed if task_column(each, kinds[each.kind]) is not None]
        keys_by_field = read_keys(keys, len(task_fields), rows, self._block_rows)
        blocks = blocks_of(rows, self._block_rows)
        parts = {
            part_name(each): content.content(blocks, chosen=each.chosen)
            for each, content in zip(task_fields, keys_by_field, strict=True)
            if content is not None
        }
        return SegmentCollector(self._table, self.indexed, TaskParts(rows, parts))


def max_keys_per_row(table: TableHandle, kind: str) -> float:
    """Return the maximum number of keys for each row with which `auto` indexes a column."""
    option = index_options.BLOOM_SHARE if kind == BLOOM else index_options.AUTO_SHARE
    return float(table.options.get_option(option)) * keys_a_value(kind)


def keys_a_value(kind: str) -> int:
    """Return the number of keys that a kind has for each value."""
    return int(getattr(plugins().index_kinds()[kind], "keys_a_value", 1))


class SegmentCollection:
    """Collects the distinct keys of each block of one file.

    An automatically indexed column is dropped if it has more keys than `max_keys_per_row` of its kind allows.
    `task_parts` are parts of other columns.
    """

    def __init__(
        self,
        indexed: Sequence[IndexedField],
        block_rows: int,
        max_keys_per_row: Mapping[PartName, float],
        task_parts: TaskParts | None = None,
    ) -> None:
        kinds = plugins().index_kinds()
        self._columns = [_Column(each, kinds[each.kind]) for each in indexed]
        self._block_rows = block_rows
        self._most_distinct = max_keys_per_row
        self._task_parts = task_parts
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows of the file."""
        at = 0
        while at < rows.num_rows:
            block, row_in_block = divmod(self._rows, self._block_rows)
            part = rows.slice(at, self._block_rows - row_in_block)
            for column in self._columns:
                column.add(block, part)
            at += part.num_rows
            self._rows += part.num_rows

    def finish(self) -> bytes:
        """Return the segment; InputError if the task's parts are of another number of rows."""
        contents = {column.name: column.content() for column in self._columns}
        rows = self._rows
        if self._task_parts is not None:
            rows = self._task_parts.rows
            if self._columns and rows != self._rows:
                raise InputError(f"a task collected the keys of {rows} rows, its file has {self._rows}")
            contents |= self._task_parts.parts
        files = Files(("",), np.array([rows]), np.array([self._block_rows]))
        selective_parts = {
            name: part for name, part in contents.items() if self._is_selective(name, part, rows)
        }
        return write_segment(files, selective_parts)

    def _is_selective(self, name: PartName, part: PartContent, rows: int) -> bool:
        return not part.chosen or len(part.keys) <= self._most_distinct[name] * rows


class _Column:
    """The keys of one column, by block."""

    def __init__(self, indexed: IndexedField, kind: IndexKind) -> None:
        self.name = part_name(indexed)
        self._indexed = indexed
        self._kind = kind
        self._block_keys: list[Words] = []
        # Distinct values of the current block; keys are computed once for each block, since that takes
        # longer.
        self._block_values: list[pa.Array] = []
        self._block = 0
        self._nulls, self._values = BitMap(), BitMap()

    def add(self, block: int, rows: pa.Table) -> None:
        if block != self._block:
            self._close()
            self._block = block
        data_type = self._indexed.field.type
        column = rows[self._indexed.field.name].cast(to_arrow(data_type))
        if column.null_count:
            self._nulls.add(block)
        if column.null_count == len(column):
            return
        self._values.add(block)
        self._block_values.append(pc.unique(column.drop_null() if column.null_count else column))

    def _close(self) -> None:
        while len(self._block_keys) <= self._block:
            self._block_keys.append(np.zeros(0, np.uint64))
        if self._block_values:
            values = (
                self._block_values[0]
                if len(self._block_values) == 1
                else pc.unique(pa.chunked_array(self._block_values))
            )
            self._block_keys[self._block] = distinct(self._kind.keys(values, self._indexed.field.type))
        self._block_values = []

    def content(self) -> PartContent:
        self._close()
        places = np.repeat(
            np.arange(len(self._block_keys), dtype=np.uint64), [len(keys) for keys in self._block_keys]
        )
        keys = np.concatenate(self._block_keys)
        pairs = sorted_pairs(keys, places) if len(self._block_keys) > 1 else (keys, places)
        return PartContent(*pairs, BitMap([0]), self._nulls, self._values, self._indexed.chosen)
