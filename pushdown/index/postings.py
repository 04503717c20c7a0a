"""Postings: the places of each key, encoded in blocks that are read separately.

A block begins with its keys in Elias-Fano encoding: each key's distance from the first, its lower bits stored
directly, its upper bits in unary. Then a bit for each key marks keys with a single place. Then come the
places: the place of each key with a single one, and for each other key the shortest of a list of gaps, a
bitmap, and a list of the places that lack the key. Within a block, all numbers of one kind have the same
width in bits.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lockgate.pushdown.index.ordered import distinct

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

BLOCK_KEYS = 1024
# Number of keys; bit widths of the keys' lower parts, of single places and of sizes; number of keys with
# several places; bytes of the upper parts.
_HEAD = struct.Struct("<HBBBHI")
# Bits that one load of eight bytes has from any first bit of a byte on.
_MAX_BITS = 57
# Flags (lists times places) of the long lists that are encoded together.
_MAX_FLAGS = 2**20
# To find more keys than this, decode all keys of the block.
_FEW_KEYS = 64
_SINGLE, _GAPS, _BITMAP, _MISSING = range(4)
_MODE_BITS = 2
_NONE: Words = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Postings:
    """Encoded postings: for each block its first key, its end in `body`, and its checksum."""

    first: Words
    ends: Words
    sums: Words
    body: bytes


def sorted_pairs(keys: Words, places: Words) -> tuple[Words, Words]:
    """Return the distinct pairs of key and place, sorted by key, then place."""
    bits = np.uint64(int(places.max()).bit_length() if len(places) else 0)
    if len(keys) and int(keys.max()).bit_length() + int(bits) <= 64:
        packed = distinct(keys << bits | places)  # numbers sort many times faster than pairs
        return packed >> bits, packed & ((np.uint64(1) << bits) - np.uint64(1))
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
    return keys[is_new], places[is_new]


def encode(keys: Words, places: Words, total: int) -> Postings:
    """Encode `sorted_pairs`; `total` is the number of all places."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    bounds = np.append(starts, len(keys))
    blocks = [
        _encode_block(keys[starts[at : at + BLOCK_KEYS]], bounds[at : at + BLOCK_KEYS + 1], places, total)
        for at in range(0, len(starts), BLOCK_KEYS)
    ]
    return Postings(
        keys[starts[::BLOCK_KEYS]],
        np.cumsum([len(block) for block in blocks], dtype=np.uint64),
        np.array([zlib.crc32(block) for block in blocks], np.uint64),
        b"".join(blocks),
    )


def _encode_block(keys: Words, bounds: npt.NDArray[np.int64], places: Words, total: int) -> bytes:
    single = np.diff(bounds) == 1
    modes, sizes, bodies = _encode_lists(bounds, ~single, places, total)
    distances = keys - keys[0]
    low = _low_bits(distances)
    high = _unary(distances >> np.uint64(low))
    stored_sizes = sizes[modes != _BITMAP]  # a bitmap's size follows from the number of places
    single_places = places[bounds[:-1][single]]
    widths = [low, _width(single_places), _width(stored_sizes)]
    head = _HEAD.pack(len(keys), *widths, int(np.count_nonzero(~single)), len(high))
    parts = [_packed(distances, low), high, np.packbits(single, bitorder="little").tobytes()]
    parts += [
        _packed(modes.astype(np.uint64), _MODE_BITS),
        _packed(single_places, widths[1]),
        _packed(stored_sizes, widths[2]),
    ]
    return b"".join([head, *parts, *bodies])


