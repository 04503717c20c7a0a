"""Types of collectors of which Spark's tasks do a part while they write files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lockgate.framework.plugins.contracts import FileCollector


@dataclass(frozen=True)
class TaskColumn:
    """A column whose keys tasks collect: its name, the kind of index, and how the kind takes its values.

    `kind` and `values` are names that the connector knows as well: see `docs/twins.md`.
    """

    column: str
    kind: str
    values: str


@dataclass(frozen=True)
class TaskKeys:
    """The keys that tasks collect of each file, once for each block of so many rows."""

    columns: tuple[TaskColumn, ...]
    block_rows: int


@runtime_checkable
class TaskCollector(FileCollector, Protocol):
    """A collector that takes over what Spark's tasks have collected while they wrote a file."""

    def task_keys(self) -> TaskKeys | None:
        """Return what tasks collect, None if nothing of it can be collected by them."""

    def completing(self, keys: bytes, rows: int) -> FileCollector:
        """Return the collector for a file of so many rows, whose `columns` are those that tasks left out.

        It makes what this one would make of all columns. Raises InputError for keys that are none: an
        executor may have sent anything.
        """
