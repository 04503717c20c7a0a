"""The row groups of a stripe that may hold wanted rows, and images of just those."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import MAGIC
from lockgate.framework.orc.format.stripe import Stream, Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.read.column_groups import ColumnGroups
from lockgate.framework.orc.read.image import Projection, ending, stripe_footer
from lockgate.framework.orc.read.predicate import RowFilter
from lockgate.framework.orc.read.read_report import ReadCounter, group_count
from lockgate.framework.orc.read.row_group_selection import RowGroupSelection
from lockgate.framework.orc.read.row_index import ColumnStreams
from lockgate.framework.orc.read.stream_bytes import StreamBytes
from lockgate.framework.orc.read.stripe_cut import Cut, cut
from lockgate.framework.orc.sources.file_source import Source

_JAVA, _CPP = 0, 1
# Java writers before this (HIVE-13083) had indexes that are not worth relying on.
_FIRST_TRUSTED = 4
# Row groups between two wanted ones are read with them if they are not more rows than this: an image of its
# own costs as much as decoding some thousand rows.
GAP_ROWS = 4096


class StripeRowGroups:
    """Row groups of one stripe; their row indexes are read when they are first needed.

    Not for several threads at once.
    """

    def __init__(self, source: Source, tail: Tail, variants: Variants, stripe: Stripe) -> None:
        self._source = source
        self._tail = tail
        self._variants = variants
        self._stripe = stripe
        self._columns: dict[int, ColumnGroups] = {}

    @cached_property
    def count(self) -> int:
        """Return how many row groups there are."""
        return group_count(self._tail, self._stripe.rows)

    def select(
        self, rows: RowFilter, projection: Projection, counter: ReadCounter | None = None
    ) -> list[range] | None:
        """Return runs of row groups that may hold rows for which `rows` holds: none if there are surely none,
        None if the stripe is to be read whole, because all may hold some or because an index or column does
        not allow for less.

        Raises `CorruptFileError` for an index, Bloom filter or dictionary that cannot be read.
        """
        if rows.predicate is None or not self._stripe.rows:
            return None
        indexed = self._is_indexed(rows)
        count = self.count if indexed else 1
        selection = RowGroupSelection(
            self._tail, self._stripe, rows, self.column, count, indexed=indexed, counter=counter
        )
        kept = selection.row_groups()
        if not kept:
            return []
        if len(kept) == count:
            return None
        runs = _runs(kept, GAP_ROWS // self._tail.footer.row_index_stride)
        if [len(run) for run in runs] == [self.count] or not self._can_slice(projection, runs):
            return None
        return runs

    def image(self, projection: Projection, groups: range) -> tuple[pa.Buffer, int]:
        """Return a plain ORC file of the rows of `groups`, one of the runs of `select`, and how many they
        are.
        """
        stride = self._tail.footer.row_index_stride
        rows = min(self._stripe.rows, groups.stop * stride) - groups.start * stride
        picks = projection.select(self._stripe.streams, self._variants)
        parts = self._parts(projection, picks, groups)
        footer = stripe_footer(self._stripe, self._variants, projection)
        for (position, stream), part in zip(picks, parts, strict=True):
            footer.streams.add(kind=stream.kind, column=position, length=len(part))
        framed = frame(self._tail.codec, footer.SerializeToString(), self._tail.block_size)
        end = ending(self._tail, projection, framed, sum(map(len, parts)), rows)
        return pa.py_buffer(b"".join([MAGIC, *parts, end])), rows

    def column(self, number: int) -> ColumnGroups:
        """Return the row groups of column `number`."""
        found = self._columns.get(number)
        if found is None:
            streams = ColumnStreams(self._source, self._tail, self._variants, self._stripe, number)
            found = self._columns[number] = ColumnGroups(self._tail, streams)
        return found

    @cached_property
    def _reliable(self) -> bool:
        footer = self._tail.footer
        if not footer.row_index_stride:
            return False
        if footer.writer == _JAVA:
            return bool(self._tail.postscript.writer_version >= _FIRST_TRUSTED)
        # Those of C++ before 1.7 do not say their version.
        return bool(footer.writer == _CPP and footer.software_version)

    def _is_indexed(self, rows: RowFilter) -> bool:
        """Return whether a compared column has a row index, which proves the number of row groups."""
        numbers = [self._tail.types.top_level(name) for name in rows.columns]
        return self._reliable and any(self.column(number).entries is not None for number in numbers)

    def _can_slice(self, projection: Projection, runs: Sequence[range]) -> bool:
        borders = sorted({border for run in runs for border in (run.start, run.stop) if border < self.count})
        # A damaged footer may list streams of columns that have none, or of kinds that theirs have not.
        picks = projection.select(self._stripe.streams, self._variants)
        return all(self.column(number).can_start_at(borders) for number in projection.numbers[1:]) and all(
            self.column(stream.column).can_cut(stream.kind) for _, stream in picks
        )

    def _parts(
        self, projection: Projection, picks: Sequence[tuple[int, Stream]], groups: range
    ) -> list[bytes]:
        """Return the framed streams of the image."""
        cuts: list[Cut | None] = []
        windows: list[StreamBytes] = []
        ranges: list[tuple[int, int]] = []
        for position, stream in picks:
            wanted = None
            if (position, stream.kind) not in projection.replaced:
                wanted = self.column(stream.column).cut(stream.kind, groups)
            start = wanted.start.chunk if wanted else 0
            stop = stream.length
            if wanted:
                later = self.column(stream.column).chunks(stream.kind, groups.stop)
                stop = wanted.guess(stream.length, later, self._tail.codec)
            cuts.append(wanted)
            windows.append(StreamBytes(self._source, self._tail, self._variants, self._stripe, stream, start))
            ranges.append((stream.offset + start, max(stop - start, 0)))
        for window, stored in zip(windows, self._source.read_ranges(ranges), strict=True):
            window.fill(stored)
        return [
            projection.replaced.get((position, stream.kind))
            or (cut(window, wanted) if wanted else window.stored(0, stream.length))
            for (position, stream), window, wanted in zip(picks, windows, cuts, strict=True)
        ]


def _runs(groups: Sequence[int], gap: int) -> list[range]:
    """Return rising numbers as ranges, joined where at most `gap` are missing between them."""
    runs = [range(groups[0], groups[0] + 1)]
    for group in groups[1:]:
        if group - runs[-1].stop <= gap:
            runs[-1] = range(runs[-1].start, group + 1)
        else:
            runs.append(range(group, group + 1))
    return runs
