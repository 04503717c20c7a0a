"""The segments of a snapshot: found in its index manifest, opened once, and read by cached ranges."""

from __future__ import annotations

import logging
from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from lockgate.errors import CorruptFileError
from lockgate.framework.io import FileSystem
from lockgate.framework.store import IndexEntry, Snapshot, TableHandle, index_path
from lockgate.framework.store.manifests.index_manifest import read_index_manifest
from lockgate.pushdown.index import Segment, damage_named

T = TypeVar("T")

KIND = "lockgate-index"
_MOST_SEGMENTS = 512
_MOST_BYTES = 64 * 2**20
_log = logging.getLogger("lockgate.index")


def segment_entries(table: TableHandle, index_manifest: str | None, kind: str = KIND) -> list[IndexEntry]:
    """Return the segments, or files of another kind, that an index manifest names.

    Raises CorruptFileError if that cannot be read.
    """
    if index_manifest is None:
        return []
    key = f"{kind} {table.file_system.uri(table.paths.manifest(index_manifest))}"
    found = _manifests.get(key)
    if found is None:
        entries = read_index_manifest(table, index_manifest).entries
        found = _manifests.put(key, [entry for entry in entries if entry.kind == kind], 1)
    return found


def entries_of(table: TableHandle, snapshot: Snapshot | None) -> list[IndexEntry]:
    """Return the segments of a snapshot."""
    return segment_entries(table, None if snapshot is None else snapshot.index_manifest)


def opened(table: TableHandle, entry: IndexEntry) -> Segment | None:
    """Open a segment; None, and a warning, if it is missing or damaged: it then knows nothing."""
    path = index_path(table, entry)
    uri = table.file_system.uri(path)
    segments = _segments.setdefault(table.file_system, ImmutableCache(_MOST_SEGMENTS))
    found = segments.get(uri)
    if found is not None:
        return found
    try:
        with damage_named(path):
            return segments.put(uri, _opened(table, path, uri, entry.file_size), 1)
    except (CorruptFileError, FileNotFoundError) as error:
        report_damage(path, error)
        return None


def is_sound(segment: Segment) -> bool:
    """Return whether all of a segment can be read; a warning says why not."""
    try:
        with damage_named(segment.name):
            for part in segment.parts.values():
                part.content()
    except (CorruptFileError, FileNotFoundError) as error:
        report_damage(segment.name, error)
        return False
    return True


def report_damage(path: str, error: Exception) -> None:
    """Warn of a segment that nobody can use."""
    _log.warning(
        "scans ignore a missing or damaged segment of an index and read more files; CALL sys.merge_index "
        "removes it, and sys.build_index builds it again: %s: %s",
        path,
        error,
    )


def _opened(table: TableHandle, path: str, uri: str, size: int) -> Segment:
    def read(at: int, length: int) -> bytes:
        key = f"{uri} {at} {length}"
        data = _ranges.get(key)
        if data is None:
            with table.file_system.open_input(path) as file:
                file.seek(at)
                data = _ranges.put(key, file.read(length), length)
        return data

    return Segment(path, size, read)


class ImmutableCache(Generic[T]):
    """Things that never change, the ones asked last kept up to a sum of sizes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._found: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> T | None:
        """Return what is kept under a key; None if it is not there."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return None if found is None else found[0]

    def put(self, key: str, value: T, size: int) -> T:
        """Keep a value, unless it is too large; return it."""
        with self._lock:
            if key not in self._found and size <= self._most:
                self._found[key] = (value, size)
                self._size += size
            while self._size > self._most:
                self._size -= self._found.popitem(last=False)[1][1]
        return value


_manifests: ImmutableCache[list[IndexEntry]] = ImmutableCache(_MOST_SEGMENTS)
# A segment goes on reading through the file system that opened it, with the rights that this has.
_segments: WeakKeyDictionary[FileSystem, ImmutableCache[Segment]] = WeakKeyDictionary()
_ranges: ImmutableCache[bytes] = ImmutableCache(_MOST_BYTES)