def _low_bits(distances: Words) -> int:
    """Return the number of lower bits of distances to store directly for the shortest encoding."""
    return min(_MAX_BITS, max(0, (int(distances[-1]) // len(distances)).bit_length() - 1))


def _width(numbers: Words) -> int:
    return int(numbers.max()).bit_length() if len(numbers) else 0


def _unary(numbers: Words) -> bytes:
    """Encode ascending numbers in unary: each is the number of zeros before its one."""
    flags = np.zeros(int(numbers[-1]) + len(numbers), np.uint8)
    flags[numbers.astype(np.int64) + np.arange(len(numbers))] = 1
    return np.packbits(flags, bitorder="little").tobytes()


def _encode_lists(
    bounds: npt.NDArray[np.int64], several: npt.NDArray[np.bool_], places: Words, total: int
) -> tuple[Bytes, Words, list[bytes]]:
    """Return the modes, sizes and bytes of the lists of keys with several places."""
    firsts, ends = bounds[:-1][several], bounds[1:][several]
    if not len(firsts):
        return np.zeros(0, np.uint8), _NONE, []
    counts = ends - firsts
    starts = np.append(0, np.cumsum(counts)[:-1])
    list_places = places[_ranges(firsts, counts)]
    gaps = _gaps(list_places)
    gaps[starts] = list_places[starts]
    data, widths = _varints(gaps)
    sizes = np.add.reduceat(widths, starts)
    modes = np.full(len(firsts), _GAPS, np.uint8)
    body_bounds = np.append(0, np.cumsum(sizes))
    long = np.flatnonzero((2 * counts > total) | (sizes > (total + 7) // 8))
    if not len(long):
        return modes, sizes.astype(np.uint64), [data]
    bodies = [data[start:end] for start, end in pairwise(body_bounds.tolist())]
    step = max(1, _MAX_FLAGS // total)
    for first in range(0, len(long), step):
        batch = long[first : first + step]
        encodings = _shortest_encodings(places[_ranges(firsts[batch], counts[batch])], counts[batch], total)
        for number, (mode, body) in zip(batch.tolist(), encodings, strict=True):
            modes[number], bodies[number] = mode, body
    return modes, np.array([len(body) for body in bodies], np.uint64), bodies


def _ranges(firsts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers of all ranges; each range has its first number and its count."""
    offsets = np.append(0, np.cumsum(counts)[:-1])
    numbers: npt.NDArray[np.int64] = np.repeat(firsts - offsets, counts) + np.arange(int(counts.sum()))
    return numbers


def _shortest_encodings(
    places: Words, counts: npt.NDArray[np.int64], total: int
) -> Iterator[tuple[int, bytes]]:
    """Yield the mode and the bytes of long lists of places; `counts` has the length of each list."""
    flags = np.zeros((len(counts), total), np.uint8)
    flags[np.repeat(np.arange(len(counts)), counts), places.astype(np.int64)] = 1
    bitmaps = np.packbits(flags, axis=1, bitorder="little")
    list_numbers, absent = np.nonzero(flags == 0)
    missing = absent.astype(np.uint64)
    gaps = _gaps(missing)
    firsts = np.searchsorted(list_numbers, np.arange(len(counts) + 1))
    list_starts = firsts[:-1][np.diff(firsts) > 0]
    gaps[list_starts] = missing[list_starts]
    data, widths = _varints(gaps)
    bounds = np.append(0, np.cumsum(widths))[firsts]
    for bitmap, (start, end) in zip(bitmaps, pairwise(bounds.tolist()), strict=True):
        yield (_MISSING, data[start:end]) if end - start < len(bitmap) else (_BITMAP, bitmap.tobytes())


def _gaps(numbers: Words) -> Words:
    """Return the difference of each ascending number from the one before."""
    gaps = numbers.copy()
    gaps[1:] -= numbers[:-1]
    return gaps


def _packed(numbers: Words, width: int) -> bytes:
    """Concatenate the lower `width` bits of numbers."""
    bits = numbers[:, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def _byte_count(count: int, width: int) -> int:
    bits: int = count * width
    return (bits + 7) // 8


def _unpacked(data: bytes, at: int, count: int, width: int) -> Words:
    """Decode the numbers of `_packed`; `data` must go on for eight bytes after them."""
    if width > _MAX_BITS or at + _byte_count(count, width) + 8 > len(data):
        raise ValueError(f"{count} numbers of {width} bits at byte {at} are missing")
    # Each load of eight bytes begins at the byte in which a number begins.
    loads = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    first = np.arange(count, dtype=np.uint64) * np.uint64(width)
    shifted = loads[at + (first >> np.uint64(3)).astype(np.int64)] >> (first & np.uint64(7))
    numbers: Words = shifted & np.uint64((1 << width) - 1)
    return numbers


def _varints(numbers: Words) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Encode numbers as varints, lowest seven bits first; return the bytes and the length of each varint."""
    sizes = np.ones(len(numbers), np.int64)
    for part in range(1, 5):
        sizes += numbers >> np.uint64(7 * part) > 0
    ends = np.cumsum(sizes)
    encoded = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    starts = ends - sizes
    for part in range(5):
        is_longer = sizes > part
        low = (numbers[is_longer] >> np.uint64(7 * part)) & np.uint64(127)
        encoded[starts[is_longer] + part] = low.astype(np.uint8) | np.where(
            sizes[is_longer] > part + 1, 128, 0
        )
    return encoded.tobytes(), sizes


def _decode_varints(data: bytes) -> Words:
    """Decode the numbers of `_varints`."""
    raw = np.frombuffer(data, np.uint8)
    if not len(raw):
        return _NONE
    is_last = raw < 128
    if not is_last[-1]:
        raise ValueError("a list of places is cut off")
    starts = np.append(0, np.flatnonzero(is_last)[:-1] + 1)
    shift = (np.arange(len(raw)) - starts[np.cumsum(is_last) - is_last]).astype(np.uint64) * np.uint64(7)
    numbers: Words = np.add.reduceat((raw & 127).astype(np.uint64) << shift, starts)
    return numbers


class Block:
    """One block, decoded on demand; ValueError or struct.error for invalid bytes."""

    def __init__(self, first: int, data: bytes, total: int) -> None:
        self._count, low, self._place_width, self._size_width, self._several, high = _HEAD.unpack_from(data)
        self._size = len(data)
        self._data = data + bytes(8)
        self._total = total
        self._first, self._low = first, low
        at = _HEAD.size + _byte_count(self._count, low)
        bits = np.unpackbits(np.frombuffer(data, np.uint8, high, at), bitorder="little")
        ones = np.flatnonzero(bits.view(np.bool_))
        if len(ones) != self._count or low > _MAX_BITS:
            raise ValueError(f"{len(ones)} keys instead of {self._count}")
        # The upper bits of each key, ascending.
        self._upper = ones - np.arange(self._count)
        self._after_keys: int = at + high

    @cached_property
    def keys(self) -> Words:
        """The keys of the block, ascending."""
        upper = self._upper.astype(np.uint64) << np.uint64(self._low)
        return (upper | _unpacked(self._data, _HEAD.size, self._count, self._low)) + np.uint64(self._first)

    def numbers_of(self, keys: Words) -> Sequence[int]:
        """Return the positions in the block of those `keys` that it has; `keys` ascend."""
        if len(keys) > _FEW_KEYS:
            positions = np.minimum(np.searchsorted(self.keys, keys), self._count - 1)
            numbers: list[int] = positions[self.keys[positions] == keys].tolist()
            return numbers
        distances = [int(key) - self._first for key in keys]
        uppers = [key >> self._low for key in distances]
        starts, ends = (np.searchsorted(self._upper, uppers, side).tolist() for side in ("left", "right"))
        lows = (1 << self._low) - 1
        return [
            number
            for key, start, end in zip(distances, starts, ends, strict=True)
            for number in range(start, end)
            if self._low_bits(number) == key & lows
        ]

    def _low_bits(self, number: int) -> int:
        first = number * self._low
        at = _HEAD.size + (first >> 3)
        loaded_bits: int = int.from_bytes(self._data[at : at + 8], "little")
        low_bits: int = (loaded_bits >> (first & 7)) & ((1 << self._low) - 1)
        return low_bits

    # A lookup of many keys finds none in most blocks, so everything after the keys is decoded on demand.

    @cached_property
    def _single(self) -> npt.NDArray[np.bool_]:
        raw = np.frombuffer(self._data, np.uint8, _byte_count(self._count, 1), self._after_keys)
        return np.unpackbits(raw, count=self._count, bitorder="little").astype(np.bool_)

    @cached_property
    def _modes(self) -> Bytes:
        at = self._after_keys + _byte_count(self._count, 1)
        modes = np.full(self._count, _SINGLE, np.uint8)
        modes[~self._single] = _unpacked(self._data, at, self._several, _MODE_BITS)
        return modes

    @property
    def _after_modes(self) -> int:
        return self._after_keys + _byte_count(self._count, 1) + _byte_count(self._several, _MODE_BITS)

    @cached_property
    def _singles(self) -> Words:
        return _unpacked(self._data, self._after_modes, self._count - self._several, self._place_width)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        at = self._after_modes + _byte_count(self._count - self._several, self._place_width)
        modes = self._modes[~self._single]
        stored = modes != _BITMAP
        sizes = np.full(self._several, (self._total + 7) // 8, np.int64)
        list_count = int(np.count_nonzero(stored))
        sizes[stored] = _unpacked(self._data, at, list_count, self._size_width)
        first = at + _byte_count(list_count, self._size_width)
        ends: npt.NDArray[np.int64] = np.append(0, np.cumsum(sizes)).astype(np.int64) + first
        if int(ends[-1]) != self._size or bool(np.any(ends[1:] < ends[:-1])):
            raise ValueError("a block has another size than its head states")
        return ends

    def places(self, number: int) -> Words:
        """Return the places of one key."""
        before = int(np.count_nonzero(self._modes[:number] == _SINGLE))
        mode = self._modes[number]
        if mode == _SINGLE:
            return self._checked(self._singles[before : before + 1])
        at = number - before
        data = self._data[self._ends[at] : self._ends[at + 1]]
        if mode == _BITMAP:
            flags = np.unpackbits(np.frombuffer(data, np.uint8), count=self._total, bitorder="little")
            return np.flatnonzero(flags).astype(np.uint64)
        listed_places = self._checked(np.cumsum(_decode_varints(data), dtype=np.uint64))
        if mode == _GAPS:
            return listed_places
        flags = np.ones(self._total, np.bool_)
        flags[listed_places] = False
        return np.flatnonzero(flags).astype(np.uint64)

    def _checked(self, places: Words) -> Words:
        if len(places) and int(places.max()) >= self._total:
            raise ValueError("a place lies beyond the last")
        return places

    def pairs(self) -> tuple[Words, Words]:
        """Return all pairs of key and place, in no order."""
        single = self._modes == _SINGLE
        several_numbers, counts, places = self._listed(np.flatnonzero(~single))
        keys = np.concatenate([self.keys[single], np.repeat(self.keys[several_numbers], counts)])
        return keys, np.concatenate([self._checked(self._singles), places])

    def _listed(self, key_numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Any, Words]:
        """Return the keys with several places in no order, the number of places of each, and the places."""
        modes = self._modes[key_numbers]
        gaps, bitmaps, missing = (np.flatnonzero(modes == mode) for mode in (_GAPS, _BITMAP, _MISSING))
        keys, counts, places = [key_numbers[gaps]], *([array] for array in self._gap_lists(gaps))
        step = max(1, _MAX_FLAGS // self._total)
        for numbers, flags_of in ((bitmaps, self._bitmap_flags), (missing, self._missing_flags)):
            for first in range(0, len(numbers), step):
                batch = numbers[first : first + step]
                key_indexes, place_numbers = np.nonzero(flags_of(batch))
                keys.append(key_numbers[batch])
                counts.append(np.bincount(key_indexes, minlength=len(batch)))
                places.append(place_numbers.astype(np.uint64))
        return np.concatenate(keys), np.concatenate(counts), np.concatenate(places)

    def _gap_lists(self, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Words]:
        """Return the number of places in lists of gaps, and the places."""
        starts = self._ends[numbers]
        sizes = self._ends[numbers + 1] - starts
        data = np.frombuffer(self._data, np.uint8)[_ranges(starts, sizes)]
        bounds = np.append(0, np.cumsum(sizes))
        is_last = np.append(np.True_, data < 128)
        if not np.all(is_last[bounds]):
            raise ValueError("a list of places is cut off")
        end_numbers = np.cumsum(is_last)[bounds] - 1
        gaps, counts = _decode_varints(data.tobytes()), np.diff(end_numbers)
        sums = np.cumsum(gaps, dtype=np.uint64)
        sums_before = np.append(np.uint64(0), sums)[end_numbers[:-1]]
        return counts, self._checked(sums - np.repeat(sums_before, counts))

    def _bitmap_flags(self, numbers: npt.NDArray[np.int64]) -> Bytes:
        within = np.arange((self._total + 7) // 8)
        data = np.frombuffer(self._data, np.uint8)[self._ends[numbers][:, None] + within]
        return np.unpackbits(data, axis=1, count=self._total, bitorder="little")

    def _missing_flags(self, numbers: npt.NDArray[np.int64]) -> Bytes:
        counts, absent = self._gap_lists(numbers)
        flags = np.ones((len(numbers), self._total), np.uint8)
        flags[np.repeat(np.arange(len(numbers)), counts), absent.astype(np.int64)] = 0
        return flags


def find_keys(block: Block, keys: Words) -> list[BitMap]:
    """Return the places of each of the ascending `keys` that the block has."""
    return [BitMap(block.places(number).astype(np.uint32)) for number in block.numbers_of(keys)]
