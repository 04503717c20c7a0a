"""Files with a cost per read, read by ranges of bytes: file objects, and objects of remote file systems."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework.orc.sources.random_access import Source

# Ranges this close together are fetched in one read: that is what a request costs in bytes, roughly.
GAP = 64 * 1024

Range = tuple[int, int]  # Offset and length in bytes.


class RangeSource(Source):
    """Reads ranges, near ones together, and keeps the end of the file once it was read.

    Nothing else is read ahead: what is fetched is what was asked for, and gaps of less than `GAP` bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self._kept: tuple[int, memoryview] | None = None

    @abstractmethod
    def fetch(self, ranges: Sequence[Range]) -> list[Any]:
        """Return the bytes of some ranges, all of them inside the file; several threads may ask at once."""

    def expect_tail(self, length: int) -> None:
        start = max(self.size - length, 0)
        self._kept = (start, self._fetch([(start, self.size - start)])[0])

    def read_at(self, offset: int, length: int) -> memoryview:
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[Range]) -> list[memoryview]:
        views: dict[int, memoryview] = {}
        for index, (offset, length) in enumerate(ranges):
            self._check(offset, length)
            held = self._held(offset, length)
            if held is not None:
                views[index] = held
        missing = [index for index in range(len(ranges)) if index not in views]
        groups = _groups(ranges, missing)
        fetched = self._fetch([span for span, _ in groups])
        for ((start, _), members), data in zip(groups, fetched, strict=True):
            for index in members:
                offset, length = ranges[index]
                views[index] = data[offset - start : offset - start + length]
        return [views[index] for index in range(len(ranges))]

    def _held(self, offset: int, length: int) -> memoryview | None:
        if not length:
            return memoryview(b"")
        if self._kept is None or offset < self._kept[0]:
            return None
        start, data = self._kept
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
        if callable(many):  # a remote file that asks for several at once
            return list(many(ranges))
        return [self._read(offset, length) for offset, length in ranges]

    def _read(self, offset: int, length: int) -> Any:
        # Of the two kinds that take a position, Arrow's wants the length first; both are asked in parallel.
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
    """A path in a file system of fsspec, read by ranges and so without the read-ahead of its file objects."""

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
        self._kept = None


def _groups(ranges: Sequence[Range], indexes: Sequence[int]) -> list[tuple[Range, list[int]]]:
    """Return which of `ranges` are fetched together: what to fetch, and the indexes it serves, by rising
    offset.
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
    # A raw file may return less than is asked for.
    data = file.read(length)
    if len(data) == length or not data:
        return bytes(data)
    parts = [data]
    missing = length - len(data)
    while missing and (part := file.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
