"""Collector of new data files: the keys of their indexed columns, as a segment of one file without a name."""

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
    """Return the name of the part that a column has in segments that are written now."""
    data_type = indexed.field.type.with_nullable(True)
    return PartName(versioned(indexed.kind), indexed.field.id, str(type_to_json(data_type)))


@dataclass(frozen=True)
class GivenParts:
    """Parts of the segment of a file that its writer has made, and how many rows it says it wrote."""

    rows: int
    parts: Mapping[PartName, PartContent] = field(hash=False)


class SegmentCollector:
    """Collects the keys of new files; `indexed` is what the table's options ask for, or some of it.

    `given` are parts of a file that are there already.
    """

    name = NAME

    def __init__(
        self,
        table: TableHandle,
        indexed: Sequence[IndexedField] | None = None,
        given: GivenParts | None = None,
    ) -> None:
        self._table = table
        self._given = given
        self.indexed = indexed_fields(table.schema) if indexed is None else list(indexed)
        self._block_rows = table.options.get_option(index_options.BLOCK_ROWS)
        self._most_distinct = {part_name(each): most_distinct(table, each.kind) for each in self.indexed}

    @property
    def _read(self) -> list[IndexedField]:
        """The columns that are read, with their kinds of index."""
        given = self._given.parts if self._given is not None else {}
        return [each for each in self.indexed if part_name(each) not in given]

    @property
    def columns(self) -> Sequence[str]:
        """The columns whose values it needs."""
        return tuple(dict.fromkeys(each.field.name for each in self._read))

    def begin(self) -> SegmentCollection:
        """Begin a file."""
        return SegmentCollection(self._read, self._block_rows, self._most_distinct, self._given)

    def task_keys(self) -> TaskKeys | None:
        """Return what tasks collect: columns of Lockgate's own kinds, as far as the connector has a twin."""
        kinds = plugins().index_kinds()
        found = [task_column(each, kinds[each.kind]) for each in self.indexed]
        columns = tuple(each for each in found if each is not None)
        return TaskKeys(columns, self._block_rows) if columns else None

    def completing(self, keys: bytes, rows: int) -> SegmentCollector:
        """Return a collector of what tasks have not collected; InputError for keys that are none."""
        kinds = plugins().index_kinds()
        asked = [each for each in self.indexed if task_column(each, kinds[each.kind]) is not None]
        found = read_keys(keys, len(asked), rows, self._block_rows)
        blocks = blocks_of(rows, self._block_rows)
        parts = {
            part_name(each): content.content(blocks, chosen=each.chosen)
            for each, content in zip(asked, found, strict=True)
            if content is not None
        }
        return SegmentCollector(self._table, self.indexed, GivenParts(rows, parts))


def most_distinct(table: TableHandle, kind: str) -> float:
    """Return the most keys for each row with which `auto` indexes a column by a kind."""
    option = index_options.BLOOM_SHARE if kind == BLOOM else index_options.AUTO_SHARE
    return float(table.options.get_option(option)) * keys_a_value(kind)


def keys_a_value(kind: str) -> int:
    """Return how many keys a kind has for each value."""
    return int(getattr(plugins().index_kinds()[kind], "keys_a_value", 1))


class SegmentCollection:
    """The keys of one file, each once for each block of rows.

    A column that is not named is left out if it has more keys than its kind's `most_distinct` for each row.
    `given` are parts of other columns.
    """

    def __init__(
        self,
        indexed: Sequence[IndexedField],
        block_rows: int,
        most_distinct: Mapping[PartName, float],
        given: GivenParts | None = None,
    ) -> None:
        kinds = plugins().index_kinds()
        self._columns = [_Column(each, kinds[each.kind]) for each in indexed]
        self._block_rows = block_rows
        self._most_distinct = most_distinct
        self._given = given
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Take in rows."""
        at = 0
        while at < rows.num_rows:
            block, within = divmod(self._rows, self._block_rows)
            part = rows.slice(at, self._block_rows - within)
            for column in self._columns:
                column.add(block, part)
            at += part.num_rows
            self._rows += part.num_rows

    def finish(self) -> bytes:
        """Return the segment; InputError if the given parts are of another number of rows."""
        contents = {column.name: column.content() for column in self._columns}
        rows = self._rows
        if self._given is not None:
            rows = self._given.rows
            if self._columns and rows != self._rows:
                raise InputError(f"a task told the keys of {rows} rows, its file has {self._rows}")
            contents |= self._given.parts
        files = Files(("",), np.array([rows]), np.array([self._block_rows]))
        kept = {name: part for name, part in contents.items() if self._pays(name, part, rows)}
        return write_segment(files, kept)

    def _pays(self, name: PartName, part: PartContent, rows: int) -> bool:
        return not part.chosen or len(part.keys) <= self._most_distinct[name] * rows


class _Column:
    """The keys of one column, by block."""

    def __init__(self, indexed: IndexedField, kind: IndexKind) -> None:
        self.name = part_name(indexed)
        self._indexed = indexed
        self._kind = kind
        self._done: list[Words] = []
        # The different values of the parts of an open block: as keys, which take longer, once a block.
        self._open: list[pa.Array] = []
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
        self._open.append(pc.unique(column.drop_null() if column.null_count else column))

    def _close(self) -> None:
        while len(self._done) <= self._block:
            self._done.append(np.zeros(0, np.uint64))
        if self._open:
            values = self._open[0] if len(self._open) == 1 else pc.unique(pa.chunked_array(self._open))
            self._done[self._block] = distinct(self._kind.keys(values, self._indexed.field.type))
        self._open = []

    def content(self) -> PartContent:
        self._close()
        places = np.repeat(np.arange(len(self._done), dtype=np.uint64), [len(keys) for keys in self._done])
        keys = np.concatenate(self._done)
        pairs = sorted_pairs(keys, places) if len(self._done) > 1 else (keys, places)
        return PartContent(*pairs, BitMap([0]), self._nulls, self._values, self._indexed.chosen)
