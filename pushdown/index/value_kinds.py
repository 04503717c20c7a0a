"""Kinds of indexed values, and values as keys: integers or bytes in Java's order of the values.

Booleans, dates and times are integers. A timestamp's key is its milliseconds or microseconds, a decimal's its
unscaled value. Among keys of floats, -0.0 is less than 0.0, and NaN, a single key, is the greatest.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Key: TypeAlias = "int | bytes"
Numbers: TypeAlias = npt.NDArray[np.int64]
Keys: TypeAlias = "Numbers | pa.BinaryArray"


class ValueKind(Enum):
    """A kind of indexed values, with the `struct` format of a stored value; texts and bytes have none."""

    BOOLEAN = ("boolean", "?")
    TINYINT = ("tinyint", "b")
    SMALLINT = ("smallint", "h")
    INT = ("int", "i")
    BIGINT = ("bigint", "q")
    FLOAT = ("float", "i")
    DOUBLE = ("double", "q")
    TEXT = ("text", "")
    BYTES = ("bytes", "")
    MILLIS = ("timestamp of milliseconds", "q")
    MICROS = ("timestamp of microseconds", "q")
    DECIMAL = ("decimal", "q")

    def __init__(self, label: str, code: str) -> None:
        self.label = label
        self._code = struct.Struct(f">{code}")

    @property
    def is_bytes(self) -> bool:
        """Return whether keys are bytes."""
        return self in (ValueKind.TEXT, ValueKind.BYTES)

    @property
    def is_coarse(self) -> bool:
        """Return whether different values may have the same key: writers store finer times in columns of
        milliseconds.
        """
        return self is ValueKind.MILLIS

    @property
    def width(self) -> int:
        """The bytes of a stored value, 0 if the size varies."""
        return 0 if self.is_bytes else self._code.size

    def pack(self, key: Key) -> bytes:
        """Return the stored bytes of a value."""
        if isinstance(key, bytes):
            return struct.pack(">i", len(key)) + key
        return self._code.pack(_bits(key, self._float_width))

    def unpack(self, data: bytes, at: int) -> tuple[Key, int]:
        """Return the value stored at an offset, and its end."""
        if not self.is_bytes:
            return _bits(int(self._code.unpack_from(data, at)[0]), self._float_width), at + self._code.size
        (length,) = struct.unpack_from(">i", data, at)
        end = at + 4 + length
        if length < 0 or end > len(data):
            raise ValueError("a value ends beyond the index")
        return data[at + 4 : end], end

    @property
    def _float_width(self) -> int:
        return {ValueKind.FLOAT: 32, ValueKind.DOUBLE: 64}.get(self, 0)

    def bits(self, numbers: Numbers) -> Numbers:
        """Return the float bits of float keys; other keys are unchanged."""
        width = self._float_width
        return numbers if not width else _flipped(numbers, width)

    def keys(self, values: pa.Array) -> Keys:
        """Return the keys of non-null values, which have the Arrow type of their column."""
        if self.is_bytes:
            return values.cast(pa.binary())
        if self._float_width:
            return _flipped(_float_bits(values), self._float_width)
        if self is ValueKind.DECIMAL:
            return _unscaled(values)
        if pa.types.is_timestamp(values.type):
            return self._timestamp_keys(values)
        if pa.types.is_date(values.type) or pa.types.is_time(values.type):
            values = values.cast(pa.int32())
        return _numbers(values)

    def _timestamp_keys(self, values: pa.Array) -> Numbers:
        timestamps, unit = _numbers(values.cast(pa.int64())), values.type.unit
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        key_units = 10**3 if self is ValueKind.MILLIS else 10**6
        if per_second <= key_units:
            return timestamps * (key_units // per_second)
        return timestamps // (per_second // key_units)


def key_of(kind: ValueKind, value: pa.Scalar) -> Key:
    """Return the key of one value, which has the Arrow type of its column."""
    keys = kind.keys(pa.array([value], value.type))
    return int(keys[0]) if isinstance(keys, np.ndarray) else bytes(keys[0].as_py())


def _numbers(values: pa.Array) -> Numbers:
    return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)


def _float_bits(values: pa.Array) -> Numbers:
    floats = values.to_numpy(zero_copy_only=False).copy()
    floats[np.isnan(floats)] = np.nan  # Java stores every NaN as this one
    bits: Any = np.int32 if floats.dtype == np.float32 else np.int64
    return np.asarray(floats.view(bits)).astype(np.int64)


def _flipped(numbers: Numbers, width: int) -> Numbers:
    """Convert float bits to integers in the floats' order, and back: bits of negatives sort descending."""
    return np.where(numbers < 0, numbers ^ np.int64(2 ** (width - 1) - 1), numbers)


def _bits(number: int, width: int) -> int:
    return number ^ (2 ** (width - 1) - 1) if width and number < 0 else number


def _unscaled(values: pa.Array) -> Numbers:
    # A decimal is two 64-bit words, the lower one first; up to 18 digits fit in the lower word.
    words = np.frombuffer(values.buffers()[1], np.int64)
    return np.ascontiguousarray(words[2 * values.offset : 2 * (values.offset + len(values)) : 2])
