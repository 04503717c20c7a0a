"""The segments of a snapshot: listed in its index manifest, opened once, and read by cached ranges."""

from __future__ import annotations

import logging
from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from lockgate.errors import CorruptFileError
from lockgate.framework.io import FileSystem
from lockgate.framework.store import IndexEntry, Snapshot, TableHandle, index_path
from lockgate.pushdown.index import Segment, damage_named

T = TypeVar("T")

KIND = "lockgate-index"
_MAX_SEGMENTS = 512
_MAX_BYTES = 64 * 2**20
_log = logging.getLogger("lockgate.index")


def segment_entries(table: TableHandle, index_manifest: str | None, kind: str = KIND) -> list[IndexEntry]:
    """Return the segments, or index files of another kind, of an index manifest.

    Raises CorruptFileError if the manifest cannot be read.
    """
    if index_manifest is None:
        return []
    key = f"{kind} {table.file_system.uri(table.paths.manifest(index_manifest))}"
    kind_entries = _manifests.get(key)
    if kind_entries is None:
        entries = table.index_entries(index_manifest)
        kind_entries = _manifests.put(key, [entry for entry in entries if entry.kind == kind], 1)
    return kind_entries


def entries_of(table: TableHandle, snapshot: Snapshot | None) -> list[IndexEntry]:
    """Return the segments of a snapshot."""
    return segment_entries(table, None if snapshot is None else snapshot.index_manifest)


def opened(table: TableHandle, entry: IndexEntry) -> Segment | None:
    """Open a segment; if it is missing or damaged, warn and return None."""
    path = index_path(table, entry)
    uri = table.file_system.uri(path)
    segments = _segments.setdefault(table.file_system, ImmutableCache(_MAX_SEGMENTS))
    segment = segments.get(uri)
    if segment is not None:
        return segment
    try:
        with damage_named(path):
            return segments.put(uri, _opened(table, path, uri, entry.file_size), 1)
    except (CorruptFileError, FileNotFoundError) as error:
        report_damage(path, error)
        return None


def is_sound(segment: Segment) -> bool:
    """Return whether a segment can be read completely; warn if not."""
    try:
        with damage_named(segment.name):
            for part in segment.parts.values():
                part.content()
    except (CorruptFileError, FileNotFoundError) as error:
        report_damage(segment.name, error)
        return False
    return True


def report_damage(path: str, error: Exception) -> None:
    """Warn about an unusable segment."""
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
    """A least-recently-used cache of immutable values, limited by the sum of their sizes."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._lock = Lock()
        self._entries: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> T | None:
        """Return the cached value of a key; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return None if entry is None else entry[0]

    def put(self, key: str, value: T, size: int) -> T:
        """Cache a value, unless it is too large; return it."""
        with self._lock:
            if key not in self._entries and size <= self._max_size:
                self._entries[key] = (value, size)
                self._size += size
            while self._size > self._max_size:
                self._size -= self._entries.popitem(last=False)[1][1]
        return value


_manifests: ImmutableCache[list[IndexEntry]] = ImmutableCache(_MAX_SEGMENTS)
# Segments are cached by file system, because they read through the one that opened them, with its rights.
_segments: WeakKeyDictionary[FileSystem, ImmutableCache[Segment]] = WeakKeyDictionary()
_ranges: ImmutableCache[bytes] = ImmutableCache(_MAX_BYTES)
