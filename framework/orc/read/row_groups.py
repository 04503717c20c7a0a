"""The row groups of a stripe that may have matching rows, and images of them."""

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
# Java writers before this version (HIVE-13083) wrote unreliable indexes.
_FIRST_TRUSTED = 4
# Gaps of at most this many rows between selected row groups are read, too: another image costs as much as
# decoding some thousand rows.
GAP_ROWS = 4096


class StripeRowGroups:
    """The row groups of one stripe; row indexes are read on first use.

    Not thread-safe.
    """

    def __init__(self, source: Source, tail: Tail, variants: Variants, stripe: Stripe) -> None:
        self._source = source
        self._tail = tail
        self._variants = variants
        self._stripe = stripe
        self._columns: dict[int, ColumnGroups] = {}

    @cached_property
    def count(self) -> int:
        """The number of row groups."""
        return group_count(self._tail, self._stripe.rows)

    def select(
        self, rows: RowFilter, projection: Projection, counter: ReadCounter | None = None
    ) -> list[range] | None:
        """Return runs of row groups that may have rows for the filter `rows`; None to read the complete
        stripe.

        The result is an empty list if no row matches. It is None if all row groups may match, or if an index
        or a column does not allow reading parts.

        Raises `CorruptFileError` for an index, Bloom filter or dictionary that cannot be read.
        """
        if rows.predicate is None or not self._stripe.rows:
            return None
        indexed = self._is_indexed(rows)
        count = self.count if indexed else 1
        selection = RowGroupSelection(
            self._tail, self._stripe, rows, self.column, count, indexed=indexed, counter=counter
        )
        groups = selection.row_groups()
        if not groups:
            return []
        if len(groups) == count:
            return None
        runs = _runs(groups, GAP_ROWS // self._tail.footer.row_index_stride)
        if [len(run) for run in runs] == [self.count] or not self._can_slice(projection, runs):
            return None
        return runs

    def image(self, projection: Projection, groups: range) -> tuple[pa.Buffer, int]:
        """Return a plain ORC file with the rows of `groups`, a run of `select`, and the number of rows."""
        stride = self._tail.footer.row_index_stride
        rows = min(self._stripe.rows, groups.stop * stride) - groups.start * stride
        selection = projection.select(self._stripe.streams, self._variants)
        parts = self._parts(projection, selection, groups)
        footer = stripe_footer(self._stripe, self._variants, projection)
        for (position, stream), part in zip(selection, parts, strict=True):
            footer.streams.add(kind=stream.kind, column=position, length=len(part))
        framed = frame(self._tail.codec, footer.SerializeToString(), self._tail.block_size)
        end = ending(self._tail, projection, framed, sum(map(len, parts)), rows)
        return pa.py_buffer(b"".join([MAGIC, *parts, end])), rows

    def column(self, number: int) -> ColumnGroups:
        """Return the row groups of column `number`."""
        groups = self._columns.get(number)
        if groups is None:
            streams = ColumnStreams(self._source, self._tail, self._variants, self._stripe, number)
            groups = self._columns[number] = ColumnGroups(self._tail, streams)
        return groups

    @cached_property
    def _has_reliable_index(self) -> bool:
        footer = self._tail.footer
        if not footer.row_index_stride:
            return False
        if footer.writer == _JAVA:
            return bool(self._tail.postscript.writer_version >= _FIRST_TRUSTED)
        # C++ writers before 1.7 do not state their version.
        return bool(footer.writer == _CPP and footer.software_version)

    def _is_indexed(self, rows: RowFilter) -> bool:
        """Return whether a compared column has a row index, which proves the number of row groups."""
        numbers = [self._tail.types.top_level(name) for name in rows.columns]
        return self._has_reliable_index and any(self.column(number).entries is not None for number in numbers)

    def _can_slice(self, projection: Projection, runs: Sequence[range]) -> bool:
        borders = sorted({border for run in runs for border in (run.start, run.stop) if border < self.count})
        # A damaged footer may list streams that the columns or their encodings do not have.
        selection = projection.select(self._stripe.streams, self._variants)
        return all(self.column(number).can_start_at(borders) for number in projection.numbers[1:]) and all(
            self.column(stream.column).can_cut(stream.kind) for _, stream in selection
        )

    def _parts(
        self, projection: Projection, selection: Sequence[tuple[int, Stream]], groups: range
    ) -> list[bytes]:
        """Return the framed streams of the image."""
        cuts: list[Cut | None] = []
        windows: list[StreamBytes] = []
        ranges: list[tuple[int, int]] = []
        for position, stream in selection:
            part_cut = None
            if (position, stream.kind) not in projection.replaced:
                part_cut = self.column(stream.column).cut(stream.kind, groups)
            start = part_cut.start.chunk if part_cut else 0
            stop = stream.length
            if part_cut:
                later_chunks = self.column(stream.column).chunks(stream.kind, groups.stop)
                stop = part_cut.estimate_end(stream.length, later_chunks, self._tail.codec)
            cuts.append(part_cut)
            windows.append(StreamBytes(self._source, self._tail, self._variants, self._stripe, stream, start))
            ranges.append((stream.offset + start, max(stop - start, 0)))
        for window, stored in zip(windows, self._source.read_ranges(ranges), strict=True):
            window.fill(stored)
        return [
            projection.replaced.get((position, stream.kind))
            or (cut(window, part_cut) if part_cut else window.stored(0, stream.length))
            for (position, stream), window, part_cut in zip(selection, windows, cuts, strict=True)
        ]


def _runs(groups: Sequence[int], gap: int) -> list[range]:
    """Return ascending numbers as ranges; gaps of at most `gap` numbers are included."""
    runs = [range(groups[0], groups[0] + 1)]
    for group in groups[1:]:
        if group - runs[-1].stop <= gap:
            runs[-1] = range(runs[-1].start, group + 1)
        else:
            runs.append(range(group, group + 1))
    return runs
