"""Statistics, Bloom filters and positions of a column's row groups in a stripe."""

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
    """The row groups of one column in a stripe."""

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
        """The entries of the row index; None if there is none."""
        return self.streams.row_index()

    @cached_property
    def bloom_filters(self) -> list[proto.Message] | None:
        """The Bloom filters; None if there are none."""
        return self.streams.bloom_filters()

    @cached_property
    def layout(self) -> PositionLayout | None:
        """The streams with positions; None if the column cannot be read by row groups."""
        present = StreamKind.PRESENT in self.streams.by_kind
        return layout_of(self.kind, self.streams.encoding.kind, present)

    def can_start_at(self, groups: Iterable[int]) -> bool:
        """Return whether all these row groups have plausible positions."""
        return all(self._are_plausible(self.positions(group)) for group in groups)

    def can_cut(self, kind: int) -> bool:
        """Return whether the column's layout has this kind of stream, so that it can be cut."""
        layout = self.layout
        return layout is not None and (kind in layout.shared or kind in dict(layout.parts))

    def positions(self, group: int) -> dict[StreamKind, StreamPosition] | None:
        """Return the start of a row group in each stream; None if unknown."""
        if group not in self._positions:
            group_positions = None
            if self.layout is not None and self.entries is not None:
                group_positions = positions_of(self.layout, self._tail.codec, self.entries[group].positions)
            self._positions[group] = group_positions
        return self._positions[group]

    def cut(self, kind: int, groups: range) -> Cut | None:
        """Return the part of a stream that `groups` need; None for a stream that all row groups share."""
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
        """Return the chunks of a stream in which the row groups from `group` on start."""
        assert self.entries is not None
        group_positions = [self.positions(number) for number in range(group, len(self.entries))]
        return [positions[StreamKind(kind)].chunk for positions in group_positions if positions is not None]

    def _are_plausible(self, positions: dict[StreamKind, StreamPosition] | None) -> bool:
        if positions is None:
            return False
        lengths = {kind: stream.length for kind, stream in self.streams.by_kind.items()}
        return all(
            position.chunk <= lengths.get(kind, position.chunk)
            and position.offset <= self._tail.block_size
            and position.bits < 8
            for kind, position in positions.items()
        )
