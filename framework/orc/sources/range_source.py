"""Sources whose reads are requests: file objects, and files of remote file systems."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework.orc.sources.random_access import Source

# Ranges with smaller gaps are fetched by one read: a request takes about as long as these many bytes.
GAP = 64 * 1024

Range = tuple[int, int]  # Offset and length in bytes.


class RangeSource(Source):
    """Reads ranges, near ones by one request, and keeps the prefetched end of the file.

    It reads nothing else in advance except gaps of less than `GAP` bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._tail: tuple[int, memoryview] | None = None

    @abstractmethod
    def fetch(self, ranges: Sequence[Range]) -> list[Any]:
        """Return the bytes of ranges, which lie inside the file; must be thread-safe."""

    def expect_tail(self, length: int) -> None:
        start = max(self.size - length, 0)
        self._tail = (start, self._fetch([(start, self.size - start)])[0])

    def read_at(self, offset: int, length: int) -> memoryview:
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        views: dict[int, memoryview] = {}
        for index, (offset, length) in enumerate(ranges):
            self._check(offset, length)
            tail_view = self._read_tail(offset, length)
            if tail_view is not None:
                views[index] = tail_view
        missing = [index for index in range(len(ranges)) if index not in views]
        groups = _groups(ranges, missing)
        fetched = self._fetch([span for span, _ in groups])
        for ((start, _), members), data in zip(groups, fetched, strict=True):
            for index in members:
                offset, length = ranges[index]
                views[index] = data[offset - start : offset - start + length]
        return [views[index] for index in range(len(ranges))]

    def _read_tail(self, offset: int, length: int) -> memoryview | None:
        if not length:
            return memoryview(b"")
        if self._tail is None or offset < self._tail[0]:
            return None
        start, data = self._tail
        return data[offset - start : offset - start + length]

    def _fetch(self, ranges: Sequence[Range]) -> list[memoryview]:
        if not ranges:
            return []
        views = [memoryview(data).cast("B") for data in self.fetch(ranges)]
        for (offset, length), view in zip(ranges, views, strict=True):
            if len(view) != length:
                raise CorruptFileError(f"{self.name} is cut off: {length} bytes at {offset} gave {len(view)}")
        return views


class FileObjectSource(RangeSource):
    """A file object that can seek, or an object with `read_at(offset, length)` and `size`."""

    def __init__(self, file: Any, name: str, *, owned: bool) -> None:
        self._file = file
        self._owned = owned
        self._lock = threading.Lock()
        self._arrow = isinstance(file, pa.NativeFile)
        self._positioned = not self._arrow and callable(getattr(file, "read_at", None))
        super().__init__(name, self._find_size())

    def _find_size(self) -> int:
        size = getattr(self._file, "size", None)
        if callable(size):
            size = size()
        if isinstance(size, int):
            return size
        with self._lock:
            self._file.seek(0, os.SEEK_END)
            return int(self._file.tell())

    def fetch(self, ranges: Sequence[Range]) -> list[Any]:
        many = getattr(self._file, "read_many", None)
        if callable(many):  # a remote file that reads several ranges at once
            return list(many(ranges))
        return [self._read(offset, length) for offset, length in ranges]

    def _read(self, offset: int, length: int) -> Any:
        # Both kinds of `read_at` are thread-safe; Arrow's takes the length first.
        if self._arrow:
            return self._file.read_at(length, offset)
        if self._positioned:
            return self._file.read_at(offset, length)
        with self._lock:
            self._file.seek(offset)
            return _read_fully(self._file, length)

    def close(self) -> None:
        self.closed = True
        if self._owned:
            self._file.close()


class FsspecSource(RangeSource):
    """A path in an fsspec file system, read by ranges to avoid the read-ahead of fsspec's file objects."""

    def __init__(self, file_system: Any, path: str, name: str) -> None:
        super().__init__(name, int(file_system.info(path)["size"]))
        self._file_system = file_system
        self._path = path

    def fetch(self, ranges: Sequence[Range]) -> list[Any]:
        starts = [offset for offset, _ in ranges]
        ends = [offset + length for offset, length in ranges]
        if len(ranges) == 1:
            return [self._file_system.cat_file(self._path, start=starts[0], end=ends[0])]
        paths = [self._path] * len(ranges)
        return list(self._file_system.cat_ranges(paths, starts, ends, on_error="raise"))

    def close(self) -> None:
        self.closed = True
        self._tail = None


def _groups(ranges: Sequence[Range], indexes: Sequence[int]) -> list[tuple[Range, list[int]]]:
    """Return groups of ranges to fetch together, by ascending offset: the range to fetch, and the indexes of
    its members.
    """
    groups: list[tuple[Range, list[int]]] = []
    for index in sorted(indexes, key=lambda index: ranges[index]):
        offset, length = ranges[index]
        if groups:
            (start, covered), members = groups[-1]
            if offset <= start + covered + GAP:
                end = max(start + covered, offset + length)
                groups[-1] = ((start, end - start), [*members, index])
                continue
        groups.append(((offset, length), [index]))
    return groups


def _read_fully(file: Any, length: int) -> bytes:
    # A raw file may return fewer bytes than requested.
    data = file.read(length)
    if len(data) == length or not data:
        return bytes(data)
    parts = [data]
    missing = length - len(data)
    while missing and (part := file.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
