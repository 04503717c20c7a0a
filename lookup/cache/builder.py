"""Building a cache at a snapshot: by a full load of the table, or by following its changes.

The database applies a step atomically, together with the number of its snapshot, so a process killed at any
moment leaves a whole state. Readers see versions: hard-linked copies, published complete.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import LookupCacheError, SnapshotNotFoundError
from lockgate.framework.store import Snapshot, visibility
from lockgate.lookup.cache.backends import Storage, Store, is_passing, open_store, storage_of
from lockgate.lookup.cache.budget import DiskBudget
from lockgate.lookup.cache.cache_key import writer_cipher
from lockgate.lookup.cache.directory import CacheDirectory, disk_usage
from lockgate.lookup.cache.loader import Loader, Progress
from lockgate.lookup.cache.steps import CacheStep, make_step
from lockgate.lookup.cache.version_info import CacheVersionInfo, mark_of
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec, cached_layout
from lockgate.lookup.spec.row_selection import RowSelection, RowSelector, check_masks

if TYPE_CHECKING:
    from lockgate.framework.store import Table

# Rows are encoded in slices of this many, which bounds the memory of a full load.
_SLICE_ROWS = 1 << 16
# Layers of changes may make a cache so much larger than its rows are until they are merged.
_LAYERS_SHARE = 1.25


class _MustReload(Exception):  # noqa: N818 - a turn of events inside this module, not an error
    """The changes up to the wanted snapshot cannot be followed; the message says why."""


@dataclass(frozen=True)
class _Cursor:
    """The position of the database."""

    snapshot_id: int
    fingerprint: str
    rows: int
    chosen: str = ""

    def meta(self) -> dict[str, Any]:
        return asdict(self)


def fingerprint(snapshot: Snapshot) -> str:
    """Return what distinguishes a snapshot from another with the same number after a rollback."""
    return snapshot.delta_manifest_list


def check_mark(table: Table, snapshot_id: int, mark: int | None) -> Snapshot:
    """Return a snapshot that was chosen before, by its number and its mark (None or 0: not known).

    Raises SnapshotNotFoundError if it is gone, also where another one has its number since.
    """
    snapshot = table.snapshot(snapshot_id)
    if mark and mark_of(fingerprint(snapshot)) != mark:
        raise SnapshotNotFoundError(
            f"snapshot {snapshot_id} of {table.identifier} was rolled back, and another has its number since"
        )
    return snapshot


def is_rolled_back(table: Table, info: CacheVersionInfo) -> bool:
    """Return whether the cached snapshot was rolled back; an expired one was not."""
    try:
        return fingerprint(table.snapshot(info.snapshot_id)) != info.fingerprint
    except SnapshotNotFoundError:
        latest = table.latest_snapshot()
        return latest is None or latest.id < info.snapshot_id


class CacheBuilder:
    """Builds the versions of one cache; its caller holds the directory's lock.

    During a full load `progress` gets the rows done and the rows expected (`loading.Loader`).
    """

    def __init__(
        self, table: Table, spec: LookupSpec, directory: CacheDirectory, progress: Progress | None = None
    ) -> None:
        self.table = table
        self.spec = spec
        self.directory = directory
        layout = cached_layout(table, spec)
        self._masked = frozenset(visibility(table).missing_keys(layout.read_columns))
        self._options = lookup_options(table.options, spec.options)
        self._selector = RowSelector(table, spec)
        self._selection = RowSelection(spec.where)
        self._store: Store | None = None
        if not directory.has_layout(layout):
            directory.clear()
            directory.write_layout(layout)
        self._cipher = writer_cipher(directory, layout, table.keys) if layout.keys else None
        self.layout: CacheLayout = layout.with_cipher(self._cipher)
        self._budget = DiskBudget(directory.path.parent, self._options.cache_disk)
        self._loader = Loader(
            self.layout, self._options, self._budget, self._cipher, progress or (lambda done, expected: None)
        )
        directory.sweep_primaries()

    def close(self) -> None:
        """Release the database."""
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- one snapshot ------------------------------------------------------------------------------

    def build(self, snapshot_id: int, *, serve: bool = True) -> CacheVersionInfo:
        """Make the state at a snapshot readable, if needed.

        With `serve` it becomes the current one even if a newer one was, as after a rollback; without, only if
        it is newer. Raises SnapshotNotFoundError if the snapshot is gone, LookupCacheError if there is not
        enough disk, and KeyMissingError if a column turns out to be masked whose key seemed to be held.
        """
        snapshot = self.table.snapshot(snapshot_id)
        version = None
        with contextlib.suppress(LookupCacheError):  # a damaged one is built again
            version = self.directory.version(snapshot_id)
        if version is None or version.fingerprint != fingerprint(snapshot):
            self._selection = self._selector.at(snapshot)
            version = self._make(snapshot, serve)
        current = self.directory.current()
        if current is None or snapshot_id > current or (serve and snapshot_id != current):
            self.directory.set_current(snapshot_id)
        return version

    def _make(self, snapshot: Snapshot, serve: bool) -> CacheVersionInfo:
        started = time.monotonic()
        store, cursor = self._open()
        if store is not None and cursor is not None:
            try:
                changes = self._follow(store, cursor, snapshot)
            except _MustReload:
                pass
            else:
                return self._publish(store, snapshot, started, changes, full_load=False)
        return self._load(
            snapshot, started, replace=cursor is None or serve or snapshot.id > cursor.snapshot_id
        )

    def _open(self) -> tuple[Store | None, _Cursor | None]:
        path = self.directory.primary()
        if self._store is None and path is not None:
            try:
                self._store = open_store(path, storage_of(path), self._cipher, self._budget)
                meta = self._store.meta()
                return self._store, None if meta is None else _Cursor(**meta)
            except (LookupCacheError, ValueError, TypeError, KeyError) as error:
                if is_passing(error):  # such as a full disk, on which reading the table again does not help
                    raise
                # A database that cannot be opened has no use: the table is read again.
                self.close()
                shutil.rmtree(path, ignore_errors=True)
        meta = self._store.meta() if self._store is not None else None
        return self._store, None if meta is None else _Cursor(**meta)

    def _publish(
        self, store: Store, snapshot: Snapshot, started: float, changes: int, *, full_load: bool
    ) -> CacheVersionInfo:
        meta = store.meta()
        assert meta is not None

        def make(folder: Path) -> CacheVersionInfo:
            store.checkpoint(folder / "db")
            return CacheVersionInfo(
                snapshot_id=snapshot.id,
                fingerprint=fingerprint(snapshot),
                rows=meta["rows"],
                bytes=disk_usage(folder),
                changes=changes,
                full_load=full_load,
                build_seconds=round(time.monotonic() - started, 4),
                built_millis=time.time_ns() // 1_000_000,
                storage=store.storage,
            )

        return self.directory.publish(make)

    # --- following changes ---------------------------------------------------------------------------

    def _follow(self, store: Store, cursor: _Cursor, target: Snapshot) -> int:
        if target.id < cursor.snapshot_id:
            raise _MustReload("the wanted snapshot is older than the cache")
        if target.id - cursor.snapshot_id > self._options.full_load_threshold:
            raise _MustReload("the cache is too many snapshots behind")
        try:
            mark = fingerprint(self.table.snapshot(cursor.snapshot_id))
        except SnapshotNotFoundError:
            # After a rollback another snapshot may have had its number and expired too.
            raise _MustReload("the snapshot of the cache has expired") from None
        if mark != cursor.fingerprint:
            raise _MustReload("the snapshot of the cache was rolled back")
        if cursor.chosen != self._selection.mark:
            raise _MustReload("other partitions are chosen now")
        written = 0
        try:
            steps = self.table.changes(cursor.snapshot_id, target.id, columns=list(self.layout.read_columns))
            for change in steps:
                if change.needs_reload:
                    raise _MustReload(f"the rows of snapshot {change.snapshot_id} do not tell all")
                step = self._step(store, change.rows)
                written += len(step.keys)
                mark = fingerprint(self.table.snapshot(change.snapshot_id))
                cursor = _Cursor(change.snapshot_id, mark, cursor.rows + step.row_delta, self._selection.mark)
                self._ingest(store, step, cursor)
        except SnapshotNotFoundError:
            raise _MustReload("a snapshot in between has expired") from None
        if self._is_outgrown(store):
            raise _MustReload("the cache has become too large for mapped files")
        if cursor.snapshot_id != target.id:
            store.ingest([], _Cursor(target.id, fingerprint(target), cursor.rows, cursor.chosen).meta())
        return written

    def _is_outgrown(self, store: Store) -> bool:
        if store.storage is not Storage.MEMORY or self._options.cache != "auto":
            return False
        return store.size() > _LAYERS_SHARE * self._options.memory_max

    def _step(self, store: Store, rows: pa.Table) -> CacheStep:
        check_masks(rows.schema, self._masked, self.spec.identifier)
        kinds = rows.column("_VALUE_KIND")
        matching = self._matching(rows)
        return make_step(self.layout, store, self._batch(self._selector.shown(rows)), kinds, matching)

    def _ingest(self, store: Store, step: CacheStep, cursor: _Cursor) -> None:
        coming = sum(map(len, step.keys)) + sum(map(len, filter(None, step.values)))
        with self._budget.writing(coming):
            files = store.step_files(step.keys, step.values) if step.keys else []
            store.ingest(files, cursor.meta())

    def _matching(self, rows: pa.Table) -> pa.Array | None:
        # A mask of the rows that the cache holds; None: all.
        return self._selector.matching(rows, self._selection)

    def _batch(self, rows: pa.Table) -> pa.RecordBatch:
        chosen = rows.select(list(self.layout.read_columns)).combine_chunks()
        batches = chosen.to_batches()
        if len(batches) == 1:
            return batches[0]
        return pa.RecordBatch.from_pylist([], schema=chosen.schema)

    # --- reading the table whole -----------------------------------------------------------------------

    def _load(self, snapshot: Snapshot, started: float, *, replace: bool) -> CacheVersionInfo:
        folder = self.directory.new_primary()
        try:
            loaded, rows = self._loader.load(
                folder,
                self._read(snapshot.id),
                snapshot.total_record_count,
                lambda rows: _Cursor(snapshot.id, fingerprint(snapshot), rows, self._selection.mark).meta(),
            )
            if not replace:
                info = self._publish(loaded, snapshot, started, rows, full_load=True)
                loaded.close()
                shutil.rmtree(folder, ignore_errors=True)
                return info
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.close()
        self.directory.set_primary(folder)
        self.directory.sweep_primaries()
        self._store = loaded
        return self._publish(loaded, snapshot, started, rows, full_load=True)

    def _read(self, snapshot_id: int) -> Iterator[pa.RecordBatch]:
        names = list(self.layout.read_columns)
        # The cache was laid out by the table's schema, which may be newer than the snapshot's.
        for batch in self._selector.read(self._selection, names, snapshot_id):
            check_masks(batch.schema, self._masked, self.spec.identifier)
            rows = pa.Table.from_batches([batch]).select(names)
            del batch
            kept = self._matching(rows)
            if kept is not None:
                rows = rows.filter(kept)
            rows = self._selector.shown(rows)
            slices = rows.to_batches(max_chunksize=_SLICE_ROWS)
            del rows
            while slices:
                yield slices.pop(0)
            # Arrow's allocator would keep the memory of one part while numpy works on it.
            pa.default_memory_pool().release_unused()
