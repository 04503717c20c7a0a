"""The distinct values of a column in ascending order, and the rows of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lockgate.pushdown.index.value_kinds import Key, ValueKind

Rows = npt.NDArray[np.uint32]

NULL = -1


@dataclass(frozen=True)
class DistinctValues:
    """The distinct values of a column as ascending `keys`; `codes` index them by row, NULL for null."""

    kind: ValueKind
    keys: Sequence[Key]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, kind: ValueKind, column: pa.Array) -> DistinctValues:
        """Return the distinct values of a column of its Arrow type."""
        codes = np.full(len(column), NULL, np.int64)
        keys = kind.keys(column.drop_null())
        if isinstance(keys, np.ndarray):
            values, inverse = np.unique(keys, return_inverse=True)
            distinct_keys: list[Key] = values.tolist()
        else:
            encoded = keys.dictionary_encode()
            order = pc.sort_indices(encoded.dictionary)
            ranks = np.empty(len(order), np.int64)
            ranks[order.to_numpy()] = np.arange(len(order))
            inverse = ranks[encoded.indices.to_numpy(zero_copy_only=False)] if len(order) else ranks
            distinct_keys = encoded.dictionary.take(order).to_pylist()
        codes[np.asarray(column.is_valid())] = inverse
        return cls(kind, distinct_keys, codes)

    @cached_property
    def _sorted(self) -> tuple[Rows, npt.NDArray[np.int64]]:
        rows = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[rows], np.arange(NULL, len(self.keys) + 1))
        return rows.astype(np.uint32), starts

    def rows_of(self, code: int) -> Rows:
        """Return the rows with the value of a code, or with null for `NULL`, ascending."""
        rows, starts = self._sorted
        return rows[starts[code + 1] : starts[code + 2]]


def roaring(rows: Rows) -> bytes:
    """Return rows as a Roaring bitmap in the portable format."""
    bitmap = BitMap(rows)
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


def read_roaring(data: bytes, rows: int) -> BitMap:
    """Read a bitmap of row numbers below `rows`; ValueError for anything else."""
    bitmap = BitMap.deserialize(data)
    # A few bytes of a damaged file can represent billions of rows.
    if bitmap and bitmap.max() >= rows:
        raise ValueError(f"a bitmap holds row {bitmap.max()} of a file of {rows} rows")
    return bitmap
