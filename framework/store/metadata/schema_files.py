"""The schema files of a table: `schema/schema-<n>`, written once and never changed."""

from __future__ import annotations

import re

from lockgate.errors import CorruptFileError
from lockgate.framework.io import FileSystem
from lockgate.framework.store.metadata.paths import schema_folder
from lockgate.framework.store.schema.schema import TableSchema

FIRST_SCHEMA_ID = 0
_NAME = re.compile(r"schema-(\d+)")


class SchemaFiles:
    """Reads and creates the schema files of the table at `location`; parsed schemas are kept.

    A `branch` gets copies of several, the first of a table last: before that it is none, nor when that has
    gone again.
    """

    def __init__(self, file_system: FileSystem, location: str, *, branch: bool = False) -> None:
        self._file_system = file_system
        self._branch = branch
        self._folder = schema_folder(location)
        self._parsed: dict[int, TableSchema] = {}

    def path(self, schema_id: int) -> str:
        """Return the path of a schema file."""
        return f"{self._folder}/schema-{schema_id}"

    def ids(self) -> list[int]:
        """Return the ids of all schemas in order; none if there is no table."""
        names = (_NAME.fullmatch(info.name) for info in self._file_system.list(self._folder))
        ids = sorted(int(match[1]) for match in names if match)
        return [] if self._branch and ids[:1] != [FIRST_SCHEMA_ID] else ids

    def load(self, schema_id: int) -> TableSchema:
        """Return a schema; CorruptFileError if its file is missing or damaged."""
        if schema_id not in self._parsed:
            path = self.path(schema_id)
            try:
                data = self._file_system.read_bytes(path)
            except FileNotFoundError:
                raise CorruptFileError(f"{path} is missing, but the table refers to it") from None
            self._parsed[schema_id] = TableSchema.from_bytes(data, path)
        return self._parsed[schema_id]

    def latest(self) -> TableSchema | None:
        """Return the schema with the highest id; None if there is no table."""
        ids = self.ids()
        return self.load(ids[-1]) if ids else None

    def create(self, schema: TableSchema) -> None:
        """Store a schema; FileExistsError if another one took its id."""
        self._file_system.write_new(self.path(schema.id), schema.to_bytes())
        self._parsed[schema.id] = schema

    def hide(self) -> None:
        """Delete what says that there is a branch, so that the rest can go file by file."""
        self._file_system.delete(self.path(FIRST_SCHEMA_ID))
