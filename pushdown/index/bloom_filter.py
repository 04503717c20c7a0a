"""Bloom filters of a file's values: whether the file may have one of some values.

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
"""The share of absent values that are taken for present ones, by default."""

_COUNT = struct.Struct(">i")
# No false positive rate that a double can hold asks for more.
_MOST_HASHES = 1100


def write_bloom_filter(
    kind: ValueKind, keys: Keys, items: int | None = None, fpp: float = FALSE_POSITIVES
) -> bytes:
    """Return the filter of a column's keys.

    It is made for `items` values; None: for as many as there are, as readers take its size from its length.
    """
    hashed = distinct(hashes_of(kind, keys))
    bits, hashes = _shape(max(1, len(hashed)) if items is None else items, fpp)
    filled = np.zeros(bits, np.uint8)
    filled[_places(hashed, bits, hashes).ravel()] = 1
    return _COUNT.pack(hashes) + np.packbits(filled, bitorder="little").tobytes()


class BloomFilter:
    """A filter as read; ValueError if it is none."""

    def __init__(self, kind: ValueKind, data: bytes) -> None:
        self._kind = kind
        (self._hashes,) = _COUNT.unpack_from(data)
        self._held = np.frombuffer(data, np.uint8, offset=_COUNT.size)
        if not 0 < self._hashes <= _MOST_HASHES or not len(self._held):
            raise ValueError(f"a Bloom filter of {len(self._held)} bytes has not {self._hashes} hashes")

    def may_hold(self, keys: Keys) -> bool:
        """Say whether one of the keys may be there; False is certain."""
        places = _places(hashes_of(self._kind, keys), len(self._held) * 8, self._hashes)
        return bool(np.any(np.all((self._held[places >> 3] >> (places & 7)) & 1, axis=1)))


def _shape(items: int, fpp: float) -> tuple[int, int]:
    bits = int(-items * math.log(fpp) / (math.log(2) * math.log(2)))
    bits += 8 - bits % 8  # Paimon adds a byte to whole bytes too
    return bits, max(1, math.floor(bits / items * math.log(2) + 0.5))


def _places(hashed: Numbers, bits: int, hashes: int) -> npt.NDArray[np.int64]:
    low, high = hashed.astype(np.int32), (hashed >> 32).astype(np.int32)
    with np.errstate(over="ignore"):
        mixed = low[:, None] + np.arange(1, hashes + 1, dtype=np.int32)[None, :] * high[:, None]
    return np.where(mixed < 0, ~mixed, mixed).astype(np.int64) % bits
