"""The interface for random access to bytes, and the source in memory: bytes or a mapped file."""

from __future__ import annotations

import contextlib
import mmap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    from lockgate.framework.orc.format.stripe import Stripe

# From this file size on, the pages of a mapped file are released after reading.
LARGE = 256 * 1024 * 1024


class Source(ABC):
    """Read-only random access; thread-safe."""

    name: str
    size: int
    # True if a read costs only the memory that it accesses.
    free = False
    closed = False

    @abstractmethod
    def read_at(self, offset: int, length: int) -> memoryview:
        """Return exactly `length` bytes; `CorruptFileError` if the file ends earlier."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return the bytes of several ranges (offset, length), in the same order."""
        return [self.read_at(offset, length) for offset, length in ranges]

    def expect_tail(self, length: int) -> None:  # noqa: B027 - reading is free for some sources
        """Prefetch the last `length` bytes of the file in one read."""

    def describe_stripe(self, stripe: Stripe) -> None:  # noqa: B027 - most sources need not know
        """Take the locations of a stripe's streams before they are read; most sources ignore it."""

    def forget(self, offset: int, length: int) -> None:  # noqa: B027 - most sources keep nothing
        """Release the memory of a range; it may be read again."""

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    def _check(self, offset: int, length: int) -> None:
        if self.closed:
            raise InputError(f"{self.name} is closed; open it again")
        if offset < 0 or length < 0 or offset + length > self.size:
            raise CorruptFileError(
                f"{self.name} is cut off: bytes {offset} to {offset + length} are needed, it has {self.size}"
            )


class MemorySource(Source):
    """Bytes in memory, or a file mapped into it; reading copies nothing."""

    free = True

    def __init__(self, data: Any, name: str, mapped: mmap.mmap | None = None) -> None:
        self.name = name
        self._view = memoryview(data).cast("B")
        self._mapped = mapped
        self.size = len(self._view)

    def read_at(self, offset: int, length: int) -> memoryview:
        self._check(offset, length)
        return self._view[offset : offset + length]

    def forget(self, offset: int, length: int) -> None:
        # Accessed pages of a mapped file count as memory of the process until they are released.
        if self._mapped is None or self.size < LARGE or not hasattr(self._mapped, "madvise"):
            return
        start = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (offset + length) // mmap.PAGESIZE * mmap.PAGESIZE
        if start < end:
            self._mapped.madvise(mmap.MADV_DONTNEED, start, end - start)

    def arrow_file(self) -> pa.BufferReader:
        """Return the bytes as a file for `pyarrow.orc.ORCFile`."""
        return pa.BufferReader(pa.py_buffer(self._view))

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(
            BufferError
        ):  # Tables may still use the bytes; the last table releases them.
            self._view.release()
            if self._mapped is not None:
                self._mapped.close()
