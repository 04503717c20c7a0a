"""Reading of file indexes, from manifest entries or separate files, by the columns of a schema."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from lockgate.framework.plugins import CandidateFile
from lockgate.framework.store import TableHandle, TableSchema, confidential_in, value_kind_of
from lockgate.framework.types import DataField, Kind, can_widen, to_arrow
from lockgate.pushdown import FieldPath, Predicate, columns_of
from lockgate.pushdown.index import (
    Answer,
    IndexedColumn,
    damage_named,
    is_index,
    matching_rows,
    read_container,
)

Container = Mapping[str, Mapping[str, bytes | None]]

_MAX_BYTES = 64 * 2**20


class FileIndexes:
    """Reads the indexes of a table's files; up to 64 MiB of separate index files are cached."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def answer(self, predicate: Predicate, file: CandidateFile) -> Answer:
        """Return the rows of a file that may match; True if no index of the file can exclude rows.

        Raises CorruptFileError for damaged indexes.
        """
        container, name = self.container(file)
        if not container:
            return True
        columns = self._columns(predicate, file, container)
        if not columns:
            return True
        with damage_named(name):
            return matching_rows(predicate, columns, file.rows)

    def container(self, file: CandidateFile) -> tuple[Container, str]:
        """Return a file's indexes by column and kind, and the name of their source for messages."""
        if file.embedded_index is not None:
            name = f"the embedded index of {file.path}"
            return read_container(file.embedded_index, name), name
        path = index_path(file)
        return ({}, "") if path is None else (read_container(self._read(path), path), path)

    def _read(self, path: str) -> bytes:
        key = (self._table.location, path)
        return _cache.get(key) or _cache.put(key, self._table.file_system.read_bytes(path))

    def _columns(
        self, predicate: Predicate, file: CandidateFile, container: Container
    ) -> dict[FieldPath, IndexedColumn]:
        read_schema, written_schema = self._schema(file.read_schema_id), self._schema(file.schema_id)
        confidential_paths = {
            *confidential_in(read_schema).keys,
            *confidential_in(written_schema).keys,
            *confidential_in(self._table.schema).keys,
        }
        confidential_ids = {path[0] for path in confidential_paths}
        columns: dict[FieldPath, IndexedColumn] = {}
        for path in columns_of(predicate):
            field = read_schema.field(path[0]) if len(path) == 1 else None
            if field is not None and field.id not in confidential_ids:
                column = _indexed_column(field, written_schema, container)
                columns |= {} if column is None else {path: column}
        return columns

    def _schema(self, number: int | None) -> TableSchema:
        schema = self._table.schema
        return schema if number in (None, schema.id) else self._table.schema_of(int(number or 0))


def _indexed_column(field: DataField, written: TableSchema, container: Container) -> IndexedColumn | None:
    """Return the indexes of a column in a file; None if the column's type has changed incompatibly."""
    written_field = next((candidate for candidate in written.fields if candidate.id == field.id), None)
    if (
        written_field is None
        or written_field.name not in container
        or Kind.CHAR in (written_field.type.kind, field.type.kind)
    ):
        return None
    kind = value_kind_of(written_field.type)
    if kind is None or not can_widen(written_field.type, field.type):
        return None
    return IndexedColumn(kind, to_arrow(written_field.type), container[written_field.name])


def index_path(file: CandidateFile) -> str | None:
    """Return the path of a file's separate index file, None if there is none."""
    names = [name for name in file.extra_files if is_index(name)]
    return f"{file.path.rpartition('/')[0]}/{names[0]}" if names else None


class _ImmutableCache:
    """A cache of index files, which never change, since their names are never reused."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._data: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[str, str]) -> bytes | None:
        with self._lock:
            if key in self._data:
                self._data.move_to_end(key)
            return self._data.get(key)

    def put(self, key: tuple[str, str], data: bytes) -> bytes:
        with self._lock:
            if key not in self._data and len(data) <= _MAX_BYTES // 4:
                self._data[key] = data
                self._size += len(data)
            while self._size > _MAX_BYTES:
                self._size -= len(self._data.popitem(last=False)[1])
        return data


_cache = _ImmutableCache()
