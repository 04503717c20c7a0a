"""Hashes of values of all types, by columns; Spark's tasks run this with NumPy and PyArrow alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Words = npt.NDArray[np.uint64]
_NULL = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xBF58476D1CE4E5B9)
_AT_ONCE = 1024  # texts whose words stay in the caches of a processor


def hash_values(array: pa.Array, padded: bool = False) -> _Words:
    """Return a hash of each value; equal values have the same, entries of maps in any order.

    Blanks at the end of `padded` texts do not count.
    """
    if padded:
        array = pc.utf8_rtrim(array, " ")
    with np.errstate(over="ignore"):
        hashes = _hashes(array)
        if array.null_count:
            hashes = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
        return hashes


def _hashes(array: pa.Array) -> _Words:
    kind = array.type
    if pa.types.is_struct(kind):
        return _struct(array)
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return _entries(array)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        values = array.cast(pa.binary())
        parts = [_bytes(values.slice(start, _AT_ONCE)) for start in range(0, len(values), _AT_ONCE)]
        return np.concatenate([np.zeros(0, np.uint64), *parts])
    if pa.types.is_decimal(kind):
        # Bytes under nulls are arbitrary, but those hashes are replaced.
        words = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
        words = words[array.offset : array.offset + len(array)]
        return _mixed(_mixed(words[:, 0]) + words[:, 1])
    if pa.types.is_floating(kind):
        floats = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        return _mixed(np.where(np.isnan(floats), np.nan, floats).view(np.uint64))
    whole = array.cast(pa.int8()) if pa.types.is_boolean(kind) else array
    whole = whole.cast(pa.int32()) if pa.types.is_date(kind) or pa.types.is_time(kind) else whole
    numbers = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return _mixed(numbers.view(np.uint64))


def _bytes(array: pa.Array) -> _Words:
    """Return sums over the words of eight bytes of each text, each mixed with its place."""
    ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    ends = ends.astype(np.int64)
    lengths = np.diff(ends)
    data = array.buffers()[2]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    counts = (lengths + 7) // 8
    rows = np.repeat(np.arange(len(array)), counts)
    starts = np.append(0, np.cumsum(counts))
    places = np.arange(len(rows)) - starts[rows]
    # Words of eight bytes begin at any byte; of the last one of a text, the bytes behind it do not count.
    padded = np.append(raw, np.zeros(8, np.uint8))
    words = np.ndarray((len(raw) + 1,), "<u8", padded, strides=(1,))[ends[rows] + places * 8]
    inside = np.minimum(lengths[rows] - places * 8, 8).astype(np.uint64)
    words &= np.uint64(2**64 - 1) >> (np.uint64(64) - inside * np.uint64(8))
    mixed = _mixed(_mixed(words) + (places.astype(np.uint64) + np.uint64(1)) * _NULL)
    totals = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))
    return _mixed(totals[starts[1:]] - totals[starts[:-1]] + lengths.astype(np.uint64) * _STEP)


def _struct(array: pa.Array) -> _Words:
    found = np.zeros(len(array), np.uint64)
    for child in array.flatten():
        found = _mixed(found * _STEP + hash_values(child))
    return found


def _entries(array: pa.Array) -> _Words:
    """Return the sums of the hashes of a list's elements and their places, or of a map's entries."""
    array = array.take(pa.array(range(len(array)), pa.int64()))  # offsets start at 0, nothing under nulls
    ends = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    counts = np.diff(ends)
    if pa.types.is_map(array.type):
        inner = _mixed(hash_values(array.keys) * _STEP + hash_values(array.items))
    else:
        places = np.arange(len(array.values)) - np.repeat(ends[:-1], counts)
        inner = _mixed(hash_values(array.values) + places.astype(np.uint64) * _STEP)
    totals = np.append(np.uint64(0), np.cumsum(inner, dtype=np.uint64))
    return _mixed(totals[ends[1:]] - totals[ends[:-1]] + counts.astype(np.uint64) * _NULL)


def _mixed(words: _Words) -> _Words:
    """Return the words mixed, as SplitMix64 does."""
    words = (words ^ (words >> np.uint64(30))) * _STEP
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: _Words = words ^ (words >> np.uint64(31))
    return mixed
