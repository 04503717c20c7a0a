"""File indexes of data files, in manifest entries or next to the files, by the column names of their
schema.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from lockgate.framework.plugins import CandidateFile
from lockgate.framework.store import (
    TableHandle,
    TableSchema,
    can_widen,
    confidential_in,
    value_kind_of,
)
from lockgate.framework.store.codec.foreign_file_index import is_index
from lockgate.framework.types import DataField, Kind, to_arrow
from lockgate.pushdown import FieldPath, Predicate, columns_of
from lockgate.pushdown.index import Answer, IndexedColumn, damage_named, matching_rows, read_container

Container = Mapping[str, Mapping[str, bytes | None]]

_MOST_BYTES = 64 * 2**20


class FileIndexes:
    """Asks the indexes of a table's files; up to 64 MiB of those next to files are kept in memory."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def answer(self, predicate: Predicate, file: CandidateFile) -> Answer:
        """Return which rows of a file may match; True if it has no index that can tell.

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
        """Return a file's indexes by column and kind, none if it has none, and what they are in."""
        if file.embedded_index is not None:
            name = f"the embedded index of {file.path}"
            return read_container(file.embedded_index, name), name
        path = index_path(file)
        return ({}, "") if path is None else (read_container(self._read(path), path), path)

    def _read(self, path: str) -> bytes:
        key = (self._table.location, path)
        return _kept.get(key) or _kept.put(key, self._table.file_system.read_bytes(path))

    def _columns(
        self, predicate: Predicate, file: CandidateFile, container: Container
    ) -> dict[FieldPath, IndexedColumn]:
        now, written = self._schema(file.read_schema_id), self._schema(file.schema_id)
        secret = {
            *confidential_in(now).keys,
            *confidential_in(written).keys,
            *confidential_in(self._table.schema).keys,
        }
        hidden = {path[0] for path in secret}
        found: dict[FieldPath, IndexedColumn] = {}
        for path in columns_of(predicate):
            field = now.field(path[0]) if len(path) == 1 else None
            if field is not None and field.id not in hidden:
                column = _indexed(field, written, container)
                found |= {} if column is None else {path: column}
        return found

    def _schema(self, number: int | None) -> TableSchema:
        schema = self._table.schema
        return schema if number in (None, schema.id) else self._table.schema_of(int(number or 0))


def _indexed(field: DataField, written: TableSchema, container: Container) -> IndexedColumn | None:
    """Return the indexes of a column in a file, where its values have stayed what they were written as."""
    stored = next((each for each in written.fields if each.id == field.id), None)
    if stored is None or stored.name not in container or Kind.CHAR in (stored.type.kind, field.type.kind):
        return None
    kind = value_kind_of(stored.type)
    if kind is None or not can_widen(stored.type, field.type):
        return None
    return IndexedColumn(kind, to_arrow(stored.type), container[stored.name])


def index_path(file: CandidateFile) -> str | None:
    """Return the path of the index next to a file, None if there is none."""
    names = [name for name in file.extra_files if is_index(name)]
    return f"{file.path.rpartition('/')[0]}/{names[0]}" if names else None


class _ImmutableCache:
    """Index files that were read; their names are never used again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[str, str]) -> bytes | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: tuple[str, str], data: bytes) -> bytes:
        with self._lock:
            if key not in self._found and len(data) <= _MOST_BYTES // 4:
                self._found[key] = data
                self._size += len(data)
            while self._size > _MOST_BYTES:
                self._size -= len(self._found.popitem(last=False)[1])
        return data


_kept = _ImmutableCache()
