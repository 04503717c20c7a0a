"""One deletion vector: the positions of deleted rows in a data file, to and from its bytes.

Two layouts, which differ by their magic numbers: Paimon's own of 32 bits, and the one of 64 bits that it has
in common with Iceberg. Each is a size, a magic number, Roaring bitmaps in the portable format, and a CRC-32
of the magic number and the bitmaps. Source: Paimon's `BitmapDeletionVector` and `Bitmap64DeletionVector`. The
connector's twin is `DeletedRows`; both run the vectors of `tests/fixtures/vectors`.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from lockgate.errors import CorruptFileError, UnsupportedError
from lockgate.pushdown.index import are_in, distinct

Positions: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_SIZE = struct.Struct(">i")
_CRC = struct.Struct(">I")
# Paimon's own layout counts positions by Java's int.
_MOST_NARROW = 2**31 - 1
# The frame around the bytes that the size counts.
FRAME_BYTES = _SIZE.size + _CRC.size


@dataclass(frozen=True, eq=False)
class DeletedRows:
    """Deleted rows of one file; `positions` count from 0, ascend and are distinct."""

    positions: Positions

    @classmethod
    def of(cls, positions: object) -> DeletedRows:
        """Return a vector of positions in any order."""
        return cls(distinct(np.asarray(positions, np.uint64).ravel()))

    def __len__(self) -> int:
        return len(self.positions)

    def __or__(self, other: DeletedRows) -> DeletedRows:
        return DeletedRows(distinct(np.concatenate([self.positions, other.positions])))

    def __sub__(self, other: DeletedRows) -> DeletedRows:
        return DeletedRows(self.positions[~are_in(self.positions, other.positions)])

    def others(self, rows: int) -> DeletedRows:
        """Return the rows of a file of `rows` rows that are not among these."""
        mask = np.ones(rows, np.bool_)
        mask[self.positions.astype(np.int64)] = False
        return DeletedRows(np.flatnonzero(mask).astype(np.uint64))

    def kept(self, first: int, rows: int) -> Mask | None:
        """Return which of `rows` rows from position `first` on are left; None if all are."""
        low, high = np.searchsorted(self.positions, np.array([first, first + rows], np.uint64))
        if low == high:
            return None
        mask = np.ones(rows, np.bool_)
        mask[(self.positions[low:high] - np.uint64(first)).astype(np.int64)] = False
        return mask


def encode(deleted: DeletedRows, *, wide: bool) -> bytes:
    """Return the bytes of a vector; `wide` is the layout of 64 bits."""
    if wide:
        body = _MAGIC_64 + BitMap64(deleted.positions).serialize()
    elif len(deleted) and int(deleted.positions[-1]) >= _MOST_NARROW:
        raise UnsupportedError(
            "a file has more rows than deletion vectors of 32 bits can mark: set option "
            "'deletion-vectors.bitmap64' = 'true'"
        )
    else:
        body = _MAGIC_32 + BitMap(deleted.positions.astype(np.uint32)).serialize()
    return _SIZE.pack(len(body)) + body + _CRC.pack(zlib.crc32(body))


def from_bitmap(data: bytes) -> DeletedRows:
    """Read a Roaring bitmap of 64 bits in the portable format; ValueError for anything else."""
    return DeletedRows.of(BitMap64.deserialize(data).to_array())


def is_wide(data: bytes) -> bool:
    """Say whether bytes of a vector are of the layout of 64 bits."""
    return data[_SIZE.size : _SIZE.size + len(_MAGIC_64)] == _MAGIC_64


def decode(data: bytes, rows: int, name: str) -> DeletedRows:
    """Read the bytes of a vector of a file with `rows` rows.

    Raises CorruptFileError, naming `name`, for other bytes than were written, and for positions that the
    file does not have.
    """
    body = check_frame(data, name)
    magic, bitmaps = body[: len(_MAGIC_32)], body[len(_MAGIC_32) :]
    kind: Any = {_MAGIC_32: BitMap, _MAGIC_64: BitMap64}.get(magic)
    if kind is None:
        raise CorruptFileError(f"{name} is damaged: no deletion vector begins with {magic.hex()}")
    try:
        found = kind.deserialize(bitmaps)
        # A few bytes can stand for billions of rows, so nothing is unpacked before this is known.
        if len(found) > rows or (found and found.max() >= rows):
            raise CorruptFileError(f"{name} is damaged: it deletes rows that a file of {rows} rows lacks")
        positions = np.asarray(found.to_array()).astype(np.uint64)
        if not np.all(positions[1:] > positions[:-1]):
            raise CorruptFileError(f"{name} is damaged: its positions do not ascend")
        return DeletedRows(positions)
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise CorruptFileError(f"{name} is damaged: {error}") from None


def check_frame(data: bytes, name: str) -> bytes:
    """Return what lies between the size and the check sum; CorruptFileError if one of them is wrong."""
    if len(data) < FRAME_BYTES + len(_MAGIC_32):
        raise CorruptFileError(f"{name} is truncated: a deletion vector has more than {len(data)} bytes")
    (size,) = _SIZE.unpack_from(data)
    if size != len(data) - FRAME_BYTES:
        raise CorruptFileError(
            f"{name} is damaged: its header names {size} bytes, but it has {len(data) - FRAME_BYTES}"
        )
    body = data[_SIZE.size : -_CRC.size]
    (check_sum,) = _CRC.unpack_from(data, len(data) - _CRC.size)
    if zlib.crc32(body) != check_sum:
        raise CorruptFileError(f"{name} is damaged: its check sum is wrong")
    return body
