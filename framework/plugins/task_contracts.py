"""Contracts of collectors whose keys Spark's tasks collect while they write files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lockgate.framework.plugins.contracts import FileCollector


@dataclass(frozen=True)
class TaskColumn:
    """A column whose keys tasks collect: its name, the kind of index, and the form of the values.

    The connector has the same names of `kind` and `values`: see `docs/twins.md`.
    """

    column: str
    kind: str
    values: str


@dataclass(frozen=True)
class TaskKeys:
    """The columns whose keys tasks collect of each file, once for each block of `block_rows` rows."""

    columns: tuple[TaskColumn, ...]
    block_rows: int


@runtime_checkable
class TaskCollector(FileCollector, Protocol):
    """A collector that accepts the keys that Spark's tasks collected while they wrote a file."""

    def task_keys(self) -> TaskKeys | None:
        """Return the columns for tasks, None if tasks can collect none of its columns."""

    def completing(self, keys: bytes, rows: int) -> FileCollector:
        """Return the collector for a file of `rows` rows, whose `columns` are those that tasks omitted.

        Its output equals that of this collector for all columns. Raises InputError for malformed keys: an
        executor may have sent anything.
        """
