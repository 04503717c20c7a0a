"""Footers of Parquet files, read here: Arrow ends the process where a column's metadata are missing.

That is so in a file with a plaintext footer and encrypted columns, and in some damaged ones. Only what the
columns have is kept. Sources:
parquet-format's `parquet.thrift`, and Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from lockgate.errors import CorruptFileError, UnsupportedError
from lockgate.framework.io import most_json, too_large

_TAIL_BYTES = 8
_PLAIN, _ENCRYPTED = b"PAR1", b"PARE"
# No footer nests deeper: file, row group, column, its metadata, statistics.
_DEEPEST = 16
# Bounds of numbers, days and times have no more bytes; others are not read.
_BOUND_BYTES = 12
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)


@dataclass(frozen=True, slots=True)
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

    Raises CorruptFileError for damage and a footer larger than metadata may be (`io.limits`), and
    UnsupportedError if the file or one of its columns is encrypted.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] == _ENCRYPTED:
        raise _encrypted(name, "its footer is")
    if tail[4:] != _PLAIN or length > size - _TAIL_BYTES:
        raise CorruptFileError(f"{name} cannot be read as a parquet file: it has no footer")
    if length > most_json():
        raise too_large(name, most_json(), "has a footer of")
    file.seek(size - _TAIL_BYTES - length)
    try:
        footer = _FILE(_Reader(file.read(length)), _STRUCT, 0)
    except (IndexError, KeyError, ValueError) as error:
        raise CorruptFileError(f"{name} cannot be read as a parquet file: its footer is damaged") from error
    groups = footer.get(4, [])
    if 8 in footer or None in groups:
        raise _encrypted(name, "some of its columns are")
    return ParquetFooter(groups)


def _encrypted(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} is encrypted by Parquet's own encryption ({what}), which is not read here: write its rows "
        "with an engine that has the keys into files without it"
    )


class _Reader:
    """Reads Thrift's compact protocol; IndexError or ValueError for what is not."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._texts: dict[bytes, str] = {}

    def fields(self, known: Mapping[int, _Shape], depth: int) -> dict[int, Any]:
        """Read the known fields of a structure, and skip the others."""
        if depth > _DEEPEST:
            raise ValueError("too deep")
        found: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self.integer()
            shape = known.get(number)
            if shape is not None:
                found[number] = shape(self, kind, depth)
            elif kind not in (_TRUE, _FALSE):
                self.skip(kind, depth)
        return found

    def skip(self, kind: int, depth: int) -> None:
        """Go past a value."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            self._past(self._varint())
        elif kind == _STRUCT:
            self.fields({}, depth + 1)
        elif kind in (_LIST, _SET):
            count, of = self.list_head(depth + 1)
            for _ in range(count):
                self.skip(of, depth + 1)
        elif kind in (_BYTE, _TRUE, _FALSE):
            self.byte()
        elif kind == _DOUBLE:
            self._past(8)
        elif kind == _MAP:
            self._skip_map(depth + 1)
        else:
            raise ValueError("no type of the protocol")

    def _skip_map(self, depth: int) -> None:
        size = self._varint()
        kinds = self.byte() if size else 0
        if depth > _DEEPEST or size > len(self._data) - self._at:
            raise ValueError("a map that does not fit")
        for _ in range(size):
            self.skip(kinds >> 4, depth)
            self.skip(kinds & 15, depth)

    def list_head(self, depth: int) -> tuple[int, int]:
        """Return how many elements a list has, and their type."""
        head = self.byte()
        size, kind = head >> 4, head & 15
        size = self._varint() if size == 15 else size
        if depth > _DEEPEST or size > len(self._data) - self._at:
            raise ValueError("a list that does not fit")
        return size, kind

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        size = self._varint()
        start = self._at
        self._past(size)
        return self._data[start : self._at]

    def text(self) -> str:
        """Return a text; columns have the same names in every row group."""
        data = self.binary()
        if data not in self._texts:
            self._texts[data] = data.decode()
        return self._texts[data]

    def _past(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise IndexError("beyond the end")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")


# Reads a value of a type of the protocol, at a depth.
_Shape = Callable[[_Reader, int, int], Any]


def _check(kind: int, *kinds: int) -> None:
    if kind not in kinds:
        raise ValueError("a field of another type")


def _integer(reader: _Reader, kind: int, depth: int) -> int:
    _check(kind, *_INTEGERS)
    return reader.integer()


def _text(reader: _Reader, kind: int, depth: int) -> str:
    _check(kind, _BINARY)
    return reader.text()


def _stored_bound(reader: _Reader, kind: int, depth: int) -> bytes | None:
    _check(kind, _BINARY)
    stored = reader.binary()
    return stored if len(stored) <= _BOUND_BYTES else None


def _present(reader: _Reader, kind: int, depth: int) -> bool:
    reader.skip(kind, depth)
    return True


def _structure(known: Mapping[int, _Shape]) -> _Shape:
    def read(reader: _Reader, kind: int, depth: int) -> dict[int, Any]:
        _check(kind, _STRUCT)
        return reader.fields(known, depth + 1)

    return read


def _elements(shape: _Shape, reader: _Reader, kind: int, depth: int) -> Iterator[Any]:
    """Yield the elements of a list."""
    _check(kind, _LIST, _SET)
    count, of = reader.list_head(depth + 1)
    for _ in range(count):
        yield shape(reader, of, depth + 1)


def _path(reader: _Reader, kind: int, depth: int) -> str:
    return ".".join(_elements(_text, reader, kind, depth))


def _groups(reader: _Reader, kind: int, depth: int) -> list[dict[str, ColumnChunk] | None]:
    """Return the columns of the row groups that have any; None for one with encrypted columns."""
    return [group[1] for group in _elements(_GROUP, reader, kind, depth) if group[1] != {}]


def _chunks(reader: _Reader, kind: int, depth: int) -> dict[str, ColumnChunk] | None:
    """Return the columns of a row group by their paths, None if one of them is encrypted."""
    found: dict[str, ColumnChunk] = {}
    is_encrypted = False
    for chunk in _elements(_CHUNK, reader, kind, depth):
        if 8 in chunk or 9 in chunk:
            is_encrypted = True
            continue
        metadata = chunk[3]
        values, statistics = metadata[5], metadata.get(12, {})
        # The newer fields first; the older ones are right for numbers with a sign, days and truths.
        low, high = statistics.get(6, statistics.get(2)), statistics.get(5, statistics.get(1))
        nulls = statistics.get(3, -1)
        # Some writers say -1 where they did not count.
        found[metadata[3]] = ColumnChunk(values, nulls if 0 <= nulls <= values else None, low, high)
    return None if is_encrypted else found


_BOUNDS = dict.fromkeys((1, 2, 5, 6), _stored_bound)
_STATISTICS = _structure({**_BOUNDS, 3: _integer})
_METADATA = _structure({3: _path, 5: _integer, 12: _STATISTICS})
_CHUNK = _structure({3: _METADATA, 8: _present, 9: _present})
_GROUP = _structure({1: _chunks})
_FILE = _structure({4: _groups, 8: _present})
