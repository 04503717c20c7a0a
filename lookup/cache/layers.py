"""One layer of a memory cache: keys sorted by their hash, each with its value, in files that are mapped.

A layer named `7` is a few files of machine words that never change once they are complete::

    7.hashes      the hash of each key, ascending
    7.keys        the keys without the hash they begin with, one after another
    7.key-ends    where each key begins, and the end; missing if all keys are equally long
    7.values      the values, one after another
    7.value-ends  where each value begins, and the end

A value of no length says that the key was deleted. Pages of the files are shared by all processes of a host,
and read when they are first needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lockgate.lookup.cache.backends import Piece
from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows, Scattered, UInt64s, offsets_of, ragged
from lockgate.lookup.codec.key_codec import distinct

PARTS = ("hashes", "keys", "key-ends", "values", "value-ends")
# Layers are merged in ranges of this many keys of the largest, to bound the memory.
MERGE_ROWS = 1 << 18
_WORD = 8


def hashes_of(keys: Rows) -> UInt64s:
    """Return the hashes that encoded keys begin with."""
    return keys.words[keys.starts].byteswap()


def _map(path: Path, kind: Any) -> Any:
    # An empty file cannot be mapped.
    return np.asarray(np.memmap(path, kind, "r")) if path.stat().st_size else np.zeros(0, kind)


class Layer:
    """A layer open for reading, for as long as it is referred to, even if its files are removed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.hashes: UInt64s = _map(folder / f"{name}.hashes", np.uint64)
        self._keys: UInt64s = _map(folder / f"{name}.keys", np.uint64)
        ends = folder / f"{name}.key-ends"
        self._key_ends: Int64s | None = _map(ends, np.int64) if ends.exists() else None
        self._values: UInt64s = _map(folder / f"{name}.values", np.uint64)
        self._value_ends: Int64s = _map(folder / f"{name}.value-ends", np.int64)

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def nbytes(self) -> int:
        """The bytes of all files."""
        ends = 0 if self._key_ends is None else self._key_ends.nbytes
        return self.hashes.nbytes + self._keys.nbytes + ends + self._values.nbytes + self._value_ends.nbytes

    def find(self, keys: Rows, hashes: UInt64s) -> Int64s:
        """Return the position of each key, -1 where there is none; fastest for ascending hashes."""
        found = np.full(len(keys), -1, np.int64)
        if len(self) == 0:
            return found
        at: Int64s = np.searchsorted(self.hashes, hashes)
        asked = np.flatnonzero(self.hashes[np.minimum(at, len(self) - 1)] == hashes)
        at = at[asked]
        while len(asked):
            same = self._is_at(keys, asked, at)
            found[asked[same]] = at[same]
            # Another key of the same hash may follow.
            asked, at = asked[~same], at[~same] + 1
            more = at < len(self)
            more[more] = self.hashes[at[more]] == hashes[asked[more]]
            asked, at = asked[more], at[more]
        return found

    def _is_at(self, keys: Rows, asked: Int64s, at: Int64s) -> Bools:
        # Tells whether key asked[i] is the one at position at[i]; their hashes are equal.
        starts, lengths = keys.starts[asked] + 1, keys.lengths[asked] - 1
        mine, held = self._key_places(at)
        same: Bools = held == lengths
        if self._key_ends is None and same.all():
            for word in range(int(held[0]) if len(held) else 0):
                same &= self._keys[mine + word] == keys.words[starts + word]
            return same
        pairs = np.flatnonzero(same)
        if len(pairs):
            count = lengths[pairs]
            left, right = ragged(starts[pairs], count), ragged(mine[pairs], count)
            differs = keys.words[left] != self._keys[right]
            same[pairs] = ~np.logical_or.reduceat(differs, offsets_of(count)[:-1])
        return same

    def _key_places(self, at: Int64s) -> tuple[Int64s, Int64s]:
        if self._key_ends is None:
            width = len(self._keys) // max(1, len(self))
            return at * width, np.full(len(at), width, np.int64)
        starts = self._key_ends[at]
        return starts, self._key_ends[at + 1] - starts

    def values(self, at: Int64s) -> Scattered:
        """Return the values at positions, where they lie."""
        starts = self._value_ends[at]
        return Scattered(self._values, starts, self._value_ends[at + 1] - starts)

    def piece(self, first: int, end: int) -> Piece:
        """Return the keys, complete, and values from position `first` to `end`."""
        starts, lengths = self._key_places(np.arange(first, end, dtype=np.int64))
        offsets = offsets_of(lengths + 1)
        words = np.empty(int(offsets[-1]), np.uint64)
        words[offsets[:-1]] = self.hashes[first:end].byteswap()
        rest = np.ones(len(words), bool)
        rest[offsets[:-1]] = False
        if len(starts):
            words[rest] = self._keys[int(starts[0]) : int(starts[-1] + lengths[-1])]
        edges = self._value_ends[first : end + 1]
        values = self._values[int(edges[0]) : int(edges[-1])]
        return Rows(words, offsets), Rows(values, edges - edges[0])


