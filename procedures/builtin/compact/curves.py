"""Curves through the space of several columns: neighbours on a curve are near to each other in each column.

Columns enter by the quantiles of their values, so that values with long common beginnings, or in a few
clusters, divide the space all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]
Curve = Callable[[Sequence[Words], int], Words]

_MOST_BITS = 20
_ONE = np.uint64(1)


def ranks_of(column: pa.ChunkedArray) -> Words:
    """Return the number of each value among the distinct ones, ascending; nulls are 0."""
    coded = column.combine_chunks().dictionary_encode()
    values = coded.dictionary
    # By bytes, as Spark and ORC order texts.
    texts = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    order = pc.rank(values.cast(pa.large_binary()) if texts else values, tiebreaker="dense")
    ranks = np.append(np.uint64(0), order.to_numpy()).astype(np.uint64)
    codes = pc.add(coded.indices.cast(pa.int64()), 1).fill_null(0)
    found: Words = ranks[codes.to_numpy(zero_copy_only=False)]
    return found


def quantiles(ranks: Words, bits: int) -> Words:
    """Return the place of each rank among all rows, below 2**bits; equal ranks have one place."""
    counts = np.bincount(ranks.astype(np.int64))
    before = np.cumsum(counts) - counts
    places: Words = (before.astype(np.float64) / max(1, len(ranks)) * 2**bits).astype(np.uint64)
    return places[ranks.astype(np.int64)]


def bits_of(axes: int) -> int:
    """Return the bits of each of some axes, whose places on a curve have 64."""
    return min(_MOST_BITS, 64 // axes)


def on_curve(curve: Curve, ranks: Sequence[Words]) -> Words:
    """Return where rows lie on a curve, given their ranks in each column."""
    bits = bits_of(len(ranks))
    return curve([quantiles(each, bits) for each in ranks], bits)


def zorder(axes: Sequence[Words], bits: int) -> Words:
    """Return the bits of all axes in turn, the highest first."""
    found = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            found = found << _ONE | axis >> np.uint64(bit) & _ONE
    return found


def hilbert(axes: Sequence[Words], bits: int) -> Words:
    """Return the place on Hilbert's curve. Source: Skilling, Programming the Hilbert curve (2004)."""
    turned = [axis.copy() for axis in axes]
    for bit in range(bits - 1, 0, -1):
        _turn(turned, np.uint64(1 << bit))
    for number in range(1, len(turned)):
        turned[number] ^= turned[number - 1]
    flips = np.zeros_like(turned[0])
    for bit in range(bits - 1, 0, -1):
        high = np.uint64(1 << bit)
        flips = np.where(turned[-1] & high != 0, flips ^ (high - _ONE), flips)
    return zorder([axis ^ flips for axis in turned], bits)


def _turn(axes: list[Words], high: np.uint64) -> None:
    """Undo the turn of the cubes of one size: invert the lower bits of the first axis, or swap them."""
    lower = high - _ONE
    for number, axis in enumerate(axes):
        is_high = axis & high != 0
        swapped = np.where(is_high, np.uint64(0), (axes[0] ^ axis) & lower)
        axes[0] = np.where(is_high, axes[0] ^ lower, axes[0] ^ swapped)
        if number:
            axes[number] = axis ^ swapped
