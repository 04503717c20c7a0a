"""BinaryRow: the encoding of partitions, keys and statistics in manifests, and what buckets are hashed from.

Source: Paimon's specification, page "Manifest", appendix, and `AbstractBinaryWriter` for what it leaves open.
A row is a bit set of nulls (after one byte for the kind of the row), eight bytes for each field, then what
did not fit into eight bytes, padded to words. Integers are little-endian. In a file, the number of fields
goes before it as a big-endian integer.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from lockgate.errors import CorruptFileError, InputError, UnsupportedTypeError
from lockgate.framework.types import (
    DataType,
    Kind,
    date_of,
    days_of,
    micros_of,
    millis_of_day,
    one_nan,
    partition_key,
    time_of,
    timestamp_of,
)

# Up to these precisions a value fits into its eight bytes.
COMPACT_DECIMAL_PRECISION = 18
COMPACT_TIMESTAMP_PRECISION = 3

# Up to this length text and bytes are kept in the eight bytes, whose last one says so.
MAX_INLINE_LENGTH = 7

_ARITY = struct.Struct(">i")
_WORD = struct.Struct("<Q")
_LONG = struct.Struct("<q")
_EXACT = decimal.Context(prec=80, traps=[decimal.InvalidOperation, decimal.Inexact])

_FORMATS = {
    Kind.BOOLEAN: "<?7x",
    Kind.TINYINT: "<b7x",
    Kind.SMALLINT: "<h6x",
    Kind.INT: "<i4x",
    Kind.BIGINT: "<q",
    Kind.FLOAT: "<f4x",
    Kind.DOUBLE: "<d",
}

Encoder = Callable[[Any, int], tuple[bytes, bytes]]
Decoder = Callable[[bytes, int], Any]


def null_bits_width(arity: int) -> int:
    """Return the bytes of the header and the null bits of a row with `arity` fields."""
    return (arity + 71) // 64 * 8


def fixed_width(arity: int) -> int:
    """Return the bytes of the fixed part of a row with `arity` fields."""
    return null_bits_width(arity) + 8 * arity


class BinaryRowCodec:
    """Encodes and decodes rows of the given types; get one by `row_codec`."""

    def __init__(self, types: tuple[DataType, ...]) -> None:
        self._types = types
        self._arity = len(types)
        self._null_bits = null_bits_width(self._arity)
        self._fixed = fixed_width(self._arity)
        self._fields = [_field_codec(data_type) for data_type in types]
        self._reserve = [_reserved_for_null(data_type) for data_type in types]
        self._has_floats = any(data_type.kind in (Kind.FLOAT, Kind.DOUBLE) for data_type in types)

    def encode(self, values: Sequence[Any]) -> bytes:
        """Return the row without the number of fields.

        Raises InputError if a value does not fit its type or there are too many or too few.
        """
        if len(values) != self._arity:
            raise InputError(f"{len(values)} values for a row of {self._arity} fields")
        nulls = bytearray(self._null_bits)
        fixed: list[bytes] = []
        variable: list[bytes] = []
        cursor = self._fixed
        for position, value in enumerate(values):
            if value is None:
                bit = position + 8
                nulls[bit >> 3] |= 1 << (bit & 7)
                word, extra = bytes(8), bytes(self._reserve[position])
                if extra:
                    word = _WORD.pack(cursor << 32)
            else:
                word, extra = self._encode_field(position, value, cursor)
            fixed.append(word)
            if extra:
                variable.append(extra)
                cursor += len(extra)
        return b"".join((bytes(nulls), *fixed, *variable))

    def _encode_field(self, position: int, value: Any, cursor: int) -> tuple[bytes, bytes]:
        try:
            return self._fields[position][0](value, cursor)
        except (struct.error, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{value!r} is not a value of type {self._types[position]}: {error}") from None

    def decode(self, row: bytes) -> tuple[Any, ...]:
        """Return the values of a row without the number of fields; CorruptFileError if it is cut off."""
        if len(row) < self._fixed:
            raise CorruptFileError(f"a row of {self._arity} fields cannot have only {len(row)} bytes")
        values = []
        offset = self._null_bits
        for position, (_, decode) in enumerate(self._fields):
            bit = position + 8
            values.append(None if row[bit >> 3] >> (bit & 7) & 1 else decode(row, offset))
            offset += 8
        return partition_key(values) if self._has_floats else tuple(values)

    def decode_field(self, row: bytes, position: int) -> Any:
        """Return one value of a row without the number of fields; raises as `decode`."""
        if len(row) < self._fixed:
            raise CorruptFileError(f"a row of {self._arity} fields cannot have only {len(row)} bytes")
        bit = position + 8
        if row[bit >> 3] >> (bit & 7) & 1:
            return None
        return self._fields[position][1](row, self._null_bits + 8 * position)


@lru_cache(maxsize=512)
def row_codec(types: tuple[DataType, ...]) -> BinaryRowCodec:
    """Return the codec of rows of `types`; nullability makes no difference."""
    return BinaryRowCodec(types)


def encode_row(values: Sequence[Any], types: tuple[DataType, ...]) -> bytes:
    """Return the serialized row, as a manifest holds it: number of fields, then the row."""
    return _ARITY.pack(len(types)) + row_codec(types).encode(values)


def decode_row(data: bytes, types: tuple[DataType, ...]) -> tuple[Any, ...]:
    """Return the values of a serialized row.

    A row with no fields is taken as it is, whatever the types, because writers leave statistics out that way.
    Raises CorruptFileError if the row has another number of fields or is cut off.
    """
    return row_codec(types).decode(data[4:]) if _has_fields(data, types) else ()


def decode_field(data: bytes, types: tuple[DataType, ...], position: int) -> Any:
    """Return one value of a serialized row; None where it has no fields. Raises as `decode_row`."""
    return row_codec(types).decode_field(data[4:], position) if _has_fields(data, types) else None


def _has_fields(data: bytes, types: tuple[DataType, ...]) -> bool:
    if len(data) < 4:
        raise CorruptFileError(f"a serialized row cannot have only {len(data)} bytes")
    (arity,) = _ARITY.unpack_from(data)
    if arity not in (0, len(types)):
        raise CorruptFileError(f"a serialized row has {arity} fields where {len(types)} are expected")
    return bool(arity)


# --- one field -----------------------------------------------------------------------------------


def _field_codec(data_type: DataType) -> tuple[Encoder, Decoder]:
    kind = data_type.kind
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return _converted(_plain(struct.Struct(_FORMATS[kind])), lambda value: value, one_nan)
    if kind in _FORMATS:
        return _plain(struct.Struct(_FORMATS[kind]))
    if data_type.is_string:
        return _converted(_BYTES, lambda text: text.encode(), lambda data: data.decode())
    if data_type.is_binary:
        return _converted(_BYTES, bytes, bytes)
    if kind is Kind.DATE:
        return _converted(_plain(struct.Struct("<i4x")), days_of, date_of)
    if kind is Kind.TIME:
        return _converted(_plain(struct.Struct("<i4x")), millis_of_day, time_of)
    if kind is Kind.DECIMAL:
        return _decimal(data_type.precision or 0, data_type.scale or 0)
    if data_type.is_timestamp:
        utc = kind is Kind.TIMESTAMP_LTZ
        inner = _timestamp(data_type.precision or 0)
        return _converted(inner, micros_of, lambda micros: timestamp_of(micros, utc=utc))
    return _nested(data_type)


def _reserved_for_null(data_type: DataType) -> int:
    """Return the bytes that a null leaves in the variable part, so that it can be set later."""
    precision = data_type.precision or 0
    if data_type.kind is Kind.DECIMAL and precision > COMPACT_DECIMAL_PRECISION:
        return 16
    if data_type.is_timestamp and precision > COMPACT_TIMESTAMP_PRECISION:
        return 8
    return 0


def _plain(layout: struct.Struct) -> tuple[Encoder, Decoder]:
    return (lambda value, cursor: (layout.pack(value), b"")), (lambda row, at: layout.unpack_from(row, at)[0])


def _converted(
    inner: tuple[Encoder, Decoder], before: Callable[[Any], Any], after: Callable[[Any], Any]
) -> tuple[Encoder, Decoder]:
    encode, decode = inner
    return (lambda value, cursor: encode(before(value), cursor)), (lambda row, at: after(decode(row, at)))


def _encode_bytes(data: bytes, cursor: int) -> tuple[bytes, bytes]:
    length = len(data)
    if length <= MAX_INLINE_LENGTH:
        return data.ljust(7, b"\0") + bytes([0x80 | length]), b""
    return _WORD.pack(cursor << 32 | length), data + bytes(-length % 8)


def _decode_bytes(row: bytes, at: int) -> bytes:
    mark = row[at + 7]
    if mark & 0x80:
        return row[at : at + (mark & 0x7F)]
    offset, length = _pointer(row, at)
    return _slice(row, offset, length)


_BYTES: tuple[Encoder, Decoder] = (_encode_bytes, _decode_bytes)


def _pointer(row: bytes, at: int) -> tuple[int, int]:
    (word,) = _WORD.unpack_from(row, at)
    return word >> 32, word & 0xFFFFFFFF


def _slice(row: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(row):
        raise CorruptFileError(f"a row of {len(row)} bytes points to byte {offset + length}")
    return row[offset : offset + length]


def _decimal(precision: int, scale: int) -> tuple[Encoder, Decoder]:
    limit = 10**precision

    def unscaled_of(value: Any) -> int:
        scaled = _EXACT.scaleb(decimal.Decimal(value), scale)
        unscaled = int(scaled)
        if unscaled != scaled or not -limit < unscaled < limit:
            raise InputError(f"{value} does not fit into DECIMAL({precision}, {scale})")
        return unscaled

    def value_of(unscaled: int) -> decimal.Decimal:
        return _EXACT.scaleb(decimal.Decimal(unscaled), -scale)

    if precision <= COMPACT_DECIMAL_PRECISION:
        return _converted(_plain(_LONG), unscaled_of, value_of)

    def encode(value: Any, cursor: int) -> tuple[bytes, bytes]:
        unscaled = unscaled_of(value)
        # As few bytes as hold the number and its sign, as Java's BigInteger gives them.
        magnitude = unscaled if unscaled >= 0 else ~unscaled
        data = unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
        return _WORD.pack(cursor << 32 | len(data)), data.ljust(16, b"\0")

    def decode(row: bytes, at: int) -> decimal.Decimal:
        return value_of(int.from_bytes(_slice(row, *_pointer(row, at)), "big", signed=True))

    return encode, decode


def _timestamp(precision: int) -> tuple[Encoder, Decoder]:
    """Make the codec of microseconds; digits beyond them are dropped when a row is read."""
    if precision <= COMPACT_TIMESTAMP_PRECISION:
        return _converted(_plain(_LONG), lambda micros: micros // 1000, lambda millis: millis * 1000)

    def encode(micros: int, cursor: int) -> tuple[bytes, bytes]:
        millis, rest = divmod(micros, 1000)
        return _WORD.pack(cursor << 32 | rest * 1000), _LONG.pack(millis)

    def decode(row: bytes, at: int) -> int:
        offset, nanos = _pointer(row, at)
        (millis,) = _LONG.unpack(_slice(row, offset, 8))
        return int(millis) * 1000 + nanos // 1000

    return encode, decode


def _nested(data_type: DataType) -> tuple[Encoder, Decoder]:
    def encode(value: Any, cursor: int) -> tuple[bytes, bytes]:
        raise UnsupportedTypeError(f"a value of type {data_type} cannot be a key, a partition or a statistic")

    # Nobody writes statistics of nested columns; were there some, they would be as good as unknown.
    return encode, lambda row, at: None
