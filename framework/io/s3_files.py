"""Files of an S3-compatible store: read by ranges, and written in parts."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

# The first request reads the end of an object, which covers the footers of most data files.
TAIL = 64 * 1024
# S3 accepts up to 10,000 parts of 5 MiB to 5 GiB: later parts are larger, so that 5 TiB fit.
PART = 16 * 2**20
_PARTS_OF_ONE_SIZE = 1000
_PARALLEL = 8

Fetch = Callable[[str], tuple[bytes, int]]


class S3Input(io.RawIOBase):
    """Random access to an object: each read is one request, except for the end, which is cached.

    `fetch` takes an HTTP range (`bytes=-65536`) and returns the bytes and the size of the object.
    """

    def __init__(self, fetch: Fetch) -> None:
        super().__init__()
        self._fetch = fetch
        self._tail, self.size = fetch(f"bytes=-{TAIL}")
        self._position = 0

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
        """Read from the position until the buffer is full or the object ends."""
        data = self.read_at(self._position, min(len(buffer), max(self.size - self._position, 0)))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Read from the position to the end, in one request."""
        data = self.read_at(self._position, max(self.size - self._position, 0))
        self._position += len(data)
        return data

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes at `offset`; thread-safe."""
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        tail_start = self.size - len(self._tail)
        if offset >= tail_start:
            return self._tail[offset - tail_start : offset - tail_start + length]
        return self._fetch(f"bytes={offset}-{offset + length - 1}")[0]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of ranges (offset, length), read in parallel."""
        if len(ranges) < 2:
            return [self.read_at(*each) for each in ranges]
        with ThreadPoolExecutor(min(_PARALLEL, len(ranges))) as pool:
            return list(pool.map(lambda each: self.read_at(*each), ranges))


class Uploads(Protocol):
    """The requests of a writer, which `S3FileSystem` implements."""

    def write_new(self, path: str, data: bytes) -> None:
        """Create a small object."""

    def begin(self, path: str) -> str:
        """Begin an upload in parts and return its id."""

    def put_part(self, path: str, upload: str, number: int, data: bytes) -> dict[str, Any]:
        """Send a part and return its entry for `complete`."""

    def complete(self, path: str, upload: str, parts: Sequence[dict[str, Any]]) -> None:
        """Combine the parts into the object; FileExistsError if it exists."""

    def give_up(self, path: str, upload: str) -> None:
        """Discard the parts."""


class S3Output(io.RawIOBase):
    """A new object, which is invisible before `complete`; `give_up` discards it."""

    def __init__(self, uploads: Uploads, path: str, part_size: int = PART) -> None:
        super().__init__()
        self._uploads = uploads
        self._path = path
        self._part_size = part_size
        self._buffer = bytearray()
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Buffer bytes, and send each full part."""
        view = memoryview(data).cast("B")
        self._buffer += view
        while len(self._buffer) >= (size := self._next_size()):
            self._send(size)
        return len(view)

    def _next_size(self) -> int:
        return self._part_size << (len(self._parts) // _PARTS_OF_ONE_SIZE)

    def _send(self, size: int) -> None:
        if self._upload is None:
            self._upload = self._uploads.begin(self._path)
        data = bytes(self._buffer[:size])
        number = len(self._parts) + 1
        self._parts.append(self._uploads.put_part(self._path, self._upload, number, data))
        del self._buffer[:size]

    def complete(self) -> None:
        """Make the object visible; FileExistsError if the name exists."""
        if self._upload is None:
            self._uploads.write_new(self._path, bytes(self._buffer))
            return
        if self._buffer:
            self._send(len(self._buffer))
        self._uploads.complete(self._path, self._upload, self._parts)
        self._upload = None

    def give_up(self) -> None:
        """Discard the sent parts."""
        if self._upload is not None:
            upload, self._upload = self._upload, None
            self._uploads.give_up(self._path, upload)
