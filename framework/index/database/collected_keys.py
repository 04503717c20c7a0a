"""Keys that Spark's tasks collect for a file: the columns to collect, and the format of the keys.

The bytes begin with a magic number, the row count of the file, the rows of a block, and the number of
columns. A column begins with a byte that is 1 if it was collected. Then come the number of its runs, two
bitmaps of blocks (with nulls, with values), and the runs. A run has ascending keys of one block: the block's
number, the number of keys, the width of distances in bytes, the first key, and the distance of each other key
from the previous one. A block may have several runs. A checksum is at the end.

The Java twin `io.lockgate.spark.index` writes them. Executors are not trusted: invalid bytes raise
InputError.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lockgate.errors import InputError
from lockgate.framework.index.database.blooms import BLOOM, Blooms
from lockgate.framework.index.database.segment_kinds import NGRAMS, VALUES, Ngrams, Values
from lockgate.framework.index.database.words import WORDS, Words
from lockgate.framework.plugins import IndexKind, TaskColumn
from lockgate.framework.store import IndexedField, value_kind_of
from lockgate.framework.types import Kind
from lockgate.pushdown.index import PartContent, distinct, sorted_pairs

Keys = npt.NDArray[np.uint64]

MAGIC = b"LGKEYS01"
_TWINS: dict[str, type] = {VALUES: Values, BLOOM: Blooms, NGRAMS: Ngrams, WORDS: Words}
_HEAD = struct.Struct("<8sQQI")
_RUNS = struct.Struct("<I")
_RUN = struct.Struct("<IIBQ")
_SUM = struct.Struct("<I")
# Keys of all kinds have fewer bits, so that no sum of distances exceeds 64 bits.
_KEY_BITS, _MAX_WIDTH = 40, 5
# Files with more blocks are read again by Python: a few bytes must not represent billions of blocks.
_MAX_BLOCKS = 2**20
_NONE: Keys = np.zeros(0, np.uint64)


def task_column(indexed: IndexedField, kind: IndexKind) -> TaskColumn | None:
    """Return the column to collect in tasks; None if only Python can index it."""
    if type(kind) is not _TWINS.get(indexed.kind):
        return None
    values = value_kind_of(indexed.field.type)
    # Spark has no type for times of day.
    if values is None or indexed.field.type.kind is Kind.TIME:
        return None
    return TaskColumn(indexed.field.name, indexed.kind, values.name)


@dataclass(frozen=True)
class CollectedKeys:
    """The keys of one column with their block numbers, and the blocks with nulls and with values."""

    keys: Keys
    blocks: Keys
    nulls: BitMap
    values: BitMap

    def content(self, blocks: int, *, chosen: bool) -> PartContent:
        """Return the segment part for a file with this number of blocks."""
        if blocks > 1:
            pairs = sorted_pairs(self.keys, self.blocks)
        else:
            keys = self.keys if bool(np.all(self.keys[1:] > self.keys[:-1])) else distinct(self.keys)
            pairs = keys, np.zeros(len(keys), np.uint64)
        return PartContent(*pairs, BitMap([0]), self.nulls, self.values, chosen)


def blocks_of(rows: int, block_rows: int) -> int:
    """Return the number of blocks of a file."""
    return max(1, -(-rows // block_rows))


def read_keys(data: bytes, columns: int, rows: int, block_rows: int) -> list[CollectedKeys | None]:
    """Parse the keys of a file by column; None for columns that the task did not collect.

    Raises InputError for damaged bytes, and for keys of another file or other columns.
    """
    if len(data) < _HEAD.size + _SUM.size:
        raise InputError(f"{len(data)} bytes are no keys of a file")
    content = memoryview(data)[: -_SUM.size]
    if zlib.crc32(content) != _SUM.unpack_from(data, len(content))[0]:
        raise InputError("the keys of a file are damaged")
    header = _HEAD.unpack_from(content)
    if header != (MAGIC, rows, block_rows, columns):
        raise InputError("the keys are of another file, of other columns or in another format")
    blocks = blocks_of(rows, block_rows)
    if blocks > _MAX_BLOCKS:
        raise InputError(f"the keys are of {blocks} blocks of a file, at most {_MAX_BLOCKS} are read")
    cursor = _Cursor(content, _HEAD.size)
    columns_keys = [_read_column(cursor, blocks) for _ in range(columns)]
    if cursor.at != len(content):
        raise InputError("there are more bytes than the keys of a file")
    return columns_keys


class _Cursor:
    """A read position in bytes; reading beyond the end raises InputError."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def take(self, count: int) -> memoryview:
        """Return the next bytes."""
        if count > len(self._data) - self.at:
            raise InputError("the keys of a file are cut off")
        self.at += count
        return self._data[self.at - count : self.at]

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        """Return the next numbers."""
        return form.unpack(self.take(form.size))


def _read_column(cursor: _Cursor, blocks: int) -> CollectedKeys | None:
    state = cursor.take(1)[0]
    if state > 1:
        raise InputError("the state of a column is neither 0 nor 1")
    if not state:
        return None
    (count,) = cursor.numbers(_RUNS)
    nulls, values = _read_blocks(cursor, blocks), _read_blocks(cursor, blocks)
    numbers: list[int] = []
    runs: list[Keys] = []
    for _ in range(count):
        block, keys = _read_run(cursor, blocks)
        numbers.append(block)
        runs.append(keys)
    lengths = [len(run) for run in runs]
    keys = np.concatenate([_NONE, *runs])
    return CollectedKeys(keys, np.repeat(np.array(numbers, np.uint64), lengths), nulls, values)


def _read_blocks(cursor: _Cursor, blocks: int) -> BitMap:
    flags = np.unpackbits(np.frombuffer(cursor.take((blocks + 7) // 8), np.uint8), bitorder="little")
    block_numbers = np.flatnonzero(flags)
    if len(block_numbers) and int(block_numbers[-1]) >= blocks:
        raise InputError("a block lies beyond the end of the file")
    return BitMap(block_numbers.astype(np.uint32))


def _read_run(cursor: _Cursor, blocks: int) -> tuple[int, Keys]:
    block, count, width, first = cursor.numbers(_RUN)
    if block >= blocks or not count or width > _MAX_WIDTH or (not width and count > 1):
        raise InputError("the keys of a block are inconsistent")
    raw = np.frombuffer(cursor.take((count - 1) * width), np.uint8).reshape(count - 1, width)
    distances = np.zeros((count - 1, 8), np.uint8)
    distances[:, :width] = raw
    keys = np.empty(count, np.uint64)
    keys[0] = first
    keys[1:] = distances.view("<u8").ravel()
    # With these limits on number and width, the sum of distances cannot exceed 64 bits.
    if first >> _KEY_BITS or count >> 20 or int(keys[1:].sum(dtype=np.uint64)) + first >> _KEY_BITS:
        raise InputError("a key has too many bits")
    return block, np.cumsum(keys, dtype=np.uint64)
