"""The lineage of one warehouse: its segments, its index, and the journal of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockgate.framework.lineage.sinks import offer
from lockgate.framework.lineage.store.external_datasets import ExternalDatasets
from lockgate.framework.lineage.store.journal import Journal
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments

if TYPE_CHECKING:
    import sqlite3

    from lockgate.framework.access import Principal
    from lockgate.framework.lineage.model.lineage_records import Dataset, Record
    from lockgate.framework.store import Catalog


class WarehouseLineage:
    """Lineage of a warehouse, kept and asked for; get one by `lineage_of`."""

    def __init__(self, catalog: Catalog, application: str) -> None:
        self.catalog = catalog
        self.segments = Segments(catalog.file_system, catalog.warehouse)
        self.journal = Journal(self.segments, application)
        self.journal.written = lambda records: offer(address_of(catalog), records)
        self.outside = ExternalDatasets(self.peeking)

    def add(self, record: Record) -> None:
        """Note a record; it is in the warehouse after the next flush."""
        self.journal.add(record)
        target = () if record.shape.target is None else (record.shape.target,)
        self.outside.add((*target, *record.shape.inputs))

    def is_ready(self) -> bool:
        """Return whether anything was ever recorded in the warehouse."""
        waits = any(each.journal.waiting() for each in _at(address_of(self.catalog)))
        return waits or self.catalog.file_system.exists(self.segments.folder)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the index, with all that this process has recorded and all that others have written."""
        flush_at(address_of(self.catalog))
        with Index.of(self.segments).reading() as database:
            yield database

    @contextmanager
    def peeking(self) -> Iterator[sqlite3.Connection]:
        """Open the index as `reading` does, but write nothing: for questions that a statement waits for."""
        waiting = [line for each in _at(address_of(self.catalog)) for line in each.journal.lines()]
        index = Index.of(self.segments)
        with index.reading_with(waiting) if waiting else index.reading() as database:
            yield database


_Key = tuple[str, type, frozenset[tuple[str, str]], "Principal | None"]
"""Address of a warehouse, class and options of its file system, which may hold credentials, and who asks."""

_lock = threading.Lock()
_known: dict[_Key, WarehouseLineage] = {}


def address_of(catalog: Catalog) -> str:
    """Return the address of a warehouse, by which processes agree which one they mean."""
    return catalog.file_system.uri(catalog.warehouse).rstrip("/")


def lineage_of(catalog: Catalog, application: str | None = None) -> WarehouseLineage:
    """Return the lineage of the warehouse of `catalog`, reached as `catalog` reaches it.

    In one process there is one for each warehouse, way to its store and principal: nothing is read or written
    with the credentials of another catalog.
    """
    way = (type(catalog.file_system), frozenset(catalog.file_system_options.items()))
    key = (address_of(catalog), *way, catalog.principal)
    with _lock:
        if key not in _known:
            _known[key] = WarehouseLineage(catalog, application or f"python-{os.getpid()}")
        return _known[key]


def naming(datasets: Sequence[Dataset], principal: Principal) -> dict[str, Catalog]:
    """Return the warehouses, by address, whose records name any of these datasets.

    They are among those that this process has recorded something for, reached as `principal` reaches them.
    """
    with _lock:
        reached = [each for each in _known.values() if each.catalog.principal in (None, principal)]
    return {
        address_of(each.catalog): each.catalog
        for each in reached
        if each.is_ready() and any(map(each.outside.knows, datasets))
    }


def flush_at(address: str) -> None:
    """Write what this process has recorded in a warehouse, by whichever catalog."""
    for each in _at(address):
        each.journal.flush()


def _at(address: str) -> list[WarehouseLineage]:
    with _lock:
        return [each for (entry, *_), each in _known.items() if entry == address]
