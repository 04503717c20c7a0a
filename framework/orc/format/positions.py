"""Positions of a row index: where a row group starts in each stream of its column.

For each stream, in the order of the ORC v1 specification ("Indexes"), an entry has the start of a compression
chunk and an offset in its content (without compression, a single offset), then for runs the number of values
to skip, and for bits the number of bits to skip in the next byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.framework.orc.format.layout import Compression, StreamKind, TypeKind
from lockgate.framework.orc.format.run_lengths import Form

DIRECT, DICTIONARY, DIRECT_V2, DICTIONARY_V2 = range(4)

_PLAIN = {
    TypeKind.BOOLEAN: Form.BITS,
    TypeKind.BYTE: Form.BYTES,
    TypeKind.FLOAT: Form.RAW,
    TypeKind.DOUBLE: Form.RAW,
}
_INTEGERS = frozenset({TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.DATE})
TEXTS = frozenset({TypeKind.STRING, TypeKind.VARCHAR, TypeKind.CHAR})
TIMES = frozenset({TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_INSTANT})


@dataclass(frozen=True)
class PositionLayout:
    """The streams of a column with positions, in their order; all row groups use the `shared` streams."""

    parts: tuple[tuple[StreamKind, Form], ...]
    shared: frozenset[StreamKind] = frozenset()


@dataclass(frozen=True)
class StreamPosition:
    """A position in a stream: `chunk` and `offset` in bytes, then `skip` values and `bits` bits."""

    chunk: int
    offset: int
    skip: int = 0
    bits: int = 0


def layout_of(kind: TypeKind, encoding: int, present: bool) -> PositionLayout | None:
    """Return the layout of a flat column; None for nested columns and version 1 of run-length encoding."""
    parts, shared = _parts(kind, encoding)
    if not parts:
        return None
    nulls = ((StreamKind.PRESENT, Form.BITS),) if present else ()
    return PositionLayout((*nulls, *parts), shared)


def positions_of(
    layout: PositionLayout, codec: Compression, numbers: Sequence[int]
) -> dict[StreamKind, StreamPosition] | None:
    """Return the position in each stream from the numbers of a row index entry; None if their count is
    wrong.
    """
    positions: dict[StreamKind, StreamPosition] = {}
    remaining = list(numbers)
    offset_count = 1 if codec is Compression.NONE else 2
    for kind, form in layout.parts:
        count = offset_count + form.counters
        if len(remaining) < count:
            return None
        stream_numbers, remaining = remaining[:count], remaining[count:]
        chunk, offset = (stream_numbers[0], 0) if offset_count == 1 else stream_numbers[:2]
        positions[kind] = StreamPosition(chunk, offset, *stream_numbers[offset_count:])
    return None if remaining else positions


def _parts(
    kind: TypeKind, encoding: int
) -> tuple[tuple[tuple[StreamKind, Form], ...], frozenset[StreamKind]]:
    none: frozenset[StreamKind] = frozenset()
    if kind in _PLAIN:
        return ((StreamKind.DATA, _PLAIN[kind]),), none
    if encoding == DIRECT_V2:
        if kind in _INTEGERS:
            return ((StreamKind.DATA, Form.SIGNED),), none
        if kind in TEXTS or kind is TypeKind.BINARY:
            return ((StreamKind.DATA, Form.RAW), (StreamKind.LENGTH, Form.UNSIGNED)), none
        if kind in TIMES:
            return ((StreamKind.DATA, Form.SIGNED), (StreamKind.SECONDARY, Form.UNSIGNED)), none
        if kind is TypeKind.DECIMAL:
            return ((StreamKind.DATA, Form.RAW), (StreamKind.SECONDARY, Form.SIGNED)), none
    if encoding == DICTIONARY_V2 and kind in TEXTS:
        dictionary = frozenset({StreamKind.DICTIONARY_DATA, StreamKind.LENGTH})
        return ((StreamKind.DATA, Form.UNSIGNED),), dictionary
    return (), none
