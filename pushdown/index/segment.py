"""Segments of the index database: the places of files in which each key is; immutable, read by ranges.

A place is a block of consecutive rows of a file, so a match in a large file does not select the whole file. A
part has the keys of one column in one kind of index, and covers all or some of the files. The bytes are: a
magic number, the parts (blocks of postings, then a head with their offsets), a directory as compressed JSON,
and a footer with the directory's offset. Heads, blocks and the directory have checksums.
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
from lockgate.pushdown.index.postings import Block, Words, encode, find_keys

MAGIC = b"LGINDEX2"
_FOOTER = struct.Struct("<QII8s")
_PART_HEAD = struct.Struct(
    "<IIII"
)  # number of blocks; bytes of three bitmaps: covered files, places with nulls, places with values
_ENTRY = 24
# Blocks with gaps of at most this many bytes are read by one request.
_GAP = 64 * 2**10

ReadRange = Callable[[int, int], bytes]
"""Reads bytes of a segment, by offset and length."""


@dataclass(frozen=True, order=True)
class PartName:
    """The name of a part: kind of index, field id of the column, and type with which values were written."""

    kind: str
    field: int
    type: str


@dataclass(frozen=True)
class PartContent:
    """The content of a part: pairs of key and place, covered files, places with nulls and with values.

    `chosen` is true if a rule, not a table option, indexed the column; the rule may drop it again.
    """

    keys: Words
    places: Words
    covered: BitMap
    nulls: BitMap
    values: BitMap
    chosen: bool = False


@dataclass(frozen=True)
class Files:
    """The files of a segment: their names, row counts, and rows per place."""

    names: tuple[str, ...]
    rows: npt.NDArray[np.int64]
    block_rows: npt.NDArray[np.int64]

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first place of each file, and at the end the number of places."""
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
        """Return all places of these files."""
        if len(files) == len(self.names):
            return BitMap(range(self.places))
        return BitMap.union(BitMap(), *(BitMap(range(*self.starts[n : n + 2].tolist())) for n in files))

    def files_with(self, places: BitMap) -> npt.NDArray[np.bool_]:
        """Return a mask of the files that have one of these places."""
        flags = np.zeros(len(self.names), np.bool_)
        place_numbers = np.asarray(places.to_array(), np.int64)
        flags[np.searchsorted(self.starts, place_numbers, "right") - 1] = True
        return flags

    def rows_of(self, file: int, places: BitMap) -> BitMap:
        """Return the rows of a file that lie in these places."""
        first, end = self.starts[file : file + 2].tolist()
        size, rows = int(self.block_rows[file]), int(self.rows[file])
        file_rows = BitMap()
        for number in places & BitMap(range(first, end)):
            start = (number - first) * size
            file_rows.add_range(start, min(start + size, rows))
        return file_rows


def write_segment(files: Files, parts: dict[PartName, PartContent]) -> bytes:
    """Return the bytes of a segment; the pairs of its parts are `sorted_pairs`."""
    chunks, entries, offset = [MAGIC], [], len(MAGIC)
    for name, content in sorted(parts.items()):
        postings = encode(content.keys, content.places, files.places)
        sets = [_serialized(bitmap) for bitmap in (content.covered, content.nulls, content.values)]
        table = np.stack([postings.first, postings.ends, postings.sums], axis=1)
        head = _PART_HEAD.pack(len(table), *map(len, sets)) + table.astype("<u8").tobytes() + b"".join(sets)
        entries.append(
            {
                "kind": name.kind,
                "field": name.field,
                "type": name.type,
                "body": offset,
                "head": offset + len(postings.body),
                "length": len(head),
                "sum": zlib.crc32(head),
                "chosen": content.chosen,
                "pairs": len(content.keys),
            }
        )
        chunks += [postings.body, head]
        offset += len(postings.body) + len(head)
    return b"".join([*chunks, _directory_and_footer(offset, files, entries)])


def _directory_and_footer(offset: int, files: Files, parts: Sequence[dict[str, Any]]) -> bytes:
    """Return the end of a segment after the parts, which end at `offset`: directory and footer."""
    directory = zlib.compress(json.dumps({**_files_json(files), "parts": parts}).encode())
    return directory + _FOOTER.pack(offset, len(directory), zlib.crc32(directory), MAGIC)


def _files_json(files: Files) -> dict[str, Any]:
    return {
        "names": files.names,
        "rows": files.rows.tolist(),
        "block_rows": files.block_rows.tolist(),
    }


def _serialized(bitmap: BitMap) -> bytes:
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


