"""Buckets of rows: murmur hash of the bucket key as a BinaryRow, modulo the number of buckets.

Source: Paimon's `DefaultBucketFunction` and `MurmurHashUtils`. Whole columns are hashed at once: rows are
laid out as a matrix of words, one for each width that variable-length values need.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.store.codec.binary_row import (
    COMPACT_DECIMAL_PRECISION,
    COMPACT_TIMESTAMP_PRECISION,
    MAX_INLINE_LENGTH,
    fixed_width,
    null_bits_width,
    row_codec,
)
from lockgate.framework.types import DataType, Kind, to_arrow

_SEED = 42
_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)

# Types whose eight bytes NumPy makes in one step; the others go value by value.
_NUMPY = {
    Kind.BOOLEAN: np.uint8,
    Kind.TINYINT: np.int8,
    Kind.SMALLINT: np.int16,
    Kind.INT: np.int32,
    Kind.BIGINT: np.int64,
    Kind.FLOAT: np.float32,
    Kind.DOUBLE: np.float64,
    Kind.DATE: np.int32,
    Kind.TIME: np.int32,
}


def murmur_hash(words: np.ndarray) -> np.ndarray:
    """Return the signed 32-bit hashes of rows given as a matrix of little-endian 32-bit words."""
    state = np.full(len(words), _SEED, dtype=np.uint32)
    for column in range(words.shape[1]):
        mixed = _rotate(words[:, column] * _C1, 15) * _C2
        state = _rotate(state ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(words.shape[1] * 4)
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state.view(np.int32)


def _rotate(words: np.ndarray, bits: int) -> np.ndarray:
    return cast("np.ndarray", words << np.uint32(bits) | words >> np.uint32(32 - bits))


def bucket_of(values: Sequence[Any], types: tuple[DataType, ...], buckets: int) -> int:
    """Return the bucket, from 0 to `buckets` - 1, of one row with the given bucket key."""
    words = np.frombuffer(row_codec(types).encode(values), dtype="<u4").reshape(1, -1)
    return int(_modulo(murmur_hash(words), buckets)[0])


def assign_buckets(
    table: pa.Table | pa.RecordBatch, keys: Sequence[str], types: tuple[DataType, ...], buckets: int
) -> np.ndarray:
    """Return the bucket of each row as int32; `types` are those of the columns `keys`."""
    return _modulo(hash_rows([table.column(key) for key in keys], types), buckets)


def _modulo(hashes: np.ndarray, buckets: int) -> np.ndarray:
    if buckets < 1:
        raise InputError(f"the number of buckets must be positive, not {buckets}")
    # Java's remainder has the sign of the dividend.
    return np.abs(np.fmod(hashes.astype(np.int64), buckets)).astype(np.int32)


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: tuple[DataType, ...]) -> np.ndarray:
    """Return the hash of each row of `columns` encoded as a BinaryRow of `types`."""
    arrays = [_one_array(column).cast(to_arrow(kind)) for column, kind in zip(columns, types, strict=True)]
    count = len(arrays[0]) if arrays else 0
    hashes = np.empty(count, dtype=np.int32)
    if not count:
        return hashes
    parts = [_column(array, kind) for array, kind in zip(arrays, types, strict=True)]
    fixed = _fixed_part(parts, count, len(types))
    widths = np.stack([part.widths(count) for part in parts], axis=1)
    if (widths == widths[0]).all():  # as of numbers; sorting the widths would cost more than hashing
        return murmur_hash(_rows_of_shape(parts, fixed, np.arange(count), widths[0]))
    shapes, shape_of = np.unique(widths, axis=0, return_inverse=True)
    for index, shape in enumerate(shapes):
        rows = np.flatnonzero(shape_of.reshape(-1) == index)
        hashes[rows] = murmur_hash(_rows_of_shape(parts, fixed, rows, shape))
    return hashes


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _fixed_part(parts: list[_Column], count: int, arity: int) -> np.ndarray:
    """Return header, null bits and the eight bytes of each field, one row each, as bytes."""
    fixed = np.zeros((count, fixed_width(arity)), dtype=np.uint8)
    start = null_bits_width(arity)
    for position, part in enumerate(parts):
        bit = position + 8
        fixed[part.nulls, bit >> 3] |= 1 << (bit & 7)
        fixed[:, start + 8 * position : start + 8 * position + 8] = part.words.view(np.uint8).reshape(-1, 8)
    return fixed


def _rows_of_shape(
    parts: list[_Column], fixed: np.ndarray, rows: np.ndarray, shape: np.ndarray
) -> np.ndarray:
    """Return the words of `rows`, whose variable parts have the widths `shape`."""
    start, width = fixed.shape[1] - 8 * len(parts), fixed.shape[1]
    pieces = [fixed[rows]]
    for position, (part, size) in enumerate(zip(parts, shape, strict=True)):
        if size:
            at = start + 8 * position
            # Length or rest in the lower half of the word, position of the bytes in the upper.
            pieces[0][:, at + 4 : at + 8] = np.frombuffer(np.uint32(width).tobytes(), np.uint8)
            pieces.append(part.variable(rows, int(size)))
            width += int(size)
    return np.ascontiguousarray(np.concatenate(pieces, axis=1)).view("<u4")


class _Column:
    """One key column: nulls, the eight bytes of each value, and what goes behind them."""

    def __init__(self, nulls: np.ndarray, words: np.ndarray) -> None:
        self.nulls = nulls
        self.words = words

    def widths(self, count: int) -> np.ndarray:
        """Return the bytes that each value has in the variable part, a multiple of 8."""
        return np.zeros(count, dtype=np.int64)

    def variable(self, rows: np.ndarray, size: int) -> np.ndarray:
        """Return the variable parts of `rows`, all of `size` bytes."""
        raise AssertionError("a column of fixed width has no variable part")


class _Bytes(_Column):
    """Text and bytes, laid out from Arrow's buffers."""

    def __init__(self, nulls: np.ndarray, array: pa.Array) -> None:
        array = array.fill_null(b"").cast(pa.large_binary())
        offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)
        self._starts = offsets[array.offset : array.offset + len(array)]
        self._lengths = offsets[array.offset + 1 : array.offset + 1 + len(array)] - self._starts
        data = (
            np.frombuffer(array.buffers()[2], dtype=np.uint8) if array.buffers()[2] else np.zeros(0, np.uint8)
        )
        self._data = data if len(data) else np.zeros(1, dtype=np.uint8)
        words = self._lengths.astype("<u8")
        inline = np.flatnonzero(self._lengths <= MAX_INLINE_LENGTH)
        short = self._gather(inline, 8)
        short[:, 7] = 0x80 | self._lengths[inline]
        words[inline] = short.reshape(-1).view("<u8")
        words[nulls] = 0
        super().__init__(nulls, words)

    def _gather(self, rows: np.ndarray, size: int) -> np.ndarray:
        steps = np.arange(size)
        index = self._starts[rows, None] + steps
        inside = steps < self._lengths[rows, None]
        return np.where(inside, self._data[np.where(inside, index, 0)], 0).astype(np.uint8)

    def widths(self, count: int) -> np.ndarray:
        return np.where(self._lengths > MAX_INLINE_LENGTH, (self._lengths + 7) // 8 * 8, 0)

    def variable(self, rows: np.ndarray, size: int) -> np.ndarray:
        return self._gather(rows, size)


class _Wide(_Column):
    """Decimals and timestamps that need more than eight bytes; a null keeps its place."""

    def __init__(self, nulls: np.ndarray, words: np.ndarray, behind: np.ndarray) -> None:
        super().__init__(nulls, words)
        self._behind = behind

    def widths(self, count: int) -> np.ndarray:
        return np.full(count, self._behind.shape[1], dtype=np.int64)

    def variable(self, rows: np.ndarray, size: int) -> np.ndarray:
        return cast("np.ndarray", self._behind[rows])


def _column(array: pa.Array, data_type: DataType) -> _Column:
    nulls = np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), dtype=bool)
    if data_type.is_nested:
        raise UnsupportedTypeError(f"a column of type {data_type} cannot choose the bucket")
    if data_type.is_string or data_type.is_binary:
        return _Bytes(nulls, array.cast(pa.binary()))
    if data_type.kind is Kind.DECIMAL:
        return _decimals(nulls, array, data_type)
    if data_type.is_timestamp:
        return _timestamps(nulls, array, data_type)
    return _Column(nulls, _plain_words(array, data_type.kind))


