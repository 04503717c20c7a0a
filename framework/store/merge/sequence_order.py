"""The order of the rows of one key, by columns that say which is newer (`sequence.field`).

Nulls come first whichever way the others are ordered. Source: Paimon's `UserDefinedSeqComparator`, whose
generated comparators put nulls first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store.merge.group_codes import Codes


def by_sequence(
    rows: pa.Table, sequence: Sequence[str], descending: Collection[str], codes: Codes, count: int
) -> Codes:
    """Return all positions so that rows of equal `codes`, all below `count`, come from old to new.

    Rows are compared by the columns `sequence`, one after the other, in falling order where `descending`
    names them; those that are equal in all of them keep their order. Rows whose number occurs once come
    first.
    """
    repeated = np.bincount(codes, minlength=count)[codes] > 1
    places = np.flatnonzero(repeated).astype(np.int64)
    if not len(places):
        return np.arange(len(codes), dtype=np.int64)
    chosen = rows if len(places) == len(codes) else rows.filter(pa.array(repeated))
    ranks = [rank for name in sequence for rank in _ranks(chosen[name].combine_chunks(), name in descending)]
    # The last of numpy's keys is the primary one, and its sort is stable.
    ordered = places[np.lexsort(ranks[::-1])]
    return np.concatenate([np.flatnonzero(~repeated).astype(np.int64), ordered])


def _ranks(column: pa.Array, falling: bool) -> list[Any]:
    """Return integers that order a column's values, the most significant first."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    values = _integers(column)
    # Inverting the bits turns the order around, where a change of sign could overflow.
    values = ~values if falling else values
    if not column.null_count:
        return [values]
    valid = np.asarray(column.is_valid())
    return [valid, np.where(valid, values, 0)]


def _integers(column: pa.Array) -> Any:
    data_type = column.type
    if pa.types.is_boolean(data_type) or pa.types.is_signed_integer(data_type):
        return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(data_type):
        whole = pa.int32() if data_type.bit_width == 32 else pa.int64()
        return column.view(whole).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(data_type):
        floats = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        # numpy sorts NaN behind all numbers and takes -0.0 and 0.0 for one.
        return np.unique(floats, return_inverse=True)[1].astype(np.int64)
    encoded = pc.dictionary_encode(column)
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(max(len(order), 1), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]


def total_order(column: pa.ChunkedArray) -> Any:
    """Return integers that order the values of a column; those of nulls mean nothing.

    NaN is larger than all numbers and -0.0 less than 0.0, as Java's `Double.compare` has it.
    """
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_floating(whole.type):
        return _integers(whole)
    floats = whole.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))
