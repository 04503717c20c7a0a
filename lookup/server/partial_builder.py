"""The builder of a partial cache: it reads no row, but follows which keys change."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.backends import Storage
from lockgate.lookup.cache.builder import CacheBuilder, fingerprint
from lockgate.lookup.cache.loader import Progress
from lockgate.lookup.cache.version_info import CacheVersionInfo
from lockgate.lookup.partial.choice import is_partial
from lockgate.lookup.partial.partial_cache import PartialCache
from lockgate.lookup.remote.query_client import reader_for
from lockgate.lookup.server.partial_service import PartialService
from lockgate.lookup.spec.lookup_spec import LookupSpec, layout_of

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot, Table
    from lockgate.lookup.cache.directory import CacheDirectory


def partial_info(snapshot: Snapshot, cache: PartialCache, changes: int, started: float) -> CacheVersionInfo:
    """Return the facts about a snapshot that a partial cache answers; its rows are those of the table."""
    return CacheVersionInfo(
        snapshot_id=snapshot.id,
        fingerprint=fingerprint(snapshot),
        rows=snapshot.total_record_count,
        bytes=cache.size,
        changes=changes,
        full_load=False,
        build_seconds=round(time.monotonic() - started, 4),
        built_millis=time.time_ns() // 1_000_000,
        storage=Storage.PARTIAL,
    )


class PartialBuilder:
    """Makes snapshots answerable, as `CacheBuilder` does; its caller holds the directory's lock."""

    def __init__(self, table: Table, spec: LookupSpec, directory: CacheDirectory) -> None:
        self._table = table
        self._directory = directory
        # Without keys: nothing of it is on disk, so nothing is sealed.
        self.layout = layout = layout_of(spec, table.schema)
        if not directory.has_layout(layout):
            directory.clear()
            directory.write_layout(layout)
        self._cache = PartialCache(table, spec, layout, reader_for(table, spec, layout))
        self._service = PartialService(directory, self._cache)

    def build(self, snapshot_id: int, *, serve: bool = True) -> CacheVersionInfo:
        """Make a snapshot answerable; `serve` and errors as for `CacheBuilder.build`."""
        started = time.monotonic()
        snapshot = self._table.snapshot(snapshot_id)
        changes = self._cache.advance(snapshot)
        found = None
        with contextlib.suppress(LookupCacheError):  # a damaged one is built again
            found = self._directory.version(snapshot_id)
        if found is None or found.fingerprint != fingerprint(snapshot):
            found = self._directory.publish(lambda _: partial_info(snapshot, self._cache, changes, started))
        current = self._directory.current()
        if current is None or snapshot_id > current or (serve and snapshot_id != current):
            self._directory.set_current(snapshot_id)
        return found

    def close(self) -> None:
        """Answer no longer."""
        self._service.close()
        self._cache.close()


def make_builder(
    table: Table, spec: LookupSpec, directory: CacheDirectory, progress: Progress
) -> CacheBuilder | PartialBuilder:
    """Return the builder of a lookup's cache; raises UnsupportedError where `lookup.cache` cannot be."""
    latest = table.latest_snapshot()
    rows = 0 if latest is None else latest.total_record_count
    # A whole cache that is there stays: it costs its disk already.
    if directory.primary() is None and is_partial(table, spec, rows):
        return PartialBuilder(table, spec, directory)
    return CacheBuilder(table, spec, directory, progress)
