"""Datasets outside of warehouses that records name: exported files, views, tables of other catalogs.

A statement that reads only those belongs to the warehouses whose records name them. Otherwise copies of an
exported file would be lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from lockgate.framework.lineage.model.lineage_records import Dataset

if TYPE_CHECKING:
    import sqlite3

# Other processes add names too: they are asked for again after so many seconds.
_FRESH = 60.0
_TYPES = ("file", "table", "view")


class ExternalDatasets:
    """Names of the datasets outside of one warehouse that its records name."""

    def __init__(self, reading: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._reading = reading
        self._lock = threading.Lock()
        self._names: set[tuple[str, str]] = set()
        self._read_at: float | None = None

    def add(self, datasets: Iterable[Dataset]) -> None:
        """Note what a record of this process names."""
        with self._lock:
            self._names |= {(each.namespace, each.name) for each in datasets if _is_outside(each)}

    def knows(self, dataset: Dataset) -> bool:
        """Return whether a record names the dataset; those of other processes count after a
        minute at most.
        """
        if not _is_outside(dataset):
            return False
        self._refresh()
        with self._lock:
            return (dataset.namespace, dataset.name) in self._names

    def _refresh(self) -> None:
        now = time.monotonic()
        if self._read_at is not None and now - self._read_at < _FRESH:
            return
        self._read_at = now
        with self._reading() as database:
            found = database.execute(_NAMES).fetchall()
        with self._lock:
            self._names |= set(found)


def _is_outside(dataset: Dataset) -> bool:
    return dataset.type in _TYPES and (bool(dataset.namespace) or dataset.type != "table")


_NAMES = (
    "SELECT DISTINCT namespace, name FROM dataset "
    "WHERE type IN ('file', 'table', 'view') AND (namespace != '' OR type != 'table')"
)