class Segment:
    """A segment, read by ranges; CorruptFileError with its name for damaged bytes.

    `read_bytes` counts the bytes read from it.
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
        self._load(self._read_checked(at, length, checksum))

    def _load(self, directory: bytes) -> None:
        try:
            listing = json.loads(inflated(directory, self.name))
            rows, block_rows = (np.array(listing[key], np.int64) for key in ("rows", "block_rows"))
            self.files = Files(tuple(listing["names"]), rows, block_rows)
            entries = {
                PartName(entry["kind"], entry["field"], entry["type"]): entry for entry in listing["parts"]
            }
            is_consistent = len(rows) == len(block_rows) == len(self.files.names) and bool(
                np.all(block_rows > 0)
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(f"{self.name} is damaged: {error}") from None
        if not is_consistent:
            raise CorruptFileError(f"{self.name} is damaged: its directory contradicts itself")
        self._entries = list(entries.values())
        self.parts = {name: SegmentPart(self, entry) for name, entry in entries.items()}

    def rename(self, names: tuple[str, ...]) -> None:
        """Replace the names of the files, in order."""
        self.files = Files(names, self.files.rows, self.files.block_rows)

    def copied(self) -> bytes:
        """Return the segment's bytes with its files' current names, without decoding any part."""
        return self._read(0, self._end) + _directory_and_footer(self._end, self.files, self._entries)

    def _read(self, offset: int, length: int) -> bytes:
        data = self._read_range(offset, length)
        if len(data) != length:
            raise CorruptFileError(f"{self.name} is cut off: {len(data)} of {length} bytes at {offset}")
        self.read_bytes += length
        return data

    def _read_checked(self, offset: int, length: int, checksum: int) -> bytes:
        data = self._read(offset, length)
        if zlib.crc32(data) != checksum:
            raise CorruptFileError(
                f"{self.name} is damaged: {length} bytes at {offset} are not what was written"
            )
        return data


class SegmentPart:
    """A part of a segment; its head is read on first use."""

    def __init__(self, segment: Segment, entry: dict[str, Any]) -> None:
        self._segment = segment
        self._entry = entry
        self.chosen = bool(entry["chosen"])
        self.pairs = int(entry["pairs"])

    @property
    def size(self) -> int:
        """The part's size in bytes."""
        return int(self._entry["head"] - self._entry["body"] + self._entry["length"])

    @cached_property
    def _head(self) -> tuple[npt.NDArray[np.uint64], list[BitMap]]:
        entry = self._entry
        data = self._segment._read_checked(entry["head"], entry["length"], entry["sum"])
        blocks, *sizes = _PART_HEAD.unpack_from(data)
        table = np.frombuffer(data, "<u8", blocks * 3, _PART_HEAD.size).reshape(blocks, 3)
        at, bitmaps = _PART_HEAD.size + blocks * _ENTRY, []
        for size in sizes:
            bitmaps.append(BitMap.deserialize(data[at : at + size]))
            at += size
        return table, bitmaps

    @property
    def covered(self) -> BitMap:
        """The numbers of the files that the part covers."""
        return self._head[1][0]

    @cached_property
    def uncovered(self) -> BitMap:
        """The places of files that the part does not cover."""
        files = self._segment.files
        return files.ranges_of(BitMap(range(len(files.names))) - self.covered)

    @property
    def nulls(self) -> BitMap:
        """The places that have a null."""
        return self._head[1][1]

    @property
    def values(self) -> BitMap:
        """The places that have a value."""
        return self._head[1][2]

    def places(self, keys: Words, *, every: bool) -> BitMap:
        """Return the places that have one of the ascending `keys`, or with `every` all of them."""
        key_count = len(keys)
        table = self._head[0]
        numbers = np.searchsorted(table[:, 0], keys, "right").astype(np.int64) - 1
        keys, numbers = keys[numbers >= 0], numbers[numbers >= 0]
        bounds = np.searchsorted(numbers, np.unique(numbers))
        parts = np.split(keys, bounds[1:])
        blocks = self._blocks(np.unique(numbers)).values()
        key_places = [
            bitmap for block, part in zip(blocks, parts, strict=False) for bitmap in find_keys(block, part)
        ]
        if not every:
            return BitMap.union(BitMap(), *key_places)
        return BitMap.intersection(*key_places) if key_places and len(key_places) == key_count else BitMap()

    def _blocks(self, numbers: npt.NDArray[np.int64]) -> dict[int, Block]:
        """Read blocks; blocks near each other are read by one request."""
        table, start = self._head[0], int(self._entry["body"])
        ends = table[:, 1].astype(np.int64)
        starts = np.append(0, ends)
        blocks, total = {}, self._segment.files.places
        groups = np.split(numbers, np.flatnonzero(starts[numbers][1:] - ends[numbers][:-1] > _GAP) + 1)
        for group in groups:
            if not len(group):
                continue
            first = int(starts[group[0]])
            data = self._segment._read(start + first, int(ends[group[-1]]) - first)
            for number in group.tolist():
                block_data = data[int(starts[number]) - first : int(ends[number]) - first]
                blocks[number] = self._block(number, block_data, total)
        return blocks

    def _block(self, number: int, data: bytes, total: int) -> Block:
        table, name = self._head[0], self._segment.name
        if zlib.crc32(data) != int(table[number, 2]):
            raise CorruptFileError(f"{name} is damaged: block {number} is not what was written")
        return Block(int(table[number, 0]), data, total)

    def content(self) -> PartContent:
        """Read the complete part; its pairs are in no order."""
        blocks = self._blocks(np.arange(len(self._head[0]), dtype=np.int64))
        pairs = [block.pairs() for block in blocks.values()]
        none = np.zeros(0, np.uint64)
        keys = np.concatenate([none, *(block_pairs[0] for block_pairs in pairs)])
        places = np.concatenate([none, *(block_pairs[1] for block_pairs in pairs)])
        return PartContent(keys, places, self.covered, self.nulls, self.values, self.chosen)


def segment_of(data: bytes, name: str) -> Segment:
    """Return a segment over bytes in memory."""
    return Segment(name, len(data), lambda at, length: data[at : at + length])


def total_places(sources: Sequence[Segment]) -> int:
    """Return the number of places of segments."""
    return sum(source.files.places for source in sources)
