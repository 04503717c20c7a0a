"""A source that checks bytes by their tags before it returns them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from lockgate.errors import IntegrityError
from lockgate.framework.orc.format.layout import MAGIC
from lockgate.framework.orc.format.stripe import Stripe, read_stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.coverage import Coverage, Granule
from lockgate.framework.orc.integrity.header import StoredTags
from lockgate.framework.orc.integrity.mac import Mac
from lockgate.framework.orc.sources.file_source import Source


class VerifyingSource(Source):
    """Checks the bytes of another source: extends each read to complete granules, and checks their tags.


    `ending` is the bytes after the last stripe, which the caller has checked; they are not read again.
    Reading raises `IntegrityError` with file, bytes and stream for changed bytes. The result is views of what
    the other source returned, without a copy. Thread-safe.
    """

    def __init__(self, source: Source, tail: Tail, stored: StoredTags, mac: Mac, ending: memoryview) -> None:
        self._source = source
        self._tail = tail
        self._ending = ending
        self.coverage = Coverage(tail, stored, mac, lambda index: read_stripe(self, tail, index))
        self.name = source.name
        self.size = source.size
        self.free = source.free

    def read_at(self, offset: int, length: int) -> memoryview:
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        for offset, length in ranges:
            self._check(offset, length)
        spans = _merged([self._span(offset, length) for offset, length in ranges if length])
        starts = [start for start, _ in spans]
        views = self._read([(start, end - start) for start, end in spans])
        for start, view in zip(starts, views, strict=True):
            self._verify(start, view)
        checked: list[memoryview] = []
        for offset, length in ranges:
            if not length:
                checked.append(memoryview(b""))
                continue
            index = bisect_right(starts, offset) - 1
            begin = offset - starts[index]
            checked.append(views[index][begin : begin + length])
        return checked

    def describe_stripe(self, stripe: Stripe) -> None:
        self.coverage.describe(stripe)

    def close(self) -> None:
        self.closed = True
        self._ending.release()
        self._source.close()

    def damaged(self, granule: Granule) -> IntegrityError:
        """Return the error for a granule that does not fit its tag."""
        return IntegrityError(
            f"{self.name} is not as it was written: bytes {granule.start} to {granule.end} "
            f"({self.coverage.location(granule)}) do not fit their tag. The file was damaged or changed; "
            "restore it from a copy"
        )

    def _span(self, offset: int, length: int) -> tuple[int, int]:
        """Return the range of the complete granules that a range touches."""
        end = offset + length
        first = self.coverage.at(offset)
        last = first if first is not None and end <= first.end else self.coverage.at(end - 1)
        start = offset if first is None else first.start
        if start == len(MAGIC):
            start = 0  # The magic letters are checked with the bytes after them.
        return start, end if last is None else last.end

    def _read(self, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        stripes_end = self.coverage.end
        views = self._source.read_ranges(
            [(start, max(min(start + length, stripes_end) - start, 0)) for start, length in spans]
        )
        return [
            view if start + length <= stripes_end else self._with_ending(view, start, length)
            for view, (start, length) in zip(views, spans, strict=True)
        ]

    def _with_ending(self, view: memoryview, start: int, length: int) -> memoryview:
        """Return a range that reaches beyond the last stripe."""
        stripes_end = self.coverage.end
        if start >= stripes_end:
            return self._ending[start - stripes_end : start - stripes_end + length]
        return memoryview(bytes(view) + bytes(self._ending[: start + length - stripes_end]))

    def _verify(self, start: int, view: memoryview) -> None:
        end, position = min(start + len(view), self.coverage.end), start
        for granule in self.coverage.granules(start, end):
            self._check_padding(start, view, position, granule.start)
            if not self.coverage.fits(granule, view[granule.start - start : granule.end - start]):
                raise self.damaged(granule)
            position = granule.end
        self._check_padding(start, view, position, end)

    def _check_padding(self, start: int, view: memoryview, position: int, end: int) -> None:
        """Check bytes outside of stripes: the magic letters at the start, and zeros elsewhere."""
        if position >= end:
            return
        stored = bytes(view[position - start : end - start])
        expected = (MAGIC + bytes(end))[position:end] if position < len(MAGIC) else bytes(end - position)
        if stored != expected:
            raise IntegrityError(
                f"{self.name} is not as it was written: bytes {position} to {end}, outside of stripes, "
                "are not zeros; restore it from a copy"
            )


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans by ascending start; overlapping ones are merged, so that no granule is checked twice."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
