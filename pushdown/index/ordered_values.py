"""The ascending values of a range bitmap, in chunks.

Source: Paimon's `ChunkedDictionary`. A chunk's head holds its first value; the body holds the others.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from lockgate.pushdown.index.value_kinds import Key, ValueKind

CHUNK_SIZE = 16 * 1024
"""Default chunk size in bytes; a chunk of a type of one or two bytes has a single value."""

_VERSION = 1
_HEAD = struct.Struct(">ibiii")
_INT = struct.Struct(">i")
_CHUNK = struct.Struct(">iiiii")
_SMALL_KINDS = (ValueKind.BOOLEAN, ValueKind.TINYINT, ValueKind.SMALLINT)


def write_ordered(kind: ValueKind, keys: Sequence[Key], chunk_size: int | None = None) -> bytes:
    """Encode ascending keys in chunks of at most `chunk_size` bytes; None is Paimon's default."""
    if chunk_size is None:
        chunk_size = 0 if kind in _SMALL_KINDS else CHUNK_SIZE
    heads, bodies = [], []
    at = 0
    for code, packed in _split_chunks(kind, [kind.pack(key) for key in keys], chunk_size):
        values = b"".join(packed[1:])
        if kind.width:
            body, sizes = values, (len(values), kind.width)
        else:
            ends = [0, *accumulate(map(len, packed[1:]))][: len(packed) - 1]
            body, sizes = b"".join([*map(_INT.pack, ends), values]), (4 * (len(packed) - 1), len(values))
        heads.append(struct.pack(">b", _VERSION) + packed[0] + _CHUNK.pack(code, at, len(packed) - 1, *sizes))
        bodies.append(body)
        at += len(body)
    head_offsets = [0, *accumulate(map(len, heads))][: len(heads)]
    sizes = (4 * len(heads), sum(map(len, heads)))
    head = _HEAD.pack(_HEAD.size - _INT.size, _VERSION, len(heads), *sizes)
    return b"".join([head, *map(_INT.pack, head_offsets), *heads, *bodies])


def _split_chunks(kind: ValueKind, packed: Sequence[bytes], size: int) -> list[tuple[int, list[bytes]]]:
    """Return the chunks, each as the index of its first value and all its values."""
    chunks: list[tuple[int, list[bytes]]] = []
    size_used = 0
    for code, value in enumerate(packed):
        chunk = chunks[-1][1] if chunks else []
        is_full = size_used + len(value) > size or (not kind.width and 4 * len(chunk) > size)
        if is_full or not chunk:
            chunk, size_used = [], 0
            chunks.append((code, chunk))
        else:
            size_used += len(value)
        chunk.append(value)
    return chunks


@dataclass(frozen=True)
class _Chunk:
    first: Key
    code: int
    at: int
    count: int
    sizes: tuple[int, int]


class OrderedValues:
    """Reads ordered values at an offset of an index; a lookup decodes one chunk."""

    def __init__(self, kind: ValueKind, data: bytes, at: int) -> None:
        self._kind = kind
        self._data = data
        head, version, count, places, heads = _HEAD.unpack_from(data, at)
        if version != _VERSION or count < 0 or places != 4 * count:
            raise ValueError("its ordered values have an unsupported version")
        start = at + _INT.size + head
        self._bodies = start + places + heads
        found = [self._chunk(start + places + _INT.unpack_from(data, start + 4 * n)[0]) for n in range(count)]
        self._chunks = found

    def _chunk(self, at: int) -> _Chunk:
        first, at = self._kind.unpack(self._data, at + 1)
        code, body, count, *sizes = _CHUNK.unpack_from(self._data, at)
        return _Chunk(first, code, body, count, (sizes[0], sizes[1]))

    def code_of(self, key: Key) -> tuple[int, bool]:
        """Return the number of values below a key, and whether the key is one of the values."""
        chunk_number = bisect_right(self._chunks, key, key=lambda chunk: chunk.first) - 1
        if chunk_number < 0:
            return 0, False
        chunk = self._chunks[chunk_number]
        if chunk.first == key:
            return chunk.code, True
        values = self._values(chunk)
        position = bisect_left(values, key)
        return chunk.code + 1 + position, position < len(values) and values[position] == key

    def _values(self, chunk: _Chunk) -> list[Key]:
        start = self._bodies + chunk.at
        if self._kind.width:
            offsets = [start + index * self._kind.width for index in range(chunk.count)]
        else:
            first = start + chunk.sizes[0]
            offsets = [first + _INT.unpack_from(self._data, start + 4 * n)[0] for n in range(chunk.count)]
        return [self._kind.unpack(self._data, position)[0] for position in offsets]
