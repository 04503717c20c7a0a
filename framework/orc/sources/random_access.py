"""Random access to bytes, and its kind without cost: bytes in memory or a file mapped into it."""

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

# From this size on, the parts of a mapped file that were read are let go.
LARGE = 256 * 1024 * 1024


class Source(ABC):
    """Read-only random access, by several threads at once."""

    name: str
    size: int
    # Whether a read costs nothing but the memory that it touches.
    free = False
    closed = False

    @abstractmethod
    def read_at(self, offset: int, length: int) -> memoryview:
        """Return exactly `length` bytes; `CorruptFileError` if the file ends before."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Return the bytes of several (offset, length), in the order given."""
        return [self.read_at(offset, length) for offset, length in ranges]

    def expect_tail(self, length: int) -> None:  # noqa: B027 - reading is free for some sources
        """Make ready for reading the last `length` bytes (or all there are), in one read."""

    def describe_stripe(self, stripe: Stripe) -> None:  # noqa: B027 - most sources need not know
        """Learn where the streams of a stripe are, before they are read; nothing to do for most sources."""

    def forget(self, offset: int, length: int) -> None:  # noqa: B027 - most sources keep nothing
        """Hold no memory any more for a range that was read; it may be read again."""

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
        # The pages of a mapped file count as the process's own memory for as long as they stay mapped.
        if self._mapped is None or self.size < LARGE or not hasattr(self._mapped, "madvise"):
            return
        start = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (offset + length) // mmap.PAGESIZE * mmap.PAGESIZE
        if start < end:
            self._mapped.madvise(mmap.MADV_DONTNEED, start, end - start)

    def arrow_file(self) -> pa.BufferReader:
        """Return what `pyarrow.orc.ORCFile` reads this from."""
        return pa.BufferReader(pa.py_buffer(self._view))

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(BufferError):  # Tables may still use the bytes; the last one releases them.
            self._view.release()
            if self._mapped is not None:
                self._mapped.close()
