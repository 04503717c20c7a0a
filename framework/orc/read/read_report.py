"""Reports of reads: the stripes, row groups and bytes read, and the reasons for skipping others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.sources.random_access import Source

if TYPE_CHECKING:
    from lockgate.framework.orc.format.stripe import Stripe


@dataclass(frozen=True)
class ReadReport:
    """The counts of one read, up to now.

        A stripe without row index counts as one row group. `bytes_read` counts stored bytes of data, indexes,
    dictionaries and Bloom filters, without the tail. `dictionary_skips` counts stripes skipped because their
    dictionaries have no match, `bloom_skips` row groups that only a Bloom filter excluded.
    """

    stripes_total: int
    stripes_read: int = 0
    row_groups_total: int = 0
    row_groups_read: int = 0
    bytes_read: int = 0
    dictionary_skips: int = 0
    bloom_skips: int = 0


class ReadCounter:
    """Thread-safe counters of one read."""

    def __init__(self, tail: Tail) -> None:
        self._groups = [group_count(tail, stripe.number_of_rows) for stripe in tail.footer.stripes]
        self._report = ReadReport(tail.stripes, row_groups_total=sum(self._groups))
        self._lock = threading.Lock()

    def add(self, **counts: int) -> None:
        """Add to counts of the report, by their names."""
        with self._lock:
            sums = {name: getattr(self._report, name) + count for name, count in counts.items()}
            self._report = replace(self._report, **sums)

    def add_stripe(self, index: int, runs: Sequence[range] | None = None) -> None:
        """Count stripe `index` as read: the row groups of `runs`, or all of them."""
        read = self._groups[index] if runs is None else sum(map(len, runs))
        self.add(stripes_read=1, row_groups_read=read)

    def report(self) -> ReadReport:
        """Return the counts up to now."""
        return self._report


class CountedSource(Source):
    """A source that counts the bytes read; closing it leaves the underlying source open."""

    def __init__(self, source: Source, counter: ReadCounter) -> None:
        self.name = source.name
        self.size = source.size
        self.free = source.free
        self._source = source
        self._counter = counter

    def read_at(self, offset: int, length: int) -> memoryview:
        self._counter.add(bytes_read=length)
        return self._source.read_at(offset, length)

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        self._counter.add(bytes_read=sum(length for _, length in ranges))
        return self._source.read_ranges(ranges)

    def expect_tail(self, length: int) -> None:
        self._source.expect_tail(length)

    def describe_stripe(self, stripe: Stripe) -> None:
        self._source.describe_stripe(stripe)

    def close(self) -> None:
        """Do nothing."""


def group_count(tail: Tail, rows: int) -> int:
    """Return the number of row groups of a stripe with `rows` rows."""
    stride = tail.footer.row_index_stride
    return -(-rows // stride) if stride else 1
