"""Remote files with ranges cached on a local disk (`fs.lockgate.cache.folder`)."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, cast

from lockgate.errors import OptionError
from lockgate.framework.io.cache.range_cache import BLOCK, RangeCache
from lockgate.framework.io.filesystem import FileInfo, FileSystem
from lockgate.framework.io.limits import most_metadata, too_large

PREFIX = "fs.lockgate.cache."
_SPARK_PREFIX = "spark.hadoop."
_DEFAULT_SIZE = "10 gb"
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}

# Only files with a UUID in the name never change. Snapshots, hints, tags, schemas and consumers can.
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NEVER_CHANGES = re.compile(
    rf"(?:data|changelog|manifest|manifest-list|index|index-manifest)-{_UUID}-\d+(?:\..+)?"
)
"""Names of table files that are written once and never changed."""


def split_options(options: Mapping[str, str]) -> tuple[RangeCache | None, dict[str, str]]:
    """Return the cache that the options configure, None without one, and the remaining options.

    Raises OptionError for a malformed option, and UnsafePathError for a folder that may be another user's.
    """
    cache_options: dict[str, str] = {}
    others: dict[str, str] = {}
    for key, value in options.items():
        key_without_prefix = key.removeprefix(_SPARK_PREFIX)
        (cache_options if key_without_prefix.startswith(PREFIX) else others)[
            key_without_prefix if key_without_prefix.startswith(PREFIX) else key
        ] = str(value)
    folder, size = (cache_options.pop(PREFIX + name, "").strip() for name in ("folder", "size"))
    if cache_options:
        raise OptionError(
            f"{', '.join(sorted(cache_options))}: the cache has the options {PREFIX}folder and {PREFIX}size"
        )
    if not folder:
        if size:
            raise OptionError(f"{PREFIX}size is set, {PREFIX}folder is not: set both or none")
        return None, others
    if not Path(folder).is_absolute():
        raise OptionError(f"{PREFIX}folder is {folder!r}: give an absolute path on this machine")
    return RangeCache(Path(folder), _bytes(size or _DEFAULT_SIZE)), others


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)b?", text.lower())
    size = int(match[1]) << _SHIFTS[match[2]] if match else 0
    if not size:
        raise OptionError(f"{PREFIX}size is {text!r}: give a size such as '10 gb'")
    return size


class CachedFileSystem:
    """A remote file system that caches ranges of files that never change; see `FileSystem`."""

    def __init__(self, inner: FileSystem, cache: RangeCache) -> None:
        self._inner = inner
        self._cache = cache

    def __repr__(self) -> str:
        return f"CachedFileSystem({self._inner!r}, {str(self._cache.folder)!r})"

    def read_bytes(self, path: str) -> bytes:
        if not _never_changes(path):
            return self._inner.read_bytes(path)
        with self.open_input(path) as file:
            size = file.seek(0, io.SEEK_END)
            if size > most_metadata():
                raise too_large(path, most_metadata())
            file.seek(0)
            return file.read()

    def open_input(self, path: str) -> BinaryIO:
        """Open a file; a file that never changes is opened remotely only if a block is missing."""
        if not _never_changes(path):
            return self._inner.open_input(path)
        return cast("BinaryIO", CachedInput(self._inner, self._cache, path))

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._inner.create(path)

    def write_new(self, path: str, data: bytes) -> None:
        self._inner.write_new(path, data)

    def write_atomic(self, path: str, data: bytes) -> None:
        self._inner.write_atomic(path, data)

    def list(self, path: str) -> list[FileInfo]:
        return self._inner.list(path)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def size(self, path: str) -> int:
        return self._inner.size(path)

    def make_directory(self, path: str) -> None:
        self._inner.make_directory(path)

    def delete(self, path: str) -> bool:
        return self._inner.delete(path)

    def delete_tree(self, path: str) -> None:
        self._inner.delete_tree(path)

    def uri(self, path: str) -> str:
        return self._inner.uri(path)


class CachedInput(io.RawIOBase):
    """Random access to a file that never changes, through cached blocks."""

    def __init__(self, files: FileSystem, cache: RangeCache, path: str) -> None:
        super().__init__()
        self._files, self._cache, self._path = files, cache, path
        self._address = files.uri(path)
        self._lock = threading.Lock()
        self._remote: Any = None
        self._last: tuple[int, bytes] | None = None
        self._position = 0
        size = cache.size(self._address)
        if size is None:
            size = self._open_remote().seek(0, io.SEEK_END)
            cache.note_size(self._address, size)
        self.size = size

    def _open_remote(self) -> Any:
        if self._remote is None:
            self._remote = self._files.open_input(self._path)
        return self._remote

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next `read`."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next `read`, and return it."""
        base: int = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read from the position until the buffer is full or the file ends."""
        data = self.read_at(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Read from the position to the end."""
        data = self.read_at(self._position, max(self.size - self._position, 0))
        self._position += len(data)
        return data

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes at `offset`; thread-safe."""
        return self.read_many([(offset, length)])[0]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges (offset, length)."""
        spans = [(offset, max(min(length, self.size - offset), 0)) for offset, length in ranges]
        needed_blocks = {block for offset, length in spans if length for block in _blocks(offset, length)}
        last = self._last
        last_block = {last[0]: last[1]} if last is not None and last[0] in needed_blocks else {}
        blocks = last_block | self._cache.blocks(
            self._address, self.size, needed_blocks - last_block.keys(), self._fetch
        )
        if blocks:
            self._last = max(blocks.items(), key=lambda each: each[0])
        return [_cut(blocks, offset, length) for offset, length in spans]

    def _fetch(self, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        with self._lock:
            remote = self._open_remote()
            if hasattr(remote, "read_many"):
                return cast("list[bytes]", remote.read_many(ranges))
            chunks = []
            for offset, length in ranges:
                remote.seek(offset)
                chunks.append(remote.read(length))
            return chunks

    def close(self) -> None:
        """Close the remote file too, if it was opened."""
        if self._remote is not None:
            self._remote.close()
        super().close()


def _never_changes(path: str) -> bool:
    return NEVER_CHANGES.fullmatch(path.rpartition("/")[2]) is not None


def _blocks(offset: int, length: int) -> range:
    return range(offset // BLOCK, (offset + length - 1) // BLOCK + 1)


def _cut(blocks: Mapping[int, bytes], offset: int, length: int) -> bytes:
    if not length:
        return b""
    numbers = _blocks(offset, length)
    data = blocks[numbers[0]] if len(numbers) == 1 else b"".join(blocks[number] for number in numbers)
    start = offset - numbers[0] * BLOCK
    return data[start : start + length]
