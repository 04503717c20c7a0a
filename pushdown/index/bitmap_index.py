"""Bitmap indexes: the rows of each value of a column.

Source: Paimon's `BitmapFileIndexMeta` (version 1) and `BitmapFileIndexMetaV2` (values in blocks).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable

import pyarrow as pa
from pyroaring import BitMap

from lockgate.pushdown.index.distinct_values import NULL, DistinctValues, Rows, read_roaring, roaring
from lockgate.pushdown.index.value_kinds import Key, ValueKind

BLOCK_SIZE = 16 * 1024
"""Default size in bytes of a block of values in version 2."""

VERSION = 2

_HEAD = struct.Struct(">bii?")
_INT = struct.Struct(">i")
_PLACE = struct.Struct(">ii")

Location = tuple[int, int]


def write_bitmap(
    kind: ValueKind, column: pa.Array, version: int = VERSION, block_size: int = BLOCK_SIZE
) -> bytes:
    """Return the index of a column of its Arrow type."""
    distinct = DistinctValues.of(kind, column)
    body = _Body()
    nulls = distinct.rows_of(NULL)
    null_place = body.add(nulls)
    places = [body.add(distinct.rows_of(code)) for code in range(len(distinct.keys))]
    head = [_HEAD.pack(version, len(column), len(distinct.keys), len(nulls) > 0)]
    if len(nulls):
        head.append(_INT.pack(null_place[0]))
    if version == 1:
        head += [
            kind.pack(key) + _INT.pack(offset) for key, (offset, _) in zip(distinct.keys, places, strict=True)
        ]
        return b"".join([*head, *body.parts])
    if len(nulls):
        head.append(_INT.pack(len(roaring(nulls))))
    return b"".join([*head, *_value_blocks(kind, distinct, places, block_size), *body.parts])


class _Body:
    """Collects the bitmaps of values, which the file has one after the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size = 0

    def add(self, rows: Rows) -> Location:
        """Add a bitmap and return its location; for a single row, the location holds the row, negated."""
        if len(rows) == 1:
            return -1 - int(rows[0]), -1
        if not len(rows):
            return 0, 0
        data, offset = roaring(rows), self._size
        self.parts.append(data)
        self._size += len(data)
        return offset, len(data)


def _value_blocks(
    kind: ValueKind, distinct: DistinctValues, places: Iterable[Location], size: int
) -> list[bytes]:
    """Return the directory of the blocks of values, then the blocks."""
    firsts: list[Key] = []
    blocks: list[list[bytes]] = []
    block_size = size
    for key, location in zip(distinct.keys, places, strict=True):
        entry = kind.pack(key) + _PLACE.pack(*location)
        if block_size + len(entry) > size:
            firsts.append(key)
            blocks.append([])
            block_size = _INT.size
        blocks[-1].append(entry)
        block_size += len(entry)
    encoded = [_INT.pack(len(entries)) + b"".join(entries) for entries in blocks]
    directory, offset = [_INT.pack(len(blocks))], 0
    for first, block in zip(firsts, encoded, strict=True):
        directory.append(kind.pack(first) + _INT.pack(offset))
        offset += len(block)
    return [*directory, _INT.pack(offset), *encoded]


class BitmapIndex:
    """Reads a bitmap index of a file with `rows` rows; ValueError or struct.error for invalid bytes."""

    def __init__(self, kind: ValueKind, data: bytes) -> None:
        self._kind = kind
        self._data = data
        version, self.rows, count, has_nulls = _HEAD.unpack_from(data)
        if version not in (1, 2) or self.rows < 0:
            raise ValueError(f"bitmap indexes have no version {version}")
        at = _HEAD.size
        self._null: Location | None = None
        if has_nulls:
            self._null = (_INT.unpack_from(data, at)[0], -1)
            at += _INT.size
        if version == 1:
            self._read_values(at, count)
        else:
            self._read_directory(at)

    def _read_values(self, at: int, count: int) -> None:
        self._places: dict[Key, Location] | None = {}
        for _ in range(count):
            key, at = self._kind.unpack(self._data, at)
            self._places[key] = (_INT.unpack_from(self._data, at)[0], -1)
            at += _INT.size
        self._body = at

    def _read_directory(self, at: int) -> None:
        self._places = None
        if self._null is not None:
            self._null = (self._null[0], _INT.unpack_from(self._data, at)[0])
            at += _INT.size
        (count,) = _INT.unpack_from(self._data, at)
        at += _INT.size
        self._value_blocks: list[tuple[Key, int]] = []
        for _ in range(count):
            key, at = self._kind.unpack(self._data, at)
            self._value_blocks.append((key, _INT.unpack_from(self._data, at)[0]))
            at += _INT.size
        self._first = at + _INT.size
        self._body = self._first + _INT.unpack_from(self._data, at)[0]

    def nulls(self) -> BitMap:
        """Return the rows with null."""
        return BitMap() if self._null is None else self._rows_at(self._null)

    def among(self, keys: Iterable[Key]) -> BitMap:
        """Return the rows with one of these values."""
        rows = BitMap()
        for key in keys:
            location = self._location_of(key)
            if location is not None:
                rows |= self._rows_at(location)
        return rows

    def _location_of(self, key: Key) -> Location | None:
        if self._places is not None:
            return self._places.get(key)
        block_number = bisect_right(self._value_blocks, key, key=lambda block: block[0]) - 1
        if block_number < 0:
            return None
        at = self._first + self._value_blocks[block_number][1]
        (count,) = _INT.unpack_from(self._data, at)
        at += _INT.size
        for _ in range(count):
            block_key, at = self._kind.unpack(self._data, at)
            if block_key == key:
                return _PLACE.unpack_from(self._data, at)
            at += _PLACE.size
        return None

    def _rows_at(self, location: Location) -> BitMap:
        offset, length = location
        if offset < 0:
            if -1 - offset >= self.rows:
                raise ValueError(f"a value is in row {-1 - offset} of a file of {self.rows} rows")
            return BitMap([-1 - offset])
        start = self._body + offset
        # Version 1 stores no lengths; the bitmap itself has its length.
        end = len(self._data) if length < 0 else start + length
        return read_roaring(self._data[start:end], self.rows)
