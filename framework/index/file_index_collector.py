"""Collector that builds the file indexes of new data files, as required by the options `file-index.*`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store import TableSchema, WantedIndex, value_kind_of
from lockgate.framework.types import to_arrow
from lockgate.pushdown.index import write_container, write_index


class IndexCollector:
    """Builds the file index of each new file of a table."""

    name = "file-index"
    makes_file_index = True

    def __init__(self, schema: TableSchema, required_indexes: Sequence[WantedIndex]) -> None:
        self.schema = schema
        self.indexes = [index for index in required_indexes if index.is_possible(schema)]

    @property
    def columns(self) -> Sequence[str]:
        """The indexed columns."""
        return tuple(dict.fromkeys(index.column for index in self.indexes))

    def begin(self) -> IndexCollection:
        """Begin a file."""
        return IndexCollection(self.schema, self.indexes)


class IndexCollection:
    """The indexed columns of one file, in memory until it is complete."""

    def __init__(self, schema: TableSchema, indexes: Sequence[WantedIndex]) -> None:
        self._schema = schema
        self._indexes = indexes
        self._parts: dict[str, list[pa.ChunkedArray]] = {index.column: [] for index in indexes}

    def add(self, rows: pa.Table) -> None:
        """Add rows of the file."""
        for name, parts in self._parts.items():
            parts.append(rows[name])

    def finish(self) -> bytes:
        """Return the bytes of the file index container."""
        containers: dict[str, dict[str, bytes | None]] = {}
        for index in self._indexes:
            containers.setdefault(index.name, {})[index.kind] = self._index(index)
        return write_container(containers)

    def _index(self, index: WantedIndex) -> bytes:
        declared = index.values_of(self._schema)
        kind = value_kind_of(declared)
        assert kind is not None, "types are checked before"
        values = self._values(index).cast(to_arrow(declared))
        return write_index(index.kind, kind, values, index.parameters)

    def _values(self, index: WantedIndex) -> pa.Array:
        chunks = [chunk for part in self._parts[index.column] for chunk in part.chunks]
        if not chunks:
            return pa.array([], to_arrow(index.values_of(self._schema)))
        values = pa.concat_arrays(chunks)
        if index.key is None:
            return values
        return pc.map_lookup(values, pa.scalar(index.key, values.type.key_type), "last")
