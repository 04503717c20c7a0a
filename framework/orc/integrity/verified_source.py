"""Random access to bytes, checked against their tags before use."""

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
    """Another source whose bytes are checked: each read is extended to whole granules, and these must fit
    their tags.

    `ending` are the bytes behind the last stripe, which the caller has checked; they are not read again.
    Reading raises `IntegrityError` (file, bytes, stream) for anything that is not as it was written. Bytes
    are views of what the other source returned, and copied only if that copies. May be used by several
    threads.
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
        found: list[memoryview] = []
        for offset, length in ranges:
            if not length:
                found.append(memoryview(b""))
                continue
            index = bisect_right(starts, offset) - 1
            begin = offset - starts[index]
            found.append(views[index][begin : begin + length])
        return found

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
        """Return the bytes to read for a range: the granules that it touches, whole."""
        end = offset + length
        first = self.coverage.at(offset)
        last = first if first is not None and end <= first.end else self.coverage.at(end - 1)
        start = offset if first is None else first.start
        if start == len(MAGIC):
            start = 0  # The letters at the start are checked with what follows them.
        return start, end if last is None else last.end

    def _read(self, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        behind = self.coverage.end
        views = self._source.read_ranges(
            [(start, max(min(start + length, behind) - start, 0)) for start, length in spans]
        )
        return [
            view if start + length <= behind else self._with_ending(view, start, length)
            for view, (start, length) in zip(views, spans, strict=True)
        ]

    def _with_ending(self, view: memoryview, start: int, length: int) -> memoryview:
        """Return bytes that lie behind the last stripe, wholly or in part."""
        behind = self.coverage.end
        if start >= behind:
            return self._ending[start - behind : start - behind + length]
        return memoryview(bytes(view) + bytes(self._ending[: start + length - behind]))

    def _verify(self, start: int, view: memoryview) -> None:
        end, position = min(start + len(view), self.coverage.end), start
        for granule in self.coverage.granules(start, end):
            self._check_padding(start, view, position, granule.start)
            if not self.coverage.fits(granule, view[granule.start - start : granule.end - start]):
                raise self.damaged(granule)
            position = granule.end
        self._check_padding(start, view, position, end)

    def _check_padding(self, start: int, view: memoryview, position: int, end: int) -> None:
        """Check bytes outside of stripes: the letters at the start, then zeros."""
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
    """Return spans by rising start; those that overlap become one, so that no granule is checked twice."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
