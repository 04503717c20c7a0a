"""The row groups of one column in a stripe: their statistics, Bloom filters and positions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import StreamKind, TypeKind
from lockgate.framework.orc.format.positions import PositionLayout, StreamPosition, layout_of, positions_of
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.read.row_index import ColumnStreams
from lockgate.framework.orc.read.stripe_cut import Cut


class ColumnGroups:
    """The row groups of one column: statistics and positions, from its row index."""

    def __init__(self, tail: Tail, streams: ColumnStreams) -> None:
        self.streams = streams
        self._tail = tail
        self._positions: dict[int, dict[StreamKind, StreamPosition] | None] = {}

    @cached_property
    def kind(self) -> TypeKind:
        """The type of the column."""
        return TypeKind(self._tail.types.types[self.streams.column].kind)

    @cached_property
    def entries(self) -> list[proto.Message] | None:
        """The row index; None if there is none."""
        return self.streams.row_index()

    @cached_property
    def bloom_filters(self) -> list[proto.Message] | None:
        """The Bloom filters; None if there are none."""
        return self.streams.bloom_filters()

    @cached_property
    def layout(self) -> PositionLayout | None:
        """The streams that positions speak of; None if the column cannot be cut."""
        present = StreamKind.PRESENT in self.streams.by_kind
        return layout_of(self.kind, self.streams.encoding.kind, present)

    def can_start_at(self, groups: Iterable[int]) -> bool:
        """Return whether there are plausible positions of all of these row groups."""
        return all(self._plausible(self.positions(group)) for group in groups)

    def can_cut(self, kind: int) -> bool:
        """Return whether the column has streams of this kind, and they can be cut."""
        layout = self.layout
        return layout is not None and (kind in layout.shared or kind in dict(layout.parts))

    def positions(self, group: int) -> dict[StreamKind, StreamPosition] | None:
        """Return where a row group starts in each stream; None if that is not known."""
        if group not in self._positions:
            found = None
            if self.layout is not None and self.entries is not None:
                found = positions_of(self.layout, self._tail.codec, self.entries[group].positions)
            self._positions[group] = found
        return self._positions[group]

    def cut(self, kind: int, groups: range) -> Cut | None:
        """Return which part of a stream is needed for `groups`; None for one that all row groups share."""
        assert self.layout is not None
        assert self.entries is not None
        if kind in self.layout.shared:
            return None
        start, end = self.positions(groups.start), None
        assert start is not None
        if groups.stop < len(self.entries):
            end = self.positions(groups.stop)
            assert end is not None
        stream = StreamKind(kind)
        return Cut(dict(self.layout.parts)[stream], start[stream], end[stream] if end else None)

    def chunks(self, kind: int, group: int) -> list[int]:
        """Return in which chunks of a stream the row groups from `group` on start."""
        assert self.entries is not None
        found = [self.positions(number) for number in range(group, len(self.entries))]
        return [positions[StreamKind(kind)].chunk for positions in found if positions is not None]

    def _plausible(self, positions: dict[StreamKind, StreamPosition] | None) -> bool:
        if positions is None:
            return False
        lengths = {kind: stream.length for kind, stream in self.streams.by_kind.items()}
        return all(
            position.chunk <= lengths.get(kind, position.chunk)
            and position.offset <= self._tail.block_size
            and position.bits < 8
            for kind, position in positions.items()
        )
