"""The lineage of one warehouse: its segments, its index, and the journal of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockgate.framework.lineage.sinks import offer
from lockgate.framework.lineage.store.index import Index
from lockgate.framework.lineage.store.journal import Journal
from lockgate.framework.lineage.store.segments import Segments

if TYPE_CHECKING:
    import sqlite3

    from lockgate.framework.store.catalog import Catalog


class WarehouseLineage:
    """Lineage of a warehouse, kept and asked for; get one by `lineage_of`."""

    def __init__(self, catalog: Catalog, application: str) -> None:
        self.catalog = catalog
        self.segments = Segments(catalog.file_system, catalog.warehouse)
        self.journal = Journal(self.segments, application)
        self.journal.written = lambda records: offer(address_of(catalog), records)

    def is_there(self) -> bool:
        """Say whether anything was ever recorded in the warehouse."""
        return bool(self.journal.waiting()) or self.catalog.file_system.exists(self.segments.folder)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the index, with all that this process has recorded and all that others have written."""
        self.journal.flush()
        with Index.of(self.segments).reading() as database:
            yield database


_lock = threading.Lock()
_known: dict[str, WarehouseLineage] = {}


def address_of(catalog: Catalog) -> str:
    """Return the address of a warehouse, by which processes agree which one they mean."""
    return catalog.file_system.uri(catalog.warehouse).rstrip("/")


def lineage_of(catalog: Catalog, application: str | None = None) -> WarehouseLineage:
    """Return the lineage of the warehouse of `catalog`: one for each in this process."""
    address = address_of(catalog)
    with _lock:
        if address not in _known:
            _known[address] = WarehouseLineage(catalog, application or f"python-{os.getpid()}")
        return _known[address]


def catalog_at(address: str) -> Catalog:
    """Return the catalog of a warehouse by its address: the one that this process has opened, if any."""
    from lockgate.framework.store.catalog import Catalog

    with _lock:
        entry = _known.get(address)
    return Catalog(address) if entry is None else entry.catalog


def flush_all() -> None:
    """Write what this process has recorded in all warehouses."""
    with _lock:
        entries = list(_known.values())
    for each in entries:
        each.journal.flush()


def known_warehouses() -> dict[str, WarehouseLineage]:
    """Return the lineage of every warehouse that this process has recorded in or asked, by address."""
    with _lock:
        return dict(_known)
