"""Number the distinct rows of some columns: what merging by key and splitting by partition have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Codes = np.ndarray[tuple[int], np.dtype[np.int64]]


def group_codes(columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[Codes, int]:
    """Give equal rows of `columns` equal numbers, from 0 in order of first appearance.

    Returns the number of each row and how many there are. A null is equal to a null.
    """
    if not columns:
        return np.zeros(rows, dtype=np.int64), min(rows, 1)
    codes, count = _codes_of(columns[0])
    for column in columns[1:]:
        other, others = _codes_of(column)
        # Below 2^63, because either count is at most the number of rows that fit into memory.
        codes, count = _dense(codes * others + other)
    return codes, count


def _codes_of(column: pa.ChunkedArray) -> tuple[Codes, int]:
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks)
    if pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_decode()
    encoded = pc.dictionary_encode(encoded, null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def _dense(codes: Codes) -> tuple[Codes, int]:
    return _codes_of(pa.chunked_array([pa.array(codes)]))


def last_of_each(codes: Codes, count: int, order: Codes | None = None) -> Codes:
    """Return for each number the position of its last row, in `order` (positions, default: as they are)."""
    last = np.zeros(count, dtype=np.int64)
    positions = np.arange(len(codes), dtype=np.int64) if order is None else order
    # Of several values assigned to one element, numpy keeps the last.
    last[codes[positions]] = positions
    return last


def groups(codes: Codes, count: int) -> list[Codes]:
    """Return for each number the positions of its rows, ascending."""
    order = np.argsort(codes, kind="stable").astype(np.int64)
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return [part.astype(np.int64) for part in np.split(order, ends[:-1])] if count else []
