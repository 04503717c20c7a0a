"""Lookup tables: a dimension cached locally, looked up by key, updated from snapshot to snapshot.

This is the library's own way in, without Spark: one process that builds and reads. The streaming join builds
in an owner process (`owner`) and reads in Spark's Python workers (`worker`), by the same parts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, LookupCacheError, LookupTimeoutError, SnapshotNotFoundError
from lockgate.lookup.cache.builder import CacheBuilder, fingerprint
from lockgate.lookup.cache.cache_key import reader_cipher
from lockgate.lookup.cache.cache_version import CacheVersion, DamagedVersionError, KeyedState, LookupResult
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.cache.version_info import CacheVersionInfo, mark_of
from lockgate.lookup.partial.choice import is_partial
from lockgate.lookup.partial.partial_cache import LocalReader, PartialCache, SnapshotName
from lockgate.lookup.remote.query_client import reader_for
from lockgate.lookup.server.partial_builder import partial_info
from lockgate.lookup.spec.cache_paths import local_path, place_text
from lockgate.lookup.spec.failures import error_from_json
from lockgate.lookup.spec.lookup_options import lookup_options, option_texts
from lockgate.lookup.spec.lookup_spec import (
    CacheStructure,
    LookupSpec,
    cache_id,
    layout_of,
    structure_of,
    warn_of_masks,
)
from lockgate.lookup.spec.planned_schema import with_nulls
from lockgate.pushdown import Predicate

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot, Table

_MOST_NAME_BYTES = 160


@dataclass(frozen=True)
class LookupTableStatus:
    """The status of a lookup table: the snapshot it uses, and the facts about that state."""

    snapshot_id: int | None
    latest_snapshot_id: int | None
    generation: CacheVersionInfo | None
    directory: str


def location_of(table: Table, spec: LookupSpec) -> str:
    """Return the place of a lookup's cache (`cache_paths`): what processes on other hosts find theirs by."""
    name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in spec.identifier)
    # A file's name has at most 255 bytes; the id alone tells caches apart.
    name = name.encode()[:_MOST_NAME_BYTES].decode(errors="ignore")
    configured = lookup_options(table.options, spec.options).cache_dir
    return place_text(configured, f"{name}-{cache_id(table, spec)}")


def directory_for(table: Table, spec: LookupSpec) -> CacheDirectory:
    """Make, or find again, the cache folder of a lookup on this host."""
    directory = CacheDirectory(local_path(location_of(table, spec)))
    directory.ensure()
    return directory


@checked_arguments
class LookupTable:
    """A dimension kept locally; made by `open_lookup`, which chooses the kind."""

    kind: ClassVar[CacheStructure]

    def __init__(self, table: Table, spec: LookupSpec) -> None:
        self.table = table = with_nulls(table)
        self.spec = spec
        self.layout = layout_of(spec, table.schema)
        self._options = lookup_options(table.options, spec.options)
        self._directory = directory_for(table, spec)
        self._version: KeyedState | None = None

    def open(self) -> None:
        """Open the cache, or load the table if there is none.

        Raises LookupTimeoutError if another process owns the cache and does not build it within
        `lookup.timeout`.
        """
        self.refresh()

    def refresh(self, snapshot_id: int | None = None) -> CacheVersionInfo | None:
        """Bring the cache to a snapshot, by default the newest, and answer from it.

        Returns the built state, None for a table without snapshots. If it fails, the old state stays in use.
        """
        if snapshot_id is not None:
            fresh = self._build_or_await(self.table.snapshot(snapshot_id))
        else:
            newest = self.table.newest_change()
            if newest is None:
                return None
            fresh = self._of_newest(newest)
        if self._version is not None:
            self._version.close()
        self._version = fresh
        return fresh.info

    def _of_newest(self, newest: Snapshot) -> CacheVersion:
        while True:
            try:
                return self._build_or_await(newest)
            except SnapshotNotFoundError:
                now = self.table.newest_change()
                if now is None or now.id == newest.id:
                    raise
                newest = now  # a writer has expired the one before

    def _build_or_await(self, snapshot: Snapshot) -> CacheVersion:
        # Another process may be the cache's owner: it builds what is wanted then.
        mark = mark_of(fingerprint(snapshot))
        deadline = time.monotonic() + self._options.timeout
        while True:
            lock = self._directory.try_lock()
            if lock is not None:
                with lock:
                    try:
                        return self._build(snapshot.id)
                    except (FileNotFoundError, LookupCacheError):
                        if self._directory.is_locked_by(lock) or time.monotonic() > deadline:
                            raise
                continue  # another process has removed the folder meanwhile
            info = self._directory.version(snapshot.id)
            if info is not None and info.fingerprint == fingerprint(snapshot):
                return self._open_version(snapshot.id)
            refusal = self._directory.take_refusal(snapshot.id, mark)
            if refusal is not None:
                raise error_from_json(refusal)
            self._directory.want(snapshot.id, mark)
            if time.monotonic() > deadline:
                raise LookupTimeoutError(
                    f"the process that owns {self._directory.path} did not build snapshot {snapshot.id} of "
                    f"{self.spec.identifier} in time (lookup.timeout)"
                )
            time.sleep(0.02)

    def _build(self, snapshot_id: int) -> CacheVersion:
        self._build_version(snapshot_id)
        try:
            fresh = self._open_version(snapshot_id)
        except DamagedVersionError:
            self._directory.clear()
            self._build_version(snapshot_id)
            fresh = self._open_version(snapshot_id)
        self._directory.sweep({snapshot_id})
        return fresh

    def _build_version(self, snapshot_id: int) -> None:
        builder = CacheBuilder(self.table, self.spec, self._directory)
        try:
            builder.build(snapshot_id)
        finally:
            builder.close()

    def _open_version(self, snapshot_id: int) -> CacheVersion:
        cipher = reader_cipher(self._directory, self.table.keys)
        return CacheVersion(self._directory, snapshot_id, self._options.cache_memory, cipher)

    def get(self, keys: pa.RecordBatch) -> LookupResult:
        """Look up a batch of keys, with the names of the dimension's join columns.

        Raises InputError for a missing column or one whose type does not widen to the dimension's, and
        LookupCacheError before `open` or if the table has no snapshot yet.
        """
        if self._version is None:
            raise LookupCacheError(
                f"the lookup table {self.spec.identifier} is not open, or has no snapshot yet: call open()"
            )
        missing = [name for name in self.spec.keys if name not in keys.schema.names]
        if missing:
            raise InputError(f"the keys lack {', '.join(missing)}; they have {', '.join(keys.schema.names)}")
        return self._version.get([keys.column(name) for name in self.spec.keys])

    def status(self) -> LookupTableStatus:
        """Return the snapshot in use and the newest one."""
        newest = self.table.newest_change()
        return LookupTableStatus(
            None if self._version is None else self._version.snapshot_id,
            None if newest is None else newest.id,
            None if self._version is None else self._version.info,
            str(self._directory.path),
        )

    def close(self) -> None:
        """Release the files; the cache stays on the disk."""
        if self._version is not None:
            self._version.close()
            self._version = None

    def __enter__(self) -> LookupTable:
        self.open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@checked_arguments
