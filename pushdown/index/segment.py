"""Segments: in which places of some files the keys of their columns are; immutable, read by ranges.

A place is a block of so many rows of a file, so that a large file is no larger a step than a small one. A
part belongs to one kind of index and one column, and may cover some of the files only. The bytes: a magic
number, the parts (blocks of postings, then a head that finds them), a directory as compressed JSON, and a
footer that finds the directory. Heads, blocks and the directory have checksums.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lockgate.errors import CorruptFileError
from lockgate.pushdown.index.inflate import inflated
from lockgate.pushdown.index.postings import Block, Words, encode, found_in

MAGIC = b"LGINDEX2"
_FOOTER = struct.Struct("<QII8s")
_PART_HEAD = struct.Struct("<IIII")  # blocks, bytes of the sets: covered files, places of nulls, of values
_ENTRY = 24
# Blocks that lie so near to each other are read at once.
_GAP = 64 * 2**10

ReadRange = Callable[[int, int], bytes]
"""Reads bytes of a segment: from where, how many."""


@dataclass(frozen=True, order=True)
class PartName:
    """The kind of index, the column's field id, and the type with which its values were written."""

    kind: str
    field: int
    type: str


@dataclass(frozen=True)
class PartContent:
    """Everything that a part says: pairs of key and place, the files covered, places with nulls and values.

    `chosen` says that nobody named the column: a rule took it, and may leave it out again.
    """

    keys: Words
    places: Words
    covered: BitMap
    nulls: BitMap
    values: BitMap
    chosen: bool = False


@dataclass(frozen=True)
class Files:
    """The files of a segment: their names, rows, and the rows of each of their places."""

    names: tuple[str, ...]
    rows: npt.NDArray[np.int64]
    block_rows: npt.NDArray[np.int64]

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first place of each file, and the number of all places."""
        counts = np.maximum(1, -(-self.rows // self.block_rows))
        return np.append(0, np.cumsum(counts)).astype(np.int64)

    @property
    def places(self) -> int:
        """The number of places."""
        return int(self.starts[-1])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each file by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def ranges_of(self, files: BitMap) -> BitMap:
        """Return all places of some files."""
        if len(files) == len(self.names):
            return BitMap(range(self.places))
        return BitMap.union(BitMap(), *(BitMap(range(*self.starts[n : n + 2].tolist())) for n in files))

    def having(self, places: BitMap) -> npt.NDArray[np.bool_]:
        """Return which files have one of some places."""
        flags = np.zeros(len(self.names), np.bool_)
        found = np.asarray(places.to_array(), np.int64)
        flags[np.searchsorted(self.starts, found, "right") - 1] = True
        return flags

    def rows_of(self, file: int, places: BitMap) -> BitMap:
        """Return the rows of a file that lie in some places."""
        first, end = self.starts[file : file + 2].tolist()
        size, rows = int(self.block_rows[file]), int(self.rows[file])
        found = BitMap()
        for number in places & BitMap(range(first, end)):
            start = (number - first) * size
            found.add_range(start, min(start + size, rows))
        return found


def write_segment(files: Files, parts: dict[PartName, PartContent]) -> bytes:
    """Return the bytes of a segment; pairs of keys and places are `sorted_pairs`."""
    chunks, described, at = [MAGIC], [], len(MAGIC)
    for name, content in sorted(parts.items()):
        postings = encode(content.keys, content.places, files.places)
        sets = [_serialized(each) for each in (content.covered, content.nulls, content.values)]
        table = np.stack([postings.first, postings.ends, postings.sums], axis=1)
        head = _PART_HEAD.pack(len(table), *map(len, sets)) + table.astype("<u8").tobytes() + b"".join(sets)
        described.append(
            {
                "kind": name.kind,
                "field": name.field,
                "type": name.type,
                "body": at,
                "head": at + len(postings.body),
                "length": len(head),
                "sum": zlib.crc32(head),
                "chosen": content.chosen,
                "pairs": len(content.keys),
            }
        )
        chunks += [postings.body, head]
        at += len(postings.body) + len(head)
    return b"".join([*chunks, _closing(at, files, described)])


def _closing(at: int, files: Files, parts: Sequence[dict[str, Any]]) -> bytes:
    """Return what follows the parts, which end at a place: the directory, and the footer that finds it."""
    directory = zlib.compress(json.dumps({**_described(files), "parts": parts}).encode())
    return directory + _FOOTER.pack(at, len(directory), zlib.crc32(directory), MAGIC)


def _described(files: Files) -> dict[str, Any]:
    return {
        "names": files.names,
        "rows": files.rows.tolist(),
        "block_rows": files.block_rows.tolist(),
    }


def _serialized(bitmap: BitMap) -> bytes:
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


class Segment:
    """A segment that is read by ranges; CorruptFileError, naming it, for bytes that are not what was written.

    `read_bytes` counts what was read of it.
    """

    def __init__(self, name: str, size: int, read: ReadRange) -> None:
        self.name = name
        self.read_bytes = 0
        self._read_range = read
        if size < len(MAGIC) + _FOOTER.size:
            raise CorruptFileError(f"{name} is damaged: {size} bytes are not a segment")
        at, length, checksum, magic = _FOOTER.unpack(self._read(size - _FOOTER.size, _FOOTER.size))
        if magic != MAGIC or at + length + _FOOTER.size != size:
            raise CorruptFileError(f"{name} is not a segment of an index, or is cut off")
        self._end = at
        self._load(self._checked(at, length, checksum))

    def _load(self, directory: bytes) -> None:
        try:
            listing = json.loads(inflated(directory, self.name))
            rows, block_rows = (np.array(listing[key], np.int64) for key in ("rows", "block_rows"))
            self.files = Files(tuple(listing["names"]), rows, block_rows)
            found = {PartName(each["kind"], each["field"], each["type"]): each for each in listing["parts"]}
            sound = len(rows) == len(block_rows) == len(self.files.names) and bool(np.all(block_rows > 0))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(f"{self.name} is damaged: {error}") from None
        if not sound:
            raise CorruptFileError(f"{self.name} is damaged: its directory contradicts itself")
        self._entries = list(found.values())
        self.parts = {name: SegmentPart(self, each) for name, each in found.items()}

    def rename(self, names: tuple[str, ...]) -> None:
        """Give the files other names, in order."""
        self.files = Files(names, self.files.rows, self.files.block_rows)

    def copied(self) -> bytes:
        """Return the segment's bytes with the names that its files have by now; no part is decoded."""
        return self._read(0, self._end) + _closing(self._end, self.files, self._entries)

    def _read(self, at: int, length: int) -> bytes:
        data = self._read_range(at, length)
        if len(data) != length:
            raise CorruptFileError(f"{self.name} is cut off: {len(data)} of {length} bytes at {at}")
        self.read_bytes += length
        return data

    def _checked(self, at: int, length: int, checksum: int) -> bytes:
        data = self._read(at, length)
        if zlib.crc32(data) != checksum:
            raise CorruptFileError(f"{self.name} is damaged: {length} bytes at {at} are not what was written")
        return data


