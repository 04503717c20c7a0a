"""Footers of Parquet files, read here: Arrow ends the process where a column's metadata are missing.

That is so in a file with a plaintext footer and encrypted columns, and in some damaged ones. Sources:
parquet-format's `parquet.thrift`, and Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from lockgate.errors import CorruptFileError, UnsupportedError

_TAIL_BYTES = 8
_PLAIN, _ENCRYPTED = b"PAR1", b"PARE"
# No footer nests deeper: file, row group, column, its metadata, statistics.
_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)
Struct = Mapping[int, Any]


@dataclass(frozen=True)
class ColumnChunk:
    """A column's values in one row group: how many, and what its statistics have, as stored."""

    value_count: int
    null_count: int | None
    minimum: bytes | None
    maximum: bytes | None


@dataclass(frozen=True)
class ParquetFooter:
    """What the footer says of the columns of each row group, by their paths."""

    groups: Sequence[Mapping[str, ColumnChunk]]

    def chunks(self, column: str) -> list[ColumnChunk]:
        """Return a column's chunk in each row group; a column that one lacks has none."""
        return [group[column] for group in self.groups if column in group]


def read_footer(file: BinaryIO, name: str) -> ParquetFooter:
    """Read a file's footer; `name` is for messages.

    Raises CorruptFileError for damage, and UnsupportedError if the file or one of its columns is encrypted.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] == _ENCRYPTED:
        raise _encrypted(name, "its footer is")
    if tail[4:] != _PLAIN or length > size - _TAIL_BYTES:
        raise CorruptFileError(f"{name} cannot be read as a parquet file: it has no footer")
    file.seek(size - _TAIL_BYTES - length)
    try:
        footer = _Reader(file.read(length)).struct(0)
        groups = [dict(_column(chunk, name) for chunk in group[1]) for group in footer.get(4, ())]
        if 8 in footer:
            raise _encrypted(name, "some of its columns are")
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptFileError(f"{name} cannot be read as a parquet file: its footer is damaged") from error
    return ParquetFooter(groups)


def _encrypted(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} is encrypted by Parquet's own encryption ({what}), which is not read here: write its rows "
        "with an engine that has the keys into files without it"
    )


def _column(chunk: Struct, name: str) -> tuple[str, ColumnChunk]:
    if 8 in chunk or 9 in chunk:
        raise _encrypted(name, "some of its columns are")
    metadata = chunk[3]
    statistics = metadata.get(12, {})
    # The newer fields first; the older ones are right for numbers with a sign, days and truths.
    low, high = statistics.get(6, statistics.get(2)), statistics.get(5, statistics.get(1))
    path = ".".join(part.decode() for part in metadata[3])
    return path, ColumnChunk(int(metadata[5]), statistics.get(3), low, high)


class _Reader:
    """Reads Thrift's compact protocol; IndexError or ValueError for what is not."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> Struct:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else _signed(self._varint())
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return _signed(self._varint())
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind in (_BYTE, _TRUE, _FALSE):
            return self._byte()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _MAP:
            return self._map(depth + 1)
        raise ValueError("no type of the protocol")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        size = self._varint() if size == 15 else size
        if depth > _DEEPEST or size > len(self._data) - self._at:
            raise ValueError("a list that does not fit")
        return [self._value(kind, depth) for _ in range(size)]

    def _map(self, depth: int) -> list[Any]:
        size = self._varint()
        if not size:
            return []
        kinds = self._byte()
        if depth > _DEEPEST or size > len(self._data) - self._at:
            raise ValueError("a map that does not fit")
        return [(self._value(kinds >> 4, depth), self._value(kinds & 15, depth)) for _ in range(size)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise IndexError("beyond the end")
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
