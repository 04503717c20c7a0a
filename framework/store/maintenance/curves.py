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
Halves = npt.NDArray[np.uint32]
Curve = Callable[[Sequence[Words], int], Words]

_MOST_BITS = 20
_ONE = np.uint64(1)
_TABLE_BITS = 10
_LOW = (1 << _TABLE_BITS) - 1
# So many rows of a few columns fit into a processor's second cache.
_ROWS = 16_384
# By the number of axes. Spark's tasks get this module by value, and so no decorated function.
_SPREADS: dict[int, Words] = {}


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
    spread = _spread(len(axes))
    found = np.zeros(len(axes[0]), np.uint64)
    for number, axis in enumerate(reversed(axes)):
        part = spread[axis & _LOW]
        for start in range(_TABLE_BITS, bits, _TABLE_BITS):
            part |= spread[(axis >> start) & _LOW] << np.uint64(start * len(axes))
        found |= part << np.uint64(number)
    return found


def _spread(axes: int) -> Words:
    """Return each small number with its bits as far from each other as there are axes."""
    if axes not in _SPREADS:
        _SPREADS[axes] = _spread_bits(axes)
    return _SPREADS[axes]


def _spread_bits(axes: int) -> Words:
    numbers = np.arange(1 << _TABLE_BITS, dtype=np.uint64)
    found = np.zeros(len(numbers), np.uint64)
    for bit in range(min(_TABLE_BITS, 64 // axes)):
        found |= (numbers >> np.uint64(bit) & _ONE) << np.uint64(bit * axes)
    return found


def hilbert(axes: Sequence[Words], bits: int) -> Words:
    """Return the place on Hilbert's curve. Source: Skilling, Programming the Hilbert curve (2004)."""
    found = np.empty(len(axes[0]), np.uint64)
    for first in range(0, len(found), _ROWS):
        part = slice(first, first + _ROWS)
        found[part] = _hilbert([axis[part].astype(np.uint32) for axis in axes], bits)
    return found


def _hilbert(axes: list[Halves], bits: int) -> Words:
    """Return the places of a few rows, all of whose numbers the processor keeps at hand."""
    for bit in range(bits - 1, 0, -1):
        _turn(axes, bit)
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= _all_bits(axes[-1], bit) & _below(bit)
    return zorder([axis ^ flips for axis in axes], bits)


def _turn(axes: list[Halves], bit: int) -> None:
    """Undo the turn of the cubes of one size: invert the lower bits of the first axis, or swap them."""
    lower = _below(bit)
    first = axes[0]
    for axis in axes:
        is_high = _all_bits(axis, bit)
        swapped = (first ^ axis) & lower & ~is_high
        if axis is not first:
            axis ^= swapped
        first ^= (is_high & lower) | swapped


def _below(bit: int) -> np.uint32:
    return np.uint32((1 << bit) - 1)


def _all_bits(axis: Halves, bit: int) -> Halves:
    """Return numbers of ones where a bit is set, of zeros where it is not."""
    return np.zeros(1, np.uint32) - (axis >> np.uint32(bit) & np.uint32(1))
