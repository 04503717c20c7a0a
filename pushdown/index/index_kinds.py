"""Kinds of file indexes: the values that each supports, its writer and its reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lockgate.pushdown.index.bitmap_index import BLOCK_SIZE, VERSION, BitmapIndex, write_bitmap
from lockgate.pushdown.index.bloom_filter import FALSE_POSITIVES, BloomFilter, write_bloom_filter
from lockgate.pushdown.index.range_bitmap import RangeBitmap, write_range_bitmap
from lockgate.pushdown.index.value_kinds import Key, ValueKind

BLOOM_FILTER, BITMAP, RANGE_BITMAP = "bloom-filter", "bitmap", "range-bitmap"

Parameters = Mapping[str, Any]
Answer = BitMap | bool
"""Rows that may match; True: any row may, False: no row does."""


class RowIndex(Protocol):
    """An index that returns the rows of values."""

    @property
    def rows(self) -> int:
        """The row count of the file."""

    def nulls(self) -> BitMap:
        """Return the rows with null."""

    def among(self, keys: Iterable[Key]) -> BitMap:
        """Return the rows with one of these values."""


@dataclass(frozen=True)
class FileIndexKind:
    """A kind of file index: supported `values`, `parameters` with defaults, writer and reader."""

    name: str
    values: frozenset[ValueKind]
    parameters: Parameters
    write: Callable[[ValueKind, pa.Array, Parameters], bytes]
    read: Callable[[ValueKind, bytes], BloomFilter | BitmapIndex | RangeBitmap]


def _bloom(kind: ValueKind, column: pa.Array, parameters: Parameters) -> bytes:
    return write_bloom_filter(kind, kind.keys(column.drop_null()), parameters["items"], parameters["fpp"])


def _bitmap(kind: ValueKind, column: pa.Array, parameters: Parameters) -> bytes:
    return write_bitmap(kind, column, parameters["version"], parameters["index-block-size"])


def _range_bitmap(kind: ValueKind, column: pa.Array, parameters: Parameters) -> bytes:
    return write_range_bitmap(kind, column, parameters["chunk-size"])


_ALL = frozenset(ValueKind)
INDEX_KINDS = {
    each.name: each
    for each in (
        FileIndexKind(
            BLOOM_FILTER,
            _ALL - {ValueKind.BOOLEAN, ValueKind.DECIMAL},
            {"items": None, "fpp": FALSE_POSITIVES},
            _bloom,
            BloomFilter,
        ),
        FileIndexKind(
            BITMAP,
            _ALL - {ValueKind.BYTES, ValueKind.DECIMAL},
            {"version": VERSION, "index-block-size": BLOCK_SIZE},
            _bitmap,
            BitmapIndex,
        ),
        FileIndexKind(
            RANGE_BITMAP, _ALL - {ValueKind.BYTES}, {"chunk-size": None}, _range_bitmap, RangeBitmap
        ),
    )
}


def write_index(name: str, kind: ValueKind, column: pa.Array, parameters: Parameters | None = None) -> bytes:
    """Return the bytes of an index of a column; `parameters` override the kind's defaults."""
    index_kind = INDEX_KINDS[name]
    return index_kind.write(kind, column, {**index_kind.parameters, **(parameters or {})})


def keys_of_list(kind: ValueKind, keys: Sequence[Key]) -> Any:
    """Return single keys as those of a column."""
    return pa.array(keys, pa.binary()) if kind.is_bytes else np.array(keys, np.int64)
