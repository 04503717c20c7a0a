"""The container of file indexes: a head with the location of each index, then the indexes' bytes.

Source: Paimon's `FileIndexFormat`, version 1; all numbers are big-endian, names are in Java's modified UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lockgate.errors import CorruptFileError

Indexes = Mapping[str, Mapping[str, bytes | None]]
"""The bytes of indexes by column and type; None is an empty index, of a column with only nulls."""

_MAGIC = 1493475289347502
_VERSION = 1
_START = struct.Struct(">qiii")
_PLACE = struct.Struct(">ii")
_INT = struct.Struct(">i")
_EMPTY = -1
_SUFFIX = ".index"


def is_index(name: str) -> bool:
    """Say whether a file that belongs to a data file is its index."""
    return name.endswith(_SUFFIX)


def write_container(indexes: Indexes) -> bytes:
    """Return the bytes of a container."""
    head_size = _START.size + _INT.size + sum(_head_size(name, kinds) for name, kinds in indexes.items())
    parts, bodies, at = [_START.pack(_MAGIC, _VERSION, head_size, len(indexes))], [], head_size
    for name, kinds in indexes.items():
        parts += [_text(name), _INT.pack(len(kinds))]
        for kind, data in kinds.items():
            parts += [_text(kind), _PLACE.pack(_EMPTY, 0) if data is None else _PLACE.pack(at, len(data))]
            bodies.append(data or b"")
            at += len(bodies[-1])
    return b"".join([*parts, _INT.pack(0), *bodies])


def read_container(data: bytes, name: str) -> dict[str, dict[str, bytes | None]]:
    """Return the indexes of a container; CorruptFileError with `name` if it is invalid."""
    with damage_named(name):
        magic, version, head_size, count = _START.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION):
            raise CorruptFileError(f"{name} is not a file index of version {_VERSION}")
        head = _Head(data, head_size)
        columns = {head.text(): head.kinds() for _ in range(count)}
        return {
            column: {kind: _body(data, location, head_size) for kind, location in kinds.items()}
            for column, kinds in columns.items()
        }


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Turn the errors that damaged bytes cause into CorruptFileError with `name`."""
    try:
        yield
    except (struct.error, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise CorruptFileError(f"{name} is damaged: {error}") from None


class _Head:
    """Reads the head of a container, after its fixed fields."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data[:size]
        self._offset = _START.size

    def text(self) -> str:
        (length,) = struct.unpack_from(">H", self._data, self._offset)
        raw = self._data[self._offset + 2 : self._offset + 2 + length]
        if len(raw) < length:
            raise ValueError("a name ends beyond the head")
        self._offset += 2 + length
        return _decoded(raw)

    def kinds(self) -> dict[str, tuple[int, int]]:
        (count,) = _INT.unpack_from(self._data, self._offset)
        self._offset += _INT.size
        return {self.text(): self._place() for _ in range(count)}

    def _place(self) -> tuple[int, int]:
        start, length = _PLACE.unpack_from(self._data, self._offset)
        self._offset += _PLACE.size
        return start, length


def _body(data: bytes, location: tuple[int, int], head_size: int) -> bytes | None:
    start, length = location
    if start == _EMPTY:
        return None
    if start < head_size or length < 0 or start + length > len(data):
        raise ValueError("an index lies outside of the file")
    return data[start : start + length]


def _head_size(name: str, kinds: Mapping[str, bytes | None]) -> int:
    return len(_text(name)) + _INT.size + sum(len(_text(kind)) + _PLACE.size for kind in kinds)


def _text(text: str) -> bytes:
    units = text.encode("utf-16-be", "surrogatepass")
    # Java's modified UTF-8 encodes UTF-16 units one by one, and zero as two bytes.
    chars = "".join(chr(unit) for (unit,) in struct.iter_unpack(">H", units))
    raw = chars.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return struct.pack(">H", len(raw)) + raw


def _decoded(raw: bytes) -> str:
    chars = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return chars.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
