"""Roaring bitmaps of 64 bits in the layout of Java's `Roaring64Bitmap`, which no other library reads.

The upper 48 bits of a number are a key. A container holds the lower 16 bits of the numbers of one key. Keys
are leaves of an adaptive radix tree. Numbers are little-endian unless said otherwise, "byte-swapped" means
that each group of 4 or 8 bytes is written backward:

    bitmap      0 for the empty one; else 1, tree, containers
    tree        keys (8 bytes), nodes: a node before its children, these in ascending order
    node        kind (1), children (2), length of the prefix (1), prefix, body: by kind
      0         up to 4 children: the next byte of each child's key in a group of 4, byte-swapped
      1         up to 16: the same in two groups of 8
      2         up to 48: for each of 256 bytes the child's number or 255, in groups of 8, byte-swapped
      3         up to 256: one bit for each byte
      4         a leaf: the key (6, big-endian), the position of its container (8)
    containers  lists (4), each: a mark (1), positions (4), each 0 or 1 and a container;
                then containers (8), the last list (4), the last position in it (4)
    container   kind (1), numbers in it (4), body: by kind
      0         runs (2), each: the first number (2), how many follow it (2)
      1         a bitmap of 65536 bits
      2         the numbers in ascending order (2 each)

A position is the number of its list, times 2**32, plus the number in the list. Equal sets have equal bytes
here: those of Java for a bitmap to which the numbers were added in ascending, unsigned order.

Source: RoaringBitmap 1.2.1 (Paimon's) to 1.6, `HighLowContainer`, `Containers`, `Art` and its nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

_KEY_BYTES, _LEAF = 6, 4
# How many children a node of each kind has at most, and the bytes of its body.
_MOST_CHILDREN = (4, 16, 48, 256)
_BODIES = (4, 16, 256, 32)
_NO_CHILD = 0xFF
_RUNS, _BITS, _NUMBERS = 0, 1, 2
_MOST_NUMBERS = 4096
_CONTAINER_SIZE, _BITS_BYTES = 1 << 16, 8192
_NOT_TRIMMED = b"\xfe"
# The shared format of bitmaps of 32 bits, of one container with key 0.
_PLAIN, _WITH_RUNS = struct.Struct("<IIHHI"), struct.Struct("<IBHH")
_PLAIN_COOKIE, _RUNS_COOKIE = 12346, 12347


@dataclass(frozen=True)
class Roaring64:
    """A set of numbers of 64 bits; `containers` holds the lower 16 bits of each by the upper 48."""

    containers: dict[int, BitMap] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Roaring64:
        """Make the set of some numbers; negative ones are those of Java's `long`."""
        found: dict[int, list[int]] = {}
        for number in numbers:
            found.setdefault(number >> 16 & 0xFFFFFFFFFFFF, []).append(number & 0xFFFF)
        return cls({key: BitMap(lower) for key, lower in found.items()})

    @classmethod
    def deserialize(cls, data: bytes) -> Roaring64:
        """Read a set; ValueError for bytes that are none. As in Java, further bytes are ignored."""
        reader = _Reader(data)
        if not reader.number(1, most=1):
            return cls()
        reader.bytes(8)
        keys = _read_keys(reader)
        found = {}
        for position, container in _read_containers(reader):
            if position not in keys:
                raise ValueError("a container has no key")
            found[keys.pop(position)] = container
        if keys:
            raise ValueError("a key has no container")
        return cls({key: container for key, container in found.items() if container})

    def serialize(self) -> bytes:
        """Return the set in Java's layout."""
        keys = sorted(self.containers)
        if not keys:
            return b"\0"
        parts = [b"\1", len(keys).to_bytes(8, "little")]
        leaves = [key.to_bytes(_KEY_BYTES, "big") for key in keys]
        parts.extend(_nodes(leaves, 0, len(leaves), 0))
        capacity = _capacity(len(keys))
        parts += [b"\1\0\0\0", _NOT_TRIMMED, capacity.to_bytes(4, "little")]
        parts.extend(_stored(self.containers[key]) for key in keys)
        parts.append(bytes(capacity - len(keys)))
        parts.append(struct.pack("<QII", len(keys), 0, len(keys) - 1))
        return b"".join(parts)

    def __or__(self, other: Roaring64) -> Roaring64:
        """Return the numbers of both."""
        found = dict(self.containers)
        for key, container in other.containers.items():
            found[key] = found[key] | container if key in found else container
        return Roaring64(found)

    def __len__(self) -> int:
        return sum(map(len, self.containers.values()))

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers as Java's `long`, in ascending order of their bits: negative ones last."""
        for key in sorted(self.containers):
            high = key << 16
            signed = high - (1 << 64) if high >> 63 else high
            yield from (signed | lower for lower in self.containers[key])


# --- reading -------------------------------------------------------------------------------------


