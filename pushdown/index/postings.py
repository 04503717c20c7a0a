"""Postings: the places that each key is in, encoded in blocks of keys that are read one by one.

A block has its keys as distances from the first, as Elias and Fano encode them: the lower bits as they are,
the upper ones in unary. A bit for each key says whether it has one place. Then come its places: of a key with
one place that place, of others a list of gaps, a bitmap, or a list of the places that lack the key, whichever
is shortest. Numbers of one kind have one width in bits within a block.
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
# Keys, bits of their lower parts, of single places and of sizes, keys with several places, bytes of the
# upper parts.
_HEAD = struct.Struct("<HBBBHI")
# Bits that one load of eight bytes has, wherever its first bit lies in a byte.
_MOST_BITS = 57
# Long lists are encoded together, as many as have so many places.
_MOST_FLAGS = 2**20
# More keys of a block are found by decoding all that it has.
_FEW_KEYS = 64
_SINGLE, _GAPS, _BITMAP, _MISSING = range(4)
_MODE_BITS = 2
_NONE: Words = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Postings:
    """Encoded postings: per block its first key, where it ends in `body`, and its checksum."""

    first: Words
    ends: Words
    sums: Words
    body: bytes


def sorted_pairs(keys: Words, places: Words) -> tuple[Words, Words]:
    """Return pairs of key and place by key, then place, each once."""
    bits = np.uint64(int(places.max()).bit_length() if len(places) else 0)
    if len(keys) and int(keys.max()).bit_length() + int(bits) <= 64:
        packed = distinct(keys << bits | places)  # numbers sort many times as fast as pairs
        return packed >> bits, packed & ((np.uint64(1) << bits) - np.uint64(1))
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
    return keys[fresh], places[fresh]


def encode(keys: Words, places: Words, total: int) -> Postings:
    """Encode `sorted_pairs`; `total` is the number of places that there are."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    bounds = np.append(starts, len(keys))
    blocks = [
        _encoded(keys[starts[at : at + BLOCK_KEYS]], bounds[at : at + BLOCK_KEYS + 1], places, total)
        for at in range(0, len(starts), BLOCK_KEYS)
    ]
    return Postings(
        keys[starts[::BLOCK_KEYS]],
        np.cumsum([len(block) for block in blocks], dtype=np.uint64),
        np.array([zlib.crc32(block) for block in blocks], np.uint64),
        b"".join(blocks),
    )


def _encoded(keys: Words, bounds: npt.NDArray[np.int64], places: Words, total: int) -> bytes:
    single = np.diff(bounds) == 1
    modes, sizes, bodies = _lists(bounds, ~single, places, total)
    far = keys - keys[0]
    low = _low_bits(far)
    high = _unary(far >> np.uint64(low))
    stored = sizes[modes != _BITMAP]  # a bitmap has a bit a place
    alone = places[bounds[:-1][single]]
    widths = [low, _width(alone), _width(stored)]
    head = _HEAD.pack(len(keys), *widths, int(np.count_nonzero(~single)), len(high))
    parts = [_packed(far, low), high, np.packbits(single, bitorder="little").tobytes()]
    parts += [
        _packed(modes.astype(np.uint64), _MODE_BITS),
        _packed(alone, widths[1]),
        _packed(stored, widths[2]),
    ]
    return b"".join([head, *parts, *bodies])


