"""Ordered values of a range bitmap, in chunks: the place of a value among them.

Source: Paimon's `ChunkedDictionary`. A chunk's first value is in its head only, the others follow.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from lockgate.pushdown.index.value_kinds import Key, ValueKind

CHUNK_SIZE = 16 * 1024
"""Bytes of a chunk by default, but of small types a chunk has one value."""

_VERSION = 1
_HEAD = struct.Struct(">ibiii")
_INT = struct.Struct(">i")
_CHUNK = struct.Struct(">iiiii")
_ONE_BY_ONE = (ValueKind.BOOLEAN, ValueKind.TINYINT, ValueKind.SMALLINT)


def write_ordered(kind: ValueKind, keys: Sequence[Key], chunk_size: int | None = None) -> bytes:
    """Return ascending keys in chunks of at most `chunk_size` bytes, None: Paimon's own choice."""
    if chunk_size is None:
        chunk_size = 0 if kind in _ONE_BY_ONE else CHUNK_SIZE
    heads, bodies = [], []
    at = 0
    for code, packed in _chunks(kind, [kind.pack(key) for key in keys], chunk_size):
        rest = b"".join(packed[1:])
        if kind.width:
            body, sizes = rest, (len(rest), kind.width)
        else:
            ends = [0, *accumulate(map(len, packed[1:]))][: len(packed) - 1]
            body, sizes = b"".join([*map(_INT.pack, ends), rest]), (4 * (len(packed) - 1), len(rest))
        heads.append(struct.pack(">b", _VERSION) + packed[0] + _CHUNK.pack(code, at, len(packed) - 1, *sizes))
        bodies.append(body)
        at += len(body)
    places = [0, *accumulate(map(len, heads))][: len(heads)]
    sizes = (4 * len(heads), sum(map(len, heads)))
    head = _HEAD.pack(_HEAD.size - _INT.size, _VERSION, len(heads), *sizes)
    return b"".join([head, *map(_INT.pack, places), *heads, *bodies])


def _chunks(kind: ValueKind, packed: Sequence[bytes], size: int) -> list[tuple[int, list[bytes]]]:
    """Return the chunks: the place of the first value, and all values."""
    found: list[tuple[int, list[bytes]]] = []
    used = 0
    for code, value in enumerate(packed):
        chunk = found[-1][1] if found else []
        full = used + len(value) > size or (not kind.width and 4 * len(chunk) > size)
        if full or not chunk:
            chunk, used = [], 0
            found.append((code, chunk))
        else:
            used += len(value)
        chunk.append(value)
    return found


@dataclass(frozen=True)
class _Chunk:
    first: Key
    code: int
    at: int
    count: int
    sizes: tuple[int, int]


class OrderedValues:
    """Values as read, from a place of an index on; one chunk is looked into for a question."""

    def __init__(self, kind: ValueKind, data: bytes, at: int) -> None:
        self._kind = kind
        self._data = data
        head, version, count, places, heads = _HEAD.unpack_from(data, at)
        if version != _VERSION or count < 0 or places != 4 * count:
            raise ValueError("its ordered values are of no known version")
        start = at + _INT.size + head
        self._bodies = start + places + heads
        found = [self._chunk(start + places + _INT.unpack_from(data, start + 4 * n)[0]) for n in range(count)]
        self._chunks = found

    def _chunk(self, at: int) -> _Chunk:
        first, at = self._kind.unpack(self._data, at + 1)
        code, body, count, *sizes = _CHUNK.unpack_from(self._data, at)
        return _Chunk(first, code, body, count, (sizes[0], sizes[1]))

    def code_of(self, key: Key) -> tuple[int, bool]:
        """Return how many values are less than one, and whether it is there."""
        number = bisect_right(self._chunks, key, key=lambda chunk: chunk.first) - 1
        if number < 0:
            return 0, False
        chunk = self._chunks[number]
        if chunk.first == key:
            return chunk.code, True
        values = self._values(chunk)
        found = bisect_left(values, key)
        return chunk.code + 1 + found, found < len(values) and values[found] == key

    def _values(self, chunk: _Chunk) -> list[Key]:
        start = self._bodies + chunk.at
        if self._kind.width:
            places = [start + number * self._kind.width for number in range(chunk.count)]
        else:
            first = start + chunk.sizes[0]
            places = [first + _INT.unpack_from(self._data, start + 4 * n)[0] for n in range(chunk.count)]
        return [self._kind.unpack(self._data, position)[0] for position in places]
