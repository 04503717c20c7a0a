"""Range bitmaps: the rows of each range of values, by bit slices of the values' ordinals.

Source: Paimon's `RangeBitmap` and `BitSliceIndexBitmap`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lockgate.pushdown.index.distinct_values import NULL, DistinctValues, read_roaring, roaring
from lockgate.pushdown.index.ordered_values import OrderedValues, write_ordered
from lockgate.pushdown.index.value_kinds import Key, ValueKind

_VERSION = 1
_HEAD = struct.Struct(">ibii")
_INT = struct.Struct(">i")
_SLICES = struct.Struct(">ibbii")
_PLACE = struct.Struct(">ii")
_NULL_SLICES = 64


def write_range_bitmap(kind: ValueKind, column: pa.Array, chunk_size: int | None = None) -> bytes:
    """Return the index of a column of its Arrow type; `chunk_size` as in `write_ordered`."""
    distinct = DistinctValues.of(kind, column)
    keys = distinct.keys
    ends = kind.pack(keys[0]) + kind.pack(keys[-1]) if keys else b""
    dictionary = write_ordered(kind, keys, chunk_size)
    # The size in the head includes the length of the dictionary, which follows.
    head = _HEAD.pack(_HEAD.size + len(ends), _VERSION, len(column), len(keys))
    return b"".join([head, ends, _INT.pack(len(dictionary)), dictionary, _write_slices(distinct)])


def _write_slices(distinct: DistinctValues) -> bytes:
    codes, count = distinct.codes, len(distinct.keys)
    width = max(1, (count - 1).bit_length()) if count else _NULL_SLICES
    existing = roaring(np.flatnonzero(codes != NULL).astype(np.uint32))
    has_value = codes != NULL
    slices = [
        roaring(np.flatnonzero(has_value & ((codes >> bit) & 1 == 1)).astype(np.uint32))
        for bit in range(width)
    ]
    index, at = b"", 0
    for data in slices:
        index += _PLACE.pack(at, len(data))
        at += len(data)
    size = _SLICES.size - _INT.size + len(index)
    return b"".join(
        [_SLICES.pack(size, _VERSION, width, len(existing), len(index)), index, existing, *slices]
    )


class RangeBitmap:
    """Reads a range bitmap of a file with `rows` rows; ValueError or struct.error for invalid bytes."""

    def __init__(self, kind: ValueKind, data: bytes) -> None:
        self._data = data
        head, version, self.rows, self._count = _HEAD.unpack_from(data)
        if version != _VERSION or self.rows < 0:
            raise ValueError(f"range bitmaps have no version {version}")
        at = _HEAD.size
        for _ in range(2 if self._count else 0):
            _, at = kind.unpack(data, at)  # skip the minimum and the maximum
        if at != head:
            raise ValueError("the head does not end where it states")
        (length,) = _INT.unpack_from(data, at)
        self._values = OrderedValues(kind, data, at + _INT.size)
        self._read_slices(at + _INT.size + length)

    def _read_slices(self, at: int) -> None:
        size, version, width, existing, index = _SLICES.unpack_from(self._data, at)
        if version != _VERSION:
            raise ValueError(f"slices of range bitmaps have no version {version}")
        body = at + _INT.size + size
        self._existing = read_roaring(self._data[body : body + existing], self.rows)
        self._places = list(_PLACE.iter_unpack(self._data[at + _SLICES.size : at + _SLICES.size + index]))
        self._body = body + existing
        if len(self._places) != width:
            raise ValueError(f"{len(self._places)} slices where {width} should be")

    def _slice(self, bit: int) -> BitMap:
        at, length = self._places[bit]
        return read_roaring(self._data[self._body + at : self._body + at + length], self.rows)

    def nulls(self) -> BitMap:
        """Return the rows with null."""
        return self._existing.flip(0, self.rows)

    def among(self, keys: Iterable[Key]) -> BitMap:
        """Return the rows with one of these values."""
        rows = BitMap()
        for key in keys:
            code, is_present = self._values.code_of(key)
            if is_present:
                rows |= self._rows_of_code(code)
        return rows

    def _rows_of_code(self, code: int) -> BitMap:
        rows = self._existing.copy()
        for bit in range(len(self._places)):
            if code >> bit & 1:
                rows &= self._slice(bit)
            else:
                rows -= self._slice(bit)
        return rows

    def at_least(self, key: Key) -> BitMap:
        """Return the rows with this value or greater ones."""
        return self._from_code(self._values.code_of(key)[0])

    def greater(self, key: Key) -> BitMap:
        """Return the rows with greater values."""
        code, is_present = self._values.code_of(key)
        return self._from_code(code + is_present)

    def less(self, key: Key) -> BitMap:
        """Return the rows with smaller values."""
        return self._existing - self.at_least(key)

    def at_most(self, key: Key) -> BitMap:
        """Return the rows with this value or smaller ones."""
        return self._existing - self.greater(key)

    def _from_code(self, code: int) -> BitMap:
        """Return the rows with this code or a greater one."""
        if code <= 0:
            return self._existing.copy()
        if code >= self._count:
            return BitMap()
        below, rows = code - 1, BitMap()
        for bit in range(len(self._places)):
            # A code with a one where `below` has a zero is greater; where both have a one, the lower bits
            # decide.
            if below >> bit & 1:
                rows &= self._slice(bit)
            else:
                rows |= self._slice(bit)
        return rows & self._existing
