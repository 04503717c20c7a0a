"""Hashes of 64 bits that Paimon's Bloom filters are filled by: xxHash of bytes, Thomas Wang's of numbers.

Source: Paimon's `FastHash`. Sums and products of 64 bits wrap.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.pushdown.index.value_kinds import Keys, Numbers, ValueKind

_Words = npt.NDArray[np.uint64]
_Bytes = npt.NDArray[np.uint8]

_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
# So many bytes of texts are hashed at a time.
_AT_ONCE = 8 * 2**20


def hashes_of(kind: ValueKind, keys: Keys) -> Numbers:
    """Return the hash of each key."""
    if isinstance(keys, np.ndarray):
        return _of_numbers(kind.bits(keys))
    return _of_bytes(keys)


def _of_numbers(numbers: Numbers) -> Numbers:
    """Return Thomas Wang's hash; it shifts to the right with the sign, as Java's `>>` does."""
    with np.errstate(over="ignore"):
        mixed: Numbers = ~numbers + (numbers << 21)
        mixed ^= mixed >> 24
        mixed = (mixed + (mixed << 3)) + (mixed << 8)
        mixed ^= mixed >> 14
        mixed = (mixed + (mixed << 2)) + (mixed << 4)
        mixed ^= mixed >> 28
        mixed += mixed << 31
        return mixed


def _of_bytes(values: pa.BinaryArray) -> Numbers:
    """Return xxHash64 with seed 0, values of one length at a time."""
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends)
    found = np.empty(len(values), np.uint64)
    order = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths):
        first, last = np.searchsorted(lengths[order], [length, length + 1])
        step = max(1, _AT_ONCE // max(1, int(length)))
        for at in range(int(first), int(last), step):
            places = order[at : min(at + step, last)]
            found[places] = _xxhash(raw[starts[places, None] + np.arange(length)])
    return found.view(np.int64)


def _xxhash(rows: _Bytes) -> _Words:
    count, length = rows.shape
    with np.errstate(over="ignore"):
        done = length - length % 32
        mixed = _of_stripes(rows[:, :done]) if done else np.full(count, _FIFTH)
        mixed += np.uint64(length)
        mixed = _of_rest(mixed, np.ascontiguousarray(rows[:, done:]))
        mixed ^= mixed >> np.uint64(33)
        mixed *= _SECOND
        mixed ^= mixed >> np.uint64(29)
        mixed *= _THIRD
        return mixed ^ (mixed >> np.uint64(32))


def _of_stripes(rows: _Bytes) -> _Words:
    count, length = rows.shape
    lanes = np.ascontiguousarray(rows).view("<u8").reshape(count, length // 32, 4)
    starts = np.array([_FIRST + _SECOND, _SECOND, 0, np.uint64(0) - _FIRST], np.uint64)
    sums = np.broadcast_to(starts, (count, 4)).copy()
    for number in range(lanes.shape[1]):
        sums = _round(sums, lanes[:, number])
    turned = [_turned(sums[:, lane], turn) for lane, turn in enumerate((1, 7, 12, 18))]
    mixed = turned[0] + turned[1] + turned[2] + turned[3]
    for lane in range(4):
        mixed = (mixed ^ _round(np.zeros(count, np.uint64), sums[:, lane])) * _FIRST + _FOURTH
    return mixed


def _of_rest(mixed: _Words, rows: _Bytes) -> _Words:
    """Mix in the last bytes, less than 32: by eight, by four, one by one."""
    count, length = rows.shape
    at = 0
    while at + 8 <= length:
        lane = np.ascontiguousarray(rows[:, at : at + 8]).view("<u8").reshape(count)
        mixed = _turned(mixed ^ _round(np.zeros(count, np.uint64), lane), 27) * _FIRST + _FOURTH
        at += 8
    if at + 4 <= length:
        lane = np.ascontiguousarray(rows[:, at : at + 4]).view("<u4").reshape(count).astype(np.uint64)
        mixed = _turned(mixed ^ (lane * _FIRST), 23) * _SECOND + _THIRD
        at += 4
    for index in range(at, length):
        mixed = _turned(mixed ^ (rows[:, index].astype(np.uint64) * _FIFTH), 11) * _FIRST
    return mixed


def _round(sums: _Words, lanes: _Words) -> _Words:
    return _turned(sums + lanes * _SECOND, 31) * _FIRST


def _turned(words: _Words, by: int) -> _Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))