class SegmentPart:
    """A part of a segment, whose head is read when it is asked first."""

    def __init__(self, segment: Segment, entry: dict[str, Any]) -> None:
        self._segment = segment
        self._entry = entry
        self.chosen = bool(entry["chosen"])
        self.pairs = int(entry["pairs"])

    @property
    def size(self) -> int:
        """The bytes of the part."""
        return int(self._entry["head"] - self._entry["body"] + self._entry["length"])

    @cached_property
    def _head(self) -> tuple[npt.NDArray[np.uint64], list[BitMap]]:
        entry = self._entry
        data = self._segment._checked(entry["head"], entry["length"], entry["sum"])
        blocks, *sizes = _PART_HEAD.unpack_from(data)
        table = np.frombuffer(data, "<u8", blocks * 3, _PART_HEAD.size).reshape(blocks, 3)
        at, sets = _PART_HEAD.size + blocks * _ENTRY, []
        for size in sizes:
            sets.append(BitMap.deserialize(data[at : at + size]))
            at += size
        return table, sets

    @property
    def covered(self) -> BitMap:
        """The files that the part knows."""
        return self._head[1][0]

    @cached_property
    def unknown(self) -> BitMap:
        """The places of files that the part does not know."""
        files = self._segment.files
        return files.ranges_of(BitMap(range(len(files.names))) - self.covered)

    @property
    def nulls(self) -> BitMap:
        """The places with a row without a value."""
        return self._head[1][1]

    @property
    def values(self) -> BitMap:
        """The places with a row that has a value."""
        return self._head[1][2]

    def places(self, keys: Words, *, every: bool) -> BitMap:
        """Return the places that have one of some ascending keys, or each of them."""
        wanted = len(keys)
        table = self._head[0]
        numbers = np.searchsorted(table[:, 0], keys, "right").astype(np.int64) - 1
        keys, numbers = keys[numbers >= 0], numbers[numbers >= 0]
        bounds = np.searchsorted(numbers, np.unique(numbers))
        parts = np.split(keys, bounds[1:])
        blocks = self._blocks(np.unique(numbers)).values()
        found = [each for block, part in zip(blocks, parts, strict=False) for each in found_in(block, part)]
        if not every:
            return BitMap.union(BitMap(), *found)
        return BitMap.intersection(*found) if found and len(found) == wanted else BitMap()

    def _blocks(self, numbers: npt.NDArray[np.int64]) -> dict[int, Block]:
        """Read blocks, neighbours at once."""
        table, start = self._head[0], int(self._entry["body"])
        ends = table[:, 1].astype(np.int64)
        starts = np.append(0, ends)
        found, total = {}, self._segment.files.places
        groups = np.split(numbers, np.flatnonzero(starts[numbers][1:] - ends[numbers][:-1] > _GAP) + 1)
        for group in groups:
            if not len(group):
                continue
            first = int(starts[group[0]])
            data = self._segment._read(start + first, int(ends[group[-1]]) - first)
            for number in group.tolist():
                block = data[int(starts[number]) - first : int(ends[number]) - first]
                found[number] = self._block(number, block, total)
        return found

    def _block(self, number: int, data: bytes, total: int) -> Block:
        table, name = self._head[0], self._segment.name
        if zlib.crc32(data) != int(table[number, 2]):
            raise CorruptFileError(f"{name} is damaged: block {number} is not what was written")
        return Block(int(table[number, 0]), data, total)

    def content(self) -> PartContent:
        """Read all of the part; its pairs are in no order."""
        blocks = self._blocks(np.arange(len(self._head[0]), dtype=np.int64))
        pairs = [block.pairs() for block in blocks.values()]
        none = np.zeros(0, np.uint64)
        keys = np.concatenate([none, *(each[0] for each in pairs)])
        places = np.concatenate([none, *(each[1] for each in pairs)])
        return PartContent(keys, places, self.covered, self.nulls, self.values, self.chosen)


def segment_of(data: bytes, name: str) -> Segment:
    """Return a segment whose bytes are in memory."""
    return Segment(name, len(data), lambda at, length: data[at : at + length])


def total_places(sources: Sequence[Segment]) -> int:
    """Return how many places some segments have."""
    return sum(source.files.places for source in sources)
