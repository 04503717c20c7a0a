"""Rows as bytes: one buffer that holds many rows one after another, each a multiple of eight bytes long."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

# Below this share of all rows, a group of equally long rows is sliced one by one.
_GROUP_AT_LEAST = 64


def offsets_of(lengths: Int64s) -> Int64s:
    """Turn lengths into offsets: one more element, the first zero, each the sum of what precedes it."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ragged(starts: Int64s, lengths: Int64s) -> Int64s:
    """Concatenate the ranges `[starts[i], starts[i] + lengths[i])`.

    >>> ragged(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    at: Int64s = np.repeat(starts - (ends - lengths), lengths)
    at += np.arange(total, dtype=np.int64)
    return at


@dataclass(frozen=True)
class Rows:
    """Many byte rows in one buffer: row i is the words `offsets[i]` to `offsets[i + 1]` of `words`.

    `words` is a flat array of unsigned 64-bit words in the machine's order, `offsets` counts words.
    """

    words: UInt64s
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def starts(self) -> Int64s:
        """Return where each row begins, in words."""
        return self.offsets[:-1]

    @property
    def lengths(self) -> Int64s:
        """The length of each row, in words."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def nbytes(self) -> int:
        """The bytes of all rows together."""
        return int(self.offsets[-1] - self.offsets[0]) * 8

    @classmethod
    def empty(cls) -> Rows:
        """Return no rows at all."""
        return cls(np.zeros(0, np.uint64), np.zeros(1, np.int64))

    @classmethod
    def concatenate(cls, parts: list[Rows]) -> Rows:
        """Put the rows of `parts` one after another."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        words = np.concatenate([part.words[part.offsets[0] : part.offsets[-1]] for part in parts])
        return cls(words, offsets_of(np.concatenate([part.lengths for part in parts])))

    @classmethod
    def from_values(cls, values: list[bytes]) -> Rows:
        """Lay out Python bytes, each a multiple of eight long, as rows."""
        data = b"".join(values)
        lengths = np.fromiter(map(len, values), np.int64, len(values)) >> 3
        return cls(np.frombuffer(data, np.uint64), offsets_of(lengths))

    def take(self, indices: Int64s) -> Rows:
        """Gather rows in a new order; a row may be taken several times."""
        lengths = self.lengths[indices]
        if len(lengths) and (lengths == lengths[0]).all():
            width = int(lengths[0])
            at = self.offsets[indices][:, None] + np.arange(width, dtype=np.int64)
            return Rows(self.words[at].ravel(), np.arange(len(indices) + 1, dtype=np.int64) * width)
        return self._take_by_arrow(indices)

    def _take_by_arrow(self, indices: Int64s) -> Rows:
        # Copies row by row; gathering word by word in numpy takes three times as long.
        if len(indices) == 0:
            return Rows.empty()
        taken = self._as_arrow.take(pa.array(indices))
        offsets = np.frombuffer(taken.buffers()[1], np.int64, len(indices) + 1, taken.offset * 8) >> 3
        words = np.frombuffer(taken.buffers()[2] or b"", np.uint64, int(offsets[-1]))
        return Rows(words, offsets)

    @cached_property
    def _as_arrow(self) -> pa.Array:
        buffers = [None, pa.py_buffer(self.offsets << 3), pa.py_buffer(self.words)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)

    def equal_at(self, left: Int64s, right: Int64s) -> Bools:
        """Say for each pair of row numbers whether the two rows have the same bytes."""
        lengths = self.lengths
        same: Bools = lengths[left] == lengths[right]
        pairs = np.flatnonzero(same)
        if len(pairs) == 0:
            return same
        count = lengths[left[pairs]]
        differs = (
            self.words[ragged(self.offsets[left[pairs]], count)]
            != self.words[ragged(self.offsets[right[pairs]], count)]
        )
        starts = offsets_of(count)[:-1]
        same[pairs] = ~np.logical_or.reduceat(differs, starts) if len(differs) else True
        return same

    def gather(self) -> Rows:
        """Return the rows themselves, which lie one after another already."""
        return self

    def to_bytes(self) -> list[bytes]:
        """Copy each row into a Python `bytes`, which is what RocksDB's binding takes."""
        count = len(self)
        if count == 0:
            return []
        lengths = self.lengths
        longest = int(lengths.max())
        if int(lengths.min()) == longest and longest > 0:
            return _equal_rows(self.words[self.offsets[0] : self.offsets[-1]], longest)
        if longest <= 16 and count >= _GROUP_AT_LEAST:
            return self._by_length(lengths, longest)
        data = self.words.tobytes()
        edges = (self.offsets * 8).tolist()
        return [data[start:end] for start, end in pairwise(edges)]

    def _by_length(self, lengths: Int64s, longest: int) -> list[bytes]:
        # Short rows (keys) come in few lengths: one call a length costs a third of a slice a row.
        out = np.empty(len(self), object)
        for length in range(longest + 1):
            rows = np.flatnonzero(lengths == length)
            if len(rows) == 0:
                continue
            if length == 0:
                out[rows] = b""
                continue
            at = self.offsets[rows][:, None] + np.arange(length, dtype=np.int64)
            out[rows] = _equal_rows(self.words[at].ravel(), length)
        values: list[bytes] = out.tolist()
        return values


@dataclass(frozen=True)
class Scattered:
    """Rows that lie anywhere in `words`, in any order: row i is `lengths[i]` words from `starts[i]`.

    Decoding them where they are saves the copy; `words` may be a mapped file.
    """

    words: UInt64s
    starts: Int64s
    lengths: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    def gather(self) -> Rows:
        """Copy the rows one after another."""
        return Rows(self.words[ragged(self.starts, self.lengths)], offsets_of(self.lengths))


def _equal_rows(words: UInt64s, width: int) -> list[bytes]:
    # The void type keeps trailing zero bytes; numpy's bytes type would strip them.
    values: list[bytes] = words.view(f"V{width * 8}").tolist()
    return values
