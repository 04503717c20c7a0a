"""File indexes of other engines: which columns one holds values, hashes or bitmaps of.

Source: Paimon's `FileIndexFormat`. An index is embedded in a manifest's entry, or lies next to its data file.
"""

from __future__ import annotations

import struct

_MAGIC = 1493475289347502


def indexed_columns(data: bytes) -> frozenset[str] | None:
    """Return the columns in an index; None if that cannot be told."""
    try:
        magic, _version, _length, count = struct.unpack_from(">qiii", data)
        if magic != _MAGIC:
            return None
        return frozenset(_columns(data, 20, count))
    except (struct.error, UnicodeDecodeError):
        return None


def _columns(data: bytes, at: int, count: int) -> list[str]:
    found = []
    for _ in range(count):
        name, at = _text(data, at)
        # Of a map, each indexed key is a column of its own: `map[key]`.
        found.append(name.partition("[")[0])
        (kinds,) = struct.unpack_from(">i", data, at)
        at += 4
        for _ in range(kinds):
            _, at = _text(data, at)
            at += 8
    return found


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", data, at)
    end = at + 2 + length
    if end > len(data):
        raise struct.error("a name ends beyond the index")
    return data[at + 2 : end].decode(), end
