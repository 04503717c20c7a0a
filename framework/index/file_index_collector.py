"""Collector of new data files: makes the file indexes that options `file-index.*` name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store import TableSchema, WantedIndex, value_kind_of
from lockgate.framework.store.schema.file_indexes import indexable
from lockgate.framework.types import to_arrow
from lockgate.pushdown.index import write_container, write_index


class IndexCollector:
    """Collects what indexes of files of a schema need; what it makes is a file index."""

    name = "file-index"
    makes_file_index = True

    def __init__(self, schema: TableSchema, wanted: Sequence[WantedIndex]) -> None:
        self.schema = schema
        self.indexes = [each for each in wanted if indexable(schema, each) is not None]

    @property
    def columns(self) -> Sequence[str]:
        """The indexed columns."""
        return tuple(dict.fromkeys(each.column for each in self.indexes))

    def begin(self) -> IndexCollection:
        """Begin a file."""
        return IndexCollection(self.schema, self.indexes)


class IndexCollection:
    """The indexed columns of one file, in memory until it is complete."""

    def __init__(self, schema: TableSchema, indexes: Sequence[WantedIndex]) -> None:
        self._schema = schema
        self._indexes = indexes
        self._parts: dict[str, list[pa.ChunkedArray]] = {each.column: [] for each in indexes}

    def add(self, rows: pa.Table) -> None:
        """Take in rows."""
        for name, parts in self._parts.items():
            parts.append(rows[name])

    def finish(self) -> bytes:
        """Return the container."""
        found: dict[str, dict[str, bytes | None]] = {}
        for each in self._indexes:
            found.setdefault(each.name, {})[each.kind] = self._index(each)
        return write_container(found)

    def _index(self, wanted: WantedIndex) -> bytes:
        declared = wanted.values_of(self._schema)
        kind = value_kind_of(declared)
        assert kind is not None, "types are checked before"
        values = self._values(wanted).cast(to_arrow(declared))
        return write_index(wanted.kind, kind, values, wanted.parameters)

    def _values(self, wanted: WantedIndex) -> pa.Array:
        chunks = [chunk for part in self._parts[wanted.column] for chunk in part.chunks]
        if not chunks:
            return pa.array([], to_arrow(wanted.values_of(self._schema)))
        whole = pa.concat_arrays(chunks)
        if wanted.key is None:
            return whole
        return pc.map_lookup(whole, pa.scalar(wanted.key, whole.type.key_type), "last")
