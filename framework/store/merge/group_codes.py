"""Number the distinct rows of some columns: what merging by key and splitting by partition have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Up to so many times the number of rows, counting from the smallest value beats hashing.
_DENSE = 4

Codes = np.ndarray[tuple[int], np.dtype[np.int64]]


def group_codes(columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[Codes, int]:
    """Give equal rows of `columns` equal numbers.

    Returns the number of each row and a bound that all are below; not every number below it need occur. A
    null is equal to a null, NaN to NaN and -0.0 to 0.0.
    """
    if not columns:
        return np.zeros(rows, dtype=np.int64), min(rows, 1)
    codes, count = _codes_of(columns[0])
    for column in columns[1:]:
        other, others = _codes_of(column)
        # Below 2^63, because either count is at most the number of rows that fit into memory.
        codes, count = _dense(codes * others + other)
    return codes, count


def partition_codes(
    columns: Sequence[pa.ChunkedArray], rows: int, others: Sequence[pa.ChunkedArray] = ()
) -> tuple[Codes, int]:
    """Return the numbers of rows by partition columns and `others`, as `group_codes` gives them.

    In partition columns -0.0 is not equal to 0.0: files of the two zeros lie in two partitions.
    """
    signs = [
        pc.equal(pc.divide(pa.scalar(1.0, column.type), column), pa.scalar(-math.inf, column.type))
        for column in columns
        if pa.types.is_floating(column.type)
    ]
    return group_codes([*columns, *signs, *others], rows)


def _codes_of(column: pa.ChunkedArray) -> tuple[Codes, int]:
    """Give numbers to the distinct values of a column; some of the numbers may not be used."""
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks)
    if pa.types.is_signed_integer(encoded.type) and len(encoded) and not encoded.null_count:
        values = encoded.to_numpy(zero_copy_only=False)
        low, high = int(values.min()), int(values.max())
        if high - low < _DENSE * len(values):  # no hashing where the values lie close together
            return values.astype(np.int64) - low, high - low + 1
    if pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_decode()
    if pa.types.is_floating(encoded.type):
        encoded = pc.add(encoded, pa.scalar(0.0, encoded.type))  # -0.0 becomes 0.0
    encoded = pc.dictionary_encode(encoded, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _dense(codes: Codes) -> tuple[Codes, int]:
    return _codes_of(pa.chunked_array([pa.array(codes)]))


def last_of_each(codes: Codes, count: int, order: Codes | None = None) -> Codes:
    """Return, ascending, the positions of the rows that come last among those of their number.

    `order` lists all positions from first to last; by default they are in order.
    """
    last = np.full(count, -1, dtype=np.int64)
    positions = np.arange(len(codes), dtype=np.int64) if order is None else order
    # Of several values assigned to one element, numpy keeps the last.
    last[codes[positions]] = positions
    kept = np.zeros(len(codes), dtype=bool)
    kept[last[last >= 0]] = True
    return np.flatnonzero(kept).astype(np.int64)


def groups(codes: Codes, count: int) -> list[Codes]:
    """Return for each number that occurs the positions of its rows, ascending."""
    if count <= 1:
        return [np.arange(len(codes), dtype=np.int64)] if len(codes) else []
    # Small numbers are sorted by radix.
    sortable = codes.astype(np.uint16) if count <= 2**16 else codes
    order = np.argsort(sortable, kind="stable").astype(np.int64)
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return [part for part in np.split(order, ends[:-1]) if len(part)]