def _plain_words(array: pa.Array, kind: Kind) -> np.ndarray:
    if kind is Kind.BOOLEAN:
        array = array.cast(pa.uint8())
    elif kind in (Kind.DATE, Kind.TIME):
        array = array.cast(pa.int32())
    dtype = np.dtype(_NUMPY[kind])
    words = np.zeros((len(array), 8 // dtype.itemsize), dtype=dtype)
    words[:, 0] = array.fill_null(0).to_numpy(zero_copy_only=False)
    return cast("np.ndarray", words.reshape(-1).view("<u8"))


def _decimals(nulls: np.ndarray, array: pa.Array, data_type: DataType) -> _Column:
    precision, scale = data_type.precision or 0, data_type.scale or 0
    context = decimal.Context(prec=80)
    values = [0 if value is None else int(context.scaleb(value, scale)) for value in array.to_pylist()]
    if precision <= COMPACT_DECIMAL_PRECISION:
        return _Column(nulls, np.array(values, dtype="<i8").view("<u8"))
    encode = row_codec((data_type,)).encode
    rows = [encode((value,)) for value in array.to_pylist()]
    matrix = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    words = np.ascontiguousarray(matrix[:, 8:16]).view("<u8").reshape(-1) & np.uint64(0xFFFFFFFF)
    return _Wide(nulls, words, np.ascontiguousarray(matrix[:, 16:]))


def _timestamps(nulls: np.ndarray, array: pa.Array, data_type: DataType) -> _Column:
    nanos_per_unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[array.type.unit]
    ticks = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    per_milli = 10**6 // nanos_per_unit or 1
    millis, rest = np.divmod(ticks, per_milli)
    if (data_type.precision or 0) <= COMPACT_TIMESTAMP_PRECISION:
        return _Column(nulls, np.where(nulls, 0, millis).astype("<i8").view("<u8"))
    words = np.where(nulls, 0, rest * nanos_per_unit).astype("<u8")
    return _Wide(nulls, words, np.where(nulls, 0, millis).astype("<i8").view(np.uint8).reshape(-1, 8))