def _low_bits(far: Words) -> int:
    """Return how many lower bits of distances to keep apart, so that all take the least room."""
    return min(_MOST_BITS, max(0, (int(far[-1]) // len(far)).bit_length() - 1))


def _width(numbers: Words) -> int:
    return int(numbers.max()).bit_length() if len(numbers) else 0


def _unary(numbers: Words) -> bytes:
    """Return ascending numbers in unary: each is the number of zeros before its one."""
    flags = np.zeros(int(numbers[-1]) + len(numbers), np.uint8)
    flags[numbers.astype(np.int64) + np.arange(len(numbers))] = 1
    return np.packbits(flags, bitorder="little").tobytes()


def _lists(
    bounds: npt.NDArray[np.int64], several: npt.NDArray[np.bool_], places: Words, total: int
) -> tuple[Bytes, Words, list[bytes]]:
    """Return modes, sizes and bytes of the lists of keys with several places."""
    firsts, ends = bounds[:-1][several], bounds[1:][several]
    if not len(firsts):
        return np.zeros(0, np.uint8), _NONE, []
    counts = ends - firsts
    starts = np.append(0, np.cumsum(counts)[:-1])
    chosen = places[_ranges(firsts, counts)]
    gaps = _gaps(chosen)
    gaps[starts] = chosen[starts]
    data, widths = _varints(gaps)
    sizes = np.add.reduceat(widths, starts)
    modes = np.full(len(firsts), _GAPS, np.uint8)
    at = np.append(0, np.cumsum(sizes))
    long = np.flatnonzero((2 * counts > total) | (sizes > (total + 7) // 8))
    if not len(long):
        return modes, sizes.astype(np.uint64), [data]
    bodies = [data[start:end] for start, end in pairwise(at.tolist())]
    step = max(1, _MOST_FLAGS // total)
    for first in range(0, len(long), step):
        some = long[first : first + step]
        found = _shortest(places[_ranges(firsts[some], counts[some])], counts[some], total)
        for number, (mode, body) in zip(some.tolist(), found, strict=True):
            modes[number], bodies[number] = mode, body
    return modes, np.array([len(body) for body in bodies], np.uint64), bodies


def _ranges(firsts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return all numbers of ranges, of which each begins with a number and has so many."""
    before = np.append(0, np.cumsum(counts)[:-1])
    found: npt.NDArray[np.int64] = np.repeat(firsts - before, counts) + np.arange(int(counts.sum()))
    return found


def _shortest(places: Words, counts: npt.NDArray[np.int64], total: int) -> Iterator[tuple[int, bytes]]:
    """Yield the mode and the bytes of each of some long lists of places, which have so many places each."""
    flags = np.zeros((len(counts), total), np.uint8)
    flags[np.repeat(np.arange(len(counts)), counts), places.astype(np.int64)] = 1
    bitmaps = np.packbits(flags, axis=1, bitorder="little")
    owners, absent = np.nonzero(flags == 0)
    missing = absent.astype(np.uint64)
    gaps = _gaps(missing)
    firsts = np.searchsorted(owners, np.arange(len(counts) + 1))
    begun = firsts[:-1][np.diff(firsts) > 0]
    gaps[begun] = missing[begun]
    data, widths = _varints(gaps)
    bounds = np.append(0, np.cumsum(widths))[firsts]
    for bitmap, (start, end) in zip(bitmaps, pairwise(bounds.tolist()), strict=True):
        yield (_MISSING, data[start:end]) if end - start < len(bitmap) else (_BITMAP, bitmap.tobytes())


def _gaps(numbers: Words) -> Words:
    """Return ascending numbers each less the one before."""
    gaps = numbers.copy()
    gaps[1:] -= numbers[:-1]
    return gaps


def _packed(numbers: Words, width: int) -> bytes:
    """Return the lower bits of numbers, one number behind the other."""
    bits = numbers[:, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def _bytes_of(count: int, width: int) -> int:
    bits: int = count * width
    return (bits + 7) // 8


def _unpacked(data: bytes, at: int, count: int, width: int) -> Words:
    """Return what `_packed` packed; `data` has eight bytes more than it needs."""
    if width > _MOST_BITS or at + _bytes_of(count, width) + 8 > len(data):
        raise ValueError(f"{count} numbers of {width} bits at byte {at} are not there")
    # Each load of eight bytes begins at the byte in which a number begins.
    loads = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
    first = np.arange(count, dtype=np.uint64) * np.uint64(width)
    whole = loads[at + (first >> np.uint64(3)).astype(np.int64)] >> (first & np.uint64(7))
    found: Words = whole & np.uint64((1 << width) - 1)
    return found


def _varints(numbers: Words) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Return numbers by seven bits a byte, lowest first, the last byte below 128; and how long each is."""
    sizes = np.ones(len(numbers), np.int64)
    for part in range(1, 5):
        sizes += numbers >> np.uint64(7 * part) > 0
    ends = np.cumsum(sizes)
    out = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    starts = ends - sizes
    for part in range(5):
        has = sizes > part
        low = (numbers[has] >> np.uint64(7 * part)) & np.uint64(127)
        out[starts[has] + part] = low.astype(np.uint8) | np.where(sizes[has] > part + 1, 128, 0)
    return out.tobytes(), sizes


def _numbers(data: bytes) -> Words:
    """Return what `_varints` encoded."""
    raw = np.frombuffer(data, np.uint8)
    if not len(raw):
        return _NONE
    last = raw < 128
    if not last[-1]:
        raise ValueError("a list of places is cut off")
    starts = np.append(0, np.flatnonzero(last)[:-1] + 1)
    shift = (np.arange(len(raw)) - starts[np.cumsum(last) - last]).astype(np.uint64) * np.uint64(7)
    found: Words = np.add.reduceat((raw & 127).astype(np.uint64) << shift, starts)
    return found


class Block:
    """One block, decoded as far as it is asked; ValueError or struct's error for what is none."""

    def __init__(self, first: int, data: bytes, total: int) -> None:
        self._count, low, self._place_width, self._size_width, self._several, high = _HEAD.unpack_from(data)
        self._size = len(data)
        self._data = data + bytes(8)
        self._total = total
        self._first, self._low = first, low
        at = _HEAD.size + _bytes_of(self._count, low)
        bits = np.unpackbits(np.frombuffer(data, np.uint8, high, at), bitorder="little")
        ones = np.flatnonzero(bits.view(np.bool_))
        if len(ones) != self._count or low > _MOST_BITS:
            raise ValueError(f"{len(ones)} keys instead of {self._count}")
        # Ascending: the bits of each key above the lowest.
        self._upper = ones - np.arange(self._count)
        self._after_keys: int = at + high

    @cached_property
    def keys(self) -> Words:
        """All keys, ascending."""
        upper = self._upper.astype(np.uint64) << np.uint64(self._low)
        return (upper | _unpacked(self._data, _HEAD.size, self._count, self._low)) + np.uint64(self._first)

    def numbers_of(self, keys: Words) -> Sequence[int]:
        """Return the numbers of those of some ascending keys, none below the block's first, that it has."""
        if len(keys) > _FEW_KEYS:
            at = np.minimum(np.searchsorted(self.keys, keys), self._count - 1)
            found: list[int] = at[self.keys[at] == keys].tolist()
            return found
        wanted = [int(key) - self._first for key in keys]
        uppers = [key >> self._low for key in wanted]
        starts, ends = (np.searchsorted(self._upper, uppers, side).tolist() for side in ("left", "right"))
        lows = (1 << self._low) - 1
        return [
            number
            for key, start, end in zip(wanted, starts, ends, strict=True)
            for number in range(start, end)
            if self._low_bits(number) == key & lows
        ]

    def _low_bits(self, number: int) -> int:
        first = number * self._low
        at = _HEAD.size + (first >> 3)
        loaded: int = int.from_bytes(self._data[at : at + 8], "little")
        found: int = (loaded >> (first & 7)) & ((1 << self._low) - 1)
        return found

    # Of most blocks a long list asks only whether they have a key; the rest is decoded when one is found.

    @cached_property
    def _single(self) -> npt.NDArray[np.bool_]:
        raw = np.frombuffer(self._data, np.uint8, _bytes_of(self._count, 1), self._after_keys)
        return np.unpackbits(raw, count=self._count, bitorder="little").astype(np.bool_)

    @cached_property
    def _modes(self) -> Bytes:
        at = self._after_keys + _bytes_of(self._count, 1)
        modes = np.full(self._count, _SINGLE, np.uint8)
        modes[~self._single] = _unpacked(self._data, at, self._several, _MODE_BITS)
        return modes

    @property
    def _after_modes(self) -> int:
        return self._after_keys + _bytes_of(self._count, 1) + _bytes_of(self._several, _MODE_BITS)

    @cached_property
    def _singles(self) -> Words:
        return _unpacked(self._data, self._after_modes, self._count - self._several, self._place_width)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        at = self._after_modes + _bytes_of(self._count - self._several, self._place_width)
        modes = self._modes[~self._single]
        stored = modes != _BITMAP
        sizes = np.full(self._several, (self._total + 7) // 8, np.int64)
        listed = int(np.count_nonzero(stored))
        sizes[stored] = _unpacked(self._data, at, listed, self._size_width)
        first = at + _bytes_of(listed, self._size_width)
        ends: npt.NDArray[np.int64] = np.append(0, np.cumsum(sizes)).astype(np.int64) + first
        if int(ends[-1]) != self._size or bool(np.any(ends[1:] < ends[:-1])):
            raise ValueError("a block has another size than it says")
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
        listed = self._checked(np.cumsum(_numbers(data), dtype=np.uint64))
        if mode == _GAPS:
            return listed
        flags = np.ones(self._total, np.bool_)
        flags[listed] = False
        return np.flatnonzero(flags).astype(np.uint64)

    def _checked(self, places: Words) -> Words:
        if len(places) and int(places.max()) >= self._total:
            raise ValueError("a place lies beyond the last")
        return places

    def pairs(self) -> tuple[Words, Words]:
        """Return all keys with their places, in no order."""
        single = self._modes == _SINGLE
        others, counts, places = self._listed(np.flatnonzero(~single))
        keys = np.concatenate([self.keys[single], np.repeat(self.keys[others], counts)])
        return keys, np.concatenate([self._checked(self._singles), places])

    def _listed(self, others: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Any, Words]:
        """Return keys with several places in no order, how many each has, and the places."""
        modes = self._modes[others]
        gaps, bitmaps, missing = (np.flatnonzero(modes == mode) for mode in (_GAPS, _BITMAP, _MISSING))
        keys, counts, places = [others[gaps]], *([each] for each in self._gap_lists(gaps))
        step = max(1, _MOST_FLAGS // self._total)
        for numbers, flags_of in ((bitmaps, self._bitmap_flags), (missing, self._missing_flags)):
            for first in range(0, len(numbers), step):
                some = numbers[first : first + step]
                owners, found = np.nonzero(flags_of(some))
                keys.append(others[some])
                counts.append(np.bincount(owners, minlength=len(some)))
                places.append(found.astype(np.uint64))
        return np.concatenate(keys), np.concatenate(counts), np.concatenate(places)

    def _gap_lists(self, numbers: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Words]:
        """Return how many places some lists of gaps have, and the places."""
        starts = self._ends[numbers]
        sizes = self._ends[numbers + 1] - starts
        data = np.frombuffer(self._data, np.uint8)[_ranges(starts, sizes)]
        bounds = np.append(0, np.cumsum(sizes))
        last = np.append(np.True_, data < 128)
        if not np.all(last[bounds]):
            raise ValueError("a list of places is cut off")
        done = np.cumsum(last)[bounds] - 1
        gaps, counts = _numbers(data.tobytes()), np.diff(done)
        sums = np.cumsum(gaps, dtype=np.uint64)
        before = np.append(np.uint64(0), sums)[done[:-1]]
        return counts, self._checked(sums - np.repeat(before, counts))

    def _bitmap_flags(self, numbers: npt.NDArray[np.int64]) -> Bytes:
        within = np.arange((self._total + 7) // 8)
        data = np.frombuffer(self._data, np.uint8)[self._ends[numbers][:, None] + within]
        return np.unpackbits(data, axis=1, count=self._total, bitorder="little")

    def _missing_flags(self, numbers: npt.NDArray[np.int64]) -> Bytes:
        counts, absent = self._gap_lists(numbers)
        flags = np.ones((len(numbers), self._total), np.uint8)
        flags[np.repeat(np.arange(len(numbers)), counts), absent.astype(np.int64)] = 0
        return flags


def found_in(block: Block, keys: Words) -> list[BitMap]:
    """Return the places of those of some ascending keys that a block has."""
    return [BitMap(block.places(number).astype(np.uint32)) for number in block.numbers_of(keys)]
