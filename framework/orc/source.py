"""Random access to the bytes of a file, given as a path, bytes, a file object or a file system."""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    from lockgate.framework.orc.stripe import Stripe

# Streams this close together are fetched in one read, where reading is not free.
GAP = 64 * 1024


class Source(ABC):
    """Read-only random access."""

    name: str
    size: int

    @abstractmethod
    def read_at(self, offset: int, length: int) -> memoryview:
        """Exactly `length` bytes; `CorruptFileError` if the file ends before."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """The bytes of several (offset, length), in the order given."""
        return [self.read_at(offset, length) for offset, length in ranges]

    def describe_stripe(self, stripe: Stripe) -> None:  # noqa: B027 - most sources need not know
        """Learn where the streams of a stripe are, before they are read; nothing to do for most sources."""

    def arrow_file(self) -> Any:
        """What `pyarrow.orc.ORCFile` reads this from."""
        return pa.PythonFile(_Cursor(self), mode="r")

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size:
            raise CorruptFileError(
                f"{self.name} is cut off: bytes {offset} to {offset + length} are needed, it has {self.size}"
            )


class MemorySource(Source):
    """Bytes in memory, or a file mapped into it; reading copies nothing."""

    def __init__(self, data: Any, name: str, mapped: mmap.mmap | None = None) -> None:
        self.name = name
        self._view = memoryview(data).cast("B")
        self._mapped = mapped
        self.size = len(self._view)

    def read_at(self, offset: int, length: int) -> memoryview:
        self._check(offset, length)
        return self._view[offset : offset + length]

    def arrow_file(self) -> Any:
        return pa.BufferReader(pa.py_buffer(self._view))

    def close(self) -> None:
        with contextlib.suppress(BufferError):  # Tables may still use the bytes; the last one releases them.
            self._view.release()
            if self._mapped is not None:
                self._mapped.close()


class FileSource(Source):
    """A file object that can seek, or an object with `read_at(offset, length)` and `size`."""

    def __init__(self, file: Any, name: str, *, owned: bool) -> None:
        self.name = name
        self._file = file
        self._owned = owned
        self._lock = threading.Lock()
        self._positioned = callable(getattr(file, "read_at", None)) and not isinstance(file, pa.NativeFile)
        self.size = self._find_size()

    def _find_size(self) -> int:
        size = getattr(self._file, "size", None)
        if callable(size):
            size = size()
        if isinstance(size, int):
            return size
        with self._lock:
            self._file.seek(0, os.SEEK_END)
            return int(self._file.tell())

    def read_at(self, offset: int, length: int) -> memoryview:
        self._check(offset, length)
        if self._positioned:
            data = self._file.read_at(offset, length)
        else:
            with self._lock:
                self._file.seek(offset)
                data = _read_fully(self._file, length)
        view = memoryview(data).cast("B")
        if len(view) != length:
            raise CorruptFileError(f"{self.name} is cut off: {length} bytes at {offset} gave {len(view)}")
        return view

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        views: dict[int, memoryview] = {}
        for group in _groups(ranges):
            start = ranges[group[0]][0]
            end = max(ranges[index][0] + ranges[index][1] for index in group)
            data = self.read_at(start, end - start)
            for index in group:
                offset, length = ranges[index]
                views[index] = data[offset - start : offset - start + length]
        return [views[index] for index in range(len(ranges))]

    def close(self) -> None:
        if self._owned:
            self._file.close()


def _groups(ranges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Which ranges are read together, as lists of their indexes by rising offset."""
    groups: list[list[int]] = []
    end = 0
    for index in sorted(range(len(ranges)), key=lambda index: ranges[index]):
        offset, length = ranges[index]
        if groups and offset <= end + GAP:
            groups[-1].append(index)
        else:
            groups.append([index])
        end = max(end, offset + length)
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


class _Cursor:
    """A source as a file object, for Arrow."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0
        self.closed = False

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._source.size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, length: int = -1) -> bytes:
        left = max(self._source.size - self._position, 0)
        length = left if length < 0 else min(length, left)
        data = bytes(self._source.read_at(self._position, length))
        self._position += length
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def open_source(source: Any, name: str | None = None) -> Source:
    """A `Source` over a path, bytes, a seekable file, an object with `read_at` and `size`, or (file system,
    path).

    A file system is anything with `open_input(path)` (or `open_input_file`, as Arrow's have). `InputError`
    for other things.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _open_path(os.fspath(source), name)
    if isinstance(source, (bytes, bytearray, memoryview, pa.Buffer)):
        return MemorySource(source, name or "<bytes>")
    if isinstance(source, tuple) and len(source) == 2:
        return _open_in_file_system(source[0], source[1], name)
    if callable(getattr(source, "read_at", None)) or callable(getattr(source, "seek", None)):
        return FileSource(source, name or str(getattr(source, "name", "<file>")), owned=False)
    raise InputError(
        "an ORC file is read from a path, bytes, a seekable file object or (file system, path), "
        f"not a {type(source).__name__}"
    )


def _open_path(path: str | bytes, name: str | None) -> Source:
    where = name or os.fsdecode(path)
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return MemorySource(b"", where)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return MemorySource(mapped, where, mapped)


def _open_in_file_system(file_system: Any, path: Any, name: str | None) -> Source:
    for method in ("open_input", "open_input_file"):
        opener = getattr(file_system, method, None)
        if callable(opener):
            return FileSource(opener(path), name or str(path), owned=True)
    raise InputError(f"{type(file_system).__name__} has no open_input(path): it is not a file system")
