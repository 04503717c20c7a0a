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
    """Records and queries the lineage of a warehouse; `lineage_of` returns it."""

    def __init__(self, catalog: Catalog, application: str) -> None:
        self.catalog = catalog
        self.segments = Segments(catalog.file_system, catalog.warehouse)
        self.journal = Journal(self.segments, application)
        self.journal.written = lambda records: offer(address_of(catalog), records)
        self.outside = ExternalDatasets(self.peeking)

    def add(self, record: Record) -> None:
        """Add a record; the next flush writes it to the warehouse."""
        self.journal.add(record)
        target = () if record.shape.target is None else (record.shape.target,)
        self.outside.add((*target, *record.shape.inputs))

    def is_ready(self) -> bool:
        """Return whether the warehouse has any recorded lineage."""
        waits = any(each.journal.waiting() for each in _at(address_of(self.catalog)))
        return waits or self.catalog.file_system.exists(self.segments.folder)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the index with all records of this process and all written records of others."""
        flush_at(address_of(self.catalog))
        with Index.of(self.segments).reading() as database:
            yield database

    @contextmanager
    def peeking(self) -> Iterator[sqlite3.Connection]:
        """Open the index as `reading` does, but without writing, for checks that a statement waits for."""
        waiting = [line for each in _at(address_of(self.catalog)) for line in each.journal.lines()]
        index = Index.of(self.segments)
        with index.reading_with(waiting) if waiting else index.reading() as database:
            yield database


_Key = tuple[str, type, frozenset[tuple[str, str]], "Principal | None"]
"""Address of a warehouse, class and options of its file system, which may hold credentials, and the
principal.
"""

_lock = threading.Lock()
_lineages: dict[_Key, WarehouseLineage] = {}


def address_of(catalog: Catalog) -> str:
    """Return the address of a warehouse, which identifies it in all processes."""
    return catalog.file_system.uri(catalog.warehouse).rstrip("/")


def lineage_of(catalog: Catalog, application: str | None = None) -> WarehouseLineage:
    """Return the lineage of the warehouse of `catalog`, with the credentials of `catalog`.

    A process has one for each warehouse, file system configuration and principal, so no catalog uses the
    credentials of another one.
    """
    file_system_key = (type(catalog.file_system), frozenset(catalog.file_system_options.items()))
    key = (address_of(catalog), *file_system_key, catalog.principal)
    with _lock:
        if key not in _lineages:
            _lineages[key] = WarehouseLineage(catalog, application or f"python-{os.getpid()}")
        return _lineages[key]


def naming(datasets: Sequence[Dataset], principal: Principal) -> dict[str, Catalog]:
    """Return the warehouses, by address, whose lineage contains any of these datasets.

    Only warehouses for which this process has recorded lineage as `principal` are considered.
    """
    with _lock:
        lineages = [each for each in _lineages.values() if each.catalog.principal in (None, principal)]
    return {
        address_of(each.catalog): each.catalog
        for each in lineages
        if each.is_ready() and any(map(each.outside.knows, datasets))
    }


def flush_at(address: str) -> None:
    """Write all pending records of this process for a warehouse."""
    for each in _at(address):
        each.journal.flush()


def _at(address: str) -> list[WarehouseLineage]:
    with _lock:
        return [each for (entry, *_), each in _lineages.items() if entry == address]
