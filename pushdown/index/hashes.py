"""The 64-bit hashes of Paimon's Bloom filters: xxHash of bytes, Thomas Wang's hash of numbers.

Source: Paimon's `FastHash`. 64-bit sums and products wrap.
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
# Bytes of texts that are hashed together, to limit memory.
_BATCH_BYTES = 8 * 2**20


def hashes_of(kind: ValueKind, keys: Keys) -> Numbers:
    """Return the hash of each key."""
    if isinstance(keys, np.ndarray):
        return _hash_numbers(kind.bits(keys))
    return _hash_bytes(keys)


def _hash_numbers(numbers: Numbers) -> Numbers:
    """Return Thomas Wang's hash; shifts to the right keep the sign, as Java's `>>`."""
    with np.errstate(over="ignore"):
        mixed: Numbers = ~numbers + (numbers << 21)
        mixed ^= mixed >> 24
        mixed = (mixed + (mixed << 3)) + (mixed << 8)
        mixed ^= mixed >> 14
        mixed = (mixed + (mixed << 2)) + (mixed << 4)
        mixed ^= mixed >> 28
        mixed += mixed << 31
        return mixed


def _hash_bytes(values: pa.BinaryArray) -> Numbers:
    """Return xxHash64 with seed 0; values of one length are hashed together."""
    ends = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends)
    hashes = np.empty(len(values), np.uint64)
    order = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths):
        first, last = np.searchsorted(lengths[order], [length, length + 1])
        step = max(1, _BATCH_BYTES // max(1, int(length)))
        for at in range(int(first), int(last), step):
            indexes = order[at : min(at + step, last)]
            hashes[indexes] = _xxhash(raw[starts[indexes, None] + np.arange(length)])
    return hashes.view(np.int64)


def _xxhash(rows: _Bytes) -> _Words:
    count, length = rows.shape
    with np.errstate(over="ignore"):
        stripe_bytes = length - length % 32
        mixed = _mix_stripes(rows[:, :stripe_bytes]) if stripe_bytes else np.full(count, _FIFTH)
        mixed += np.uint64(length)
        mixed = _mix_rest(mixed, np.ascontiguousarray(rows[:, stripe_bytes:]))
        mixed ^= mixed >> np.uint64(33)
        mixed *= _SECOND
        mixed ^= mixed >> np.uint64(29)
        mixed *= _THIRD
        return mixed ^ (mixed >> np.uint64(32))


def _mix_stripes(rows: _Bytes) -> _Words:
    count, length = rows.shape
    lanes = np.ascontiguousarray(rows).view("<u8").reshape(count, length // 32, 4)
    seeds = np.array([_FIRST + _SECOND, _SECOND, 0, np.uint64(0) - _FIRST], np.uint64)
    sums = np.broadcast_to(seeds, (count, 4)).copy()
    for number in range(lanes.shape[1]):
        sums = _round(sums, lanes[:, number])
    rotated = [_rotated(sums[:, lane], rotation) for lane, rotation in enumerate((1, 7, 12, 18))]
    mixed = rotated[0] + rotated[1] + rotated[2] + rotated[3]
    for lane in range(4):
        mixed = (mixed ^ _round(np.zeros(count, np.uint64), sums[:, lane])) * _FIRST + _FOURTH
    return mixed


def _mix_rest(mixed: _Words, rows: _Bytes) -> _Words:
    """Mix in the last bytes, fewer than 32: eight at a time, then four, then one by one."""
    count, length = rows.shape
    at = 0
    while at + 8 <= length:
        lane = np.ascontiguousarray(rows[:, at : at + 8]).view("<u8").reshape(count)
        mixed = _rotated(mixed ^ _round(np.zeros(count, np.uint64), lane), 27) * _FIRST + _FOURTH
        at += 8
    if at + 4 <= length:
        lane = np.ascontiguousarray(rows[:, at : at + 4]).view("<u4").reshape(count).astype(np.uint64)
        mixed = _rotated(mixed ^ (lane * _FIRST), 23) * _SECOND + _THIRD
        at += 4
    for index in range(at, length):
        mixed = _rotated(mixed ^ (rows[:, index].astype(np.uint64) * _FIFTH), 11) * _FIRST
    return mixed


def _round(sums: _Words, lanes: _Words) -> _Words:
    return _rotated(sums + lanes * _SECOND, 31) * _FIRST


def _rotated(words: _Words, by: int) -> _Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))