class LayerWriter:
    """A layer in the making; keys must come strictly ascending, over all calls."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self._folder = folder
        self._name = name
        self._files: dict[str, BinaryIO] = {}
        self._rows = 0
        self._width: int | None = None
        self._key_words = 0
        self._value_words = 0
        # Files of an unfinished layer of this name would pass for those of this one.
        (folder / f"{name}.key-ends").unlink(missing_ok=True)
        self._write("value-ends", np.zeros(1, np.int64))
        for part in ("hashes", "keys", "values"):
            self._write(part, np.zeros(0, np.int64))

    def _write(self, part: str, array: Any) -> None:
        if part not in self._files:
            self._files[part] = open(self._folder / f"{self._name}.{part}", "wb")  # noqa: SIM115 - by finish
        array.tofile(self._files[part])

    def put(self, keys: Rows, values: Rows) -> None:
        """Add keys with their values; one of no length deletes what older layers hold under the key."""
        if len(keys) == 0:
            return
        lengths = keys.lengths - 1
        self._write("hashes", hashes_of(keys))
        rest = np.ones(int(keys.offsets[-1] - keys.offsets[0]), bool)
        rest[keys.starts - keys.offsets[0]] = False
        self._write("keys", keys.words[keys.offsets[0] : keys.offsets[-1]][rest])
        self._put_key_ends(lengths)
        self._write("values", values.words[values.offsets[0] : values.offsets[-1]])
        self._write("value-ends", values.offsets[1:] - values.offsets[0] + self._value_words)
        self._rows += len(keys)
        self._key_words += int(lengths.sum())
        self._value_words += int(values.offsets[-1] - values.offsets[0])

    def _put_key_ends(self, lengths: Int64s) -> None:
        if self._width is None:
            self._width = int(lengths[0])
        if "key-ends" not in self._files:
            if (lengths == self._width).all():
                return
            self._write("key-ends", np.arange(self._rows + 1, dtype=np.int64) * self._width)
        self._write("key-ends", np.cumsum(lengths) + self._key_words)

    def finish(self) -> Path:
        """Bring the layer to the disk, complete; returns its folder and name in one path."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        self.close()
        return self.path

    def close(self) -> None:
        """Release the files."""
        for file in self._files.values():
            file.close()


def merged(layers: Sequence[Layer], *, bottom: bool) -> Iterator[Piece]:
    """Merge layers, the oldest first; what the last of them says of a key counts.

    With `bottom` there are no older ones: keys that were deleted are left out.
    """
    largest = max(layers, key=len)
    marks = largest.hashes[MERGE_ROWS::MERGE_ROWS]
    edges = [[0, *np.searchsorted(layer.hashes, marks).tolist(), len(layer)] for layer in layers]
    for ranges in zip(*(list(pairwise(edge)) for edge in edges), strict=True):
        pieces = [layer.piece(*span) for layer, span in zip(layers, ranges, strict=True)]
        keys = Rows.concatenate([piece[0] for piece in pieces])
        if len(keys) == 0:
            continue
        values = Rows.concatenate([piece[1] for piece in pieces])
        groups = distinct(keys, hashes_of(keys))
        chosen: Int64s = groups.last
        if bottom:
            chosen = chosen[values.lengths[chosen] > 0]
        if len(chosen):
            yield keys.take(chosen), values.take(chosen)
