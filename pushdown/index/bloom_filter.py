"""Bloom filters of a file's values: whether the file may contain a value.

Source: Paimon's `BloomFilterFileIndex` and `BloomFilter64`.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import numpy.typing as npt

from lockgate.pushdown.index.hashes import hashes_of
from lockgate.pushdown.index.ordered import distinct
from lockgate.pushdown.index.value_kinds import Keys, Numbers, ValueKind

FALSE_POSITIVES = 0.1
"""Default false positive rate."""

_COUNT = struct.Struct(">i")
# No false positive rate that a double can represent needs more hashes.
_MAX_HASHES = 1100


def write_bloom_filter(
    kind: ValueKind, keys: Keys, items: int | None = None, fpp: float = FALSE_POSITIVES
) -> bytes:
    """Return the Bloom filter of a column's keys.

    It is sized for `items` values, None: for the number of distinct keys. Readers take its size from its
    length.
    """
    hashed = distinct(hashes_of(kind, keys))
    bits, hashes = _filter_size(max(1, len(hashed)) if items is None else items, fpp)
    bit_flags = np.zeros(bits, np.uint8)
    bit_flags[_bit_positions(hashed, bits, hashes).ravel()] = 1
    return _COUNT.pack(hashes) + np.packbits(bit_flags, bitorder="little").tobytes()


class BloomFilter:
    """Reads a Bloom filter; ValueError for invalid bytes."""

    def __init__(self, kind: ValueKind, data: bytes) -> None:
        self._kind = kind
        (self._hashes,) = _COUNT.unpack_from(data)
        self._bytes = np.frombuffer(data, np.uint8, offset=_COUNT.size)
        if not 0 < self._hashes <= _MAX_HASHES or not len(self._bytes):
            raise ValueError(f"a Bloom filter of {len(self._bytes)} bytes has not {self._hashes} hashes")

    def may_hold(self, keys: Keys) -> bool:
        """Return whether the file may have one of the keys; False means that it has none."""
        bit_positions = _bit_positions(hashes_of(self._kind, keys), len(self._bytes) * 8, self._hashes)
        return bool(np.any(np.all((self._bytes[bit_positions >> 3] >> (bit_positions & 7)) & 1, axis=1)))


def _filter_size(items: int, fpp: float) -> tuple[int, int]:
    bits = int(-items * math.log(fpp) / (math.log(2) * math.log(2)))
    bits += 8 - bits % 8  # as in Paimon, which adds a byte even to a whole number of bytes
    return bits, max(1, math.floor(bits / items * math.log(2) + 0.5))


def _bit_positions(hashed: Numbers, bits: int, hashes: int) -> npt.NDArray[np.int64]:
    low, high = hashed.astype(np.int32), (hashed >> 32).astype(np.int32)
    with np.errstate(over="ignore"):
        mixed = low[:, None] + np.arange(1, hashes + 1, dtype=np.int32)[None, :] * high[:, None]
    return np.where(mixed < 0, ~mixed, mixed).astype(np.int64) % bits