class PrimaryKeyLookupTable(LookupTable):
    """A dimension joined by its primary key: at most one row per key."""

    kind = CacheStructure.PRIMARY_KEY


class PartialLookupTable(PrimaryKeyLookupTable):
    """A dimension joined by its primary key, whose rows are read when their keys are asked for."""

    def __init__(self, table: Table, spec: LookupSpec) -> None:
        super().__init__(table, spec)
        self._cache = PartialCache(self.table, spec, self.layout, reader_for(self.table, spec, self.layout))

    def refresh(self, snapshot_id: int | None = None) -> CacheVersionInfo | None:
        """Answer from a snapshot, by default the newest; returns the facts about it.

        Returns None for a table without snapshots. If it fails, the old state stays in use.
        """
        started = time.monotonic()
        snapshot = self.table.newest_change() if snapshot_id is None else self.table.snapshot(snapshot_id)
        if snapshot is None:
            return None
        changes = self._cache.advance(snapshot)
        info = partial_info(snapshot, self._cache, changes, started)
        reader = LocalReader(self._cache, SnapshotName.of(snapshot))
        self._version = KeyedState(info, self.layout, reader)
        return info

    def close(self) -> None:
        """Forget the rows, and end a connection to a query service."""
        super().close()
        self._cache.close()


@checked_arguments
class SecondaryIndexLookupTable(LookupTable):
    """A dimension with a primary key, joined by other columns: several rows per key, kept up to date."""

    kind = CacheStructure.SECONDARY_INDEX


@checked_arguments
class NoPrimaryKeyLookupTable(LookupTable):
    """A dimension without a primary key: several rows per key, each as often as it occurs."""

    kind = CacheStructure.NO_PRIMARY_KEY


_KINDS: dict[CacheStructure, type[LookupTable]] = {
    kind.kind: kind for kind in (PrimaryKeyLookupTable, SecondaryIndexLookupTable, NoPrimaryKeyLookupTable)
}


def make_spec(
    table: Table,
    on: str | Sequence[str],
    columns: Sequence[str] | None = None,
    where: Predicate | None = None,
    options: Mapping[str, str] | None = None,
) -> LookupSpec:
    """Describe a lookup of `table`; without `columns` it answers with all but the join columns."""
    keys = (on,) if isinstance(on, str) else tuple(on)
    if columns is None:
        columns = [name for name in table.schema.field_names if name not in keys] or list(keys)
    return LookupSpec(str(table.identifier), keys, tuple(columns), where, option_texts(options or {}))


@checked_arguments
def open_lookup(
    table: Table,
    on: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    where: Predicate | None = None,
    options: Mapping[str, str] | None = None,
) -> LookupTable:
    """Make the lookup table for `table` joined by the columns `on`, and open it.

    Raises ColumnNotFoundError, UnsupportedTypeError and OptionError if the lookup is impossible.
    """
    spec = make_spec(table, on, columns, where, options)
    newest = table.newest_change()
    kind = _KINDS[structure_of(table.schema, spec.keys)]
    if is_partial(table, spec, 0 if newest is None else newest.total_record_count):
        kind = PartialLookupTable
    lookup = kind(table, spec)
    warn_of_masks(table, lookup.layout)
    lookup.open()
    return lookup