class _Reader:
    """Takes bytes from the front; ValueError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def bytes(self, count: int) -> bytes:
        first, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise ValueError(f"{len(self._data)} bytes are too few")
        return self._data[first : self._at]

    def number(self, width: int, most: int | None = None) -> int:
        found = int.from_bytes(self.bytes(width), "little")
        if most is not None and found > most:
            raise ValueError(f"{found} at byte {self._at - width} is more than {most}")
        return found


def _read_keys(reader: _Reader) -> dict[int, int]:
    """Return the key of each position; leaves say it all, so that the nodes above them are passed over."""
    found: dict[int, int] = {}
    waiting = 1
    while waiting:
        waiting -= 1
        kind = reader.number(1, most=_LEAF)
        children = reader.number(2, most=256)
        reader.bytes(reader.number(1, most=_KEY_BYTES))
        if kind != _LEAF:
            reader.bytes(_BODIES[kind])
            waiting += children
            continue
        key = int.from_bytes(reader.bytes(_KEY_BYTES), "big")
        position = reader.number(8)
        if position in found:
            raise ValueError("two keys have one container")
        found[position] = key
    if len(set(found.values())) < len(found):
        raise ValueError("two containers have one key")
    return found


def _read_containers(reader: _Reader) -> Iterator[tuple[int, BitMap]]:
    for first in range(reader.number(4)):
        reader.bytes(1)
        for second in range(reader.number(4)):
            if reader.number(1, most=1):
                yield first << 32 | second, _read_container(reader)


def _read_container(reader: _Reader) -> BitMap:
    kind, count = reader.number(1, most=_NUMBERS), reader.number(4, most=_CONTAINER_SIZE)
    if kind == _RUNS:
        return _of_runs(reader.bytes(4 * reader.number(2)))
    data = reader.bytes(_BITS_BYTES if kind == _BITS else 2 * count)
    if (kind == _BITS) == (count > _MOST_NUMBERS):
        return _plain(data, count)
    if kind == _BITS:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return BitMap(np.flatnonzero(bits).tolist())
    return BitMap(np.frombuffer(data, "<u2").tolist())


def _plain(data: bytes, count: int) -> BitMap:
    """Make a container of what the shared format holds of one, by its count of numbers; ValueError for
    others.
    """
    if not count:
        return BitMap()
    return BitMap.deserialize(_PLAIN.pack(_PLAIN_COOKIE, 1, 0, count - 1, _PLAIN.size) + data)


def _of_runs(data: bytes) -> BitMap:
    if not data:
        return BitMap()
    count = int(np.frombuffer(data, "<u2")[1::2].astype(np.int64).sum()) + len(data) // 4
    if count > _CONTAINER_SIZE:
        raise ValueError("runs overlap")
    head = _WITH_RUNS.pack(_RUNS_COOKIE, 1, 0, count - 1)
    return BitMap.deserialize(head + struct.pack("<H", len(data) // 4) + data)


# --- writing -------------------------------------------------------------------------------------


def _nodes(keys: Sequence[bytes], first: int, last: int, depth: int) -> Iterator[bytes]:
    """Yield the nodes of `keys[first:last]`, which are alike up to byte `depth`."""
    if last - first == 1:
        yield bytes((_LEAF, 0, 0, 0)) + keys[first] + first.to_bytes(8, "little")
        return
    low, high = keys[first], keys[last - 1]
    fork = next(at for at in range(depth, _KEY_BYTES) if low[at] != high[at])
    starts = [first]
    starts.extend(at for at in range(first + 1, last) if keys[at][fork] != keys[at - 1][fork])
    kind = next(kind for kind, most in enumerate(_MOST_CHILDREN) if len(starts) <= most)
    head = struct.pack("<BHB", kind, len(starts), fork - depth)
    yield head + low[depth:fork] + _body(kind, bytes(keys[at][fork] for at in starts))
    for start, end in zip(starts, [*starts[1:], last], strict=True):
        yield from _nodes(keys, start, end, fork + 1)


def _body(kind: int, children: bytes) -> bytes:
    """Return the body of a node with children of these bytes, in ascending order."""
    if kind == 3:
        bits = np.zeros(256, np.uint8)
        bits[list(children)] = 1
        return np.packbits(bits, bitorder="little").tobytes()
    if kind == 2:
        numbers = bytearray([_NO_CHILD]) * 256
        for number, child in enumerate(children):
            numbers[child] = number
        return _swapped(bytes(numbers), 8)
    return _swapped(children.ljust(_BODIES[kind], b"\0"), min(8, _BODIES[kind]))


def _swapped(data: bytes, width: int) -> bytes:
    return b"".join(data[at : at + width][::-1] for at in range(0, len(data), width))


def _capacity(count: int) -> int:
    """Return the length of Java's list once so many containers were added to it one by one."""
    capacity = 1
    while capacity < count:
        capacity = max(capacity + 1, capacity + capacity // 2)
    return capacity


def _stored(container: BitMap) -> bytes:
    """Return a position that has a container, in the form that takes the fewest bytes."""
    smallest = container.copy()
    smallest.run_optimize()
    data, count = smallest.serialize(), len(container)
    if int.from_bytes(data[:2], "little") != _RUNS_COOKIE:
        kind, body = (_BITS if count > _MOST_NUMBERS else _NUMBERS), data[_PLAIN.size :]
    elif len(data) - _WITH_RUNS.size < 2 * count:
        kind, body = _RUNS, data[_WITH_RUNS.size :]
    else:
        kind, body = _NUMBERS, struct.pack(f"<{count}H", *container)
    return struct.pack("<BBI", 1, kind, count) + body
