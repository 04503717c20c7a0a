"""ORC's run-length encodings: decoding integers, and dropping the values before a row group.

Integers are in "Integer Run Length Encoding, version 2" of the ORC v1 specification, bytes and packed bits in
"Byte Run Length Encoding".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

# The widths by their five-bit code.
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_SHORT_REPEAT, _DIRECT, _PATCHED_BASE = 0, 1, 2
_MAX_LITERAL_LENGTH = 128


class Form(enum.Enum):
    """Encodings of a stream's values."""

    RAW = "raw"
    SIGNED = "signed integers"
    UNSIGNED = "unsigned integers"
    BYTES = "bytes"
    BITS = "bits"

    @property
    def counters(self) -> int:
        """The count of numbers in a position after the start of the run: values to skip, then bits."""
        return {Form.RAW: 0, Form.BITS: 2}.get(self, 1)


def span(form: Form, data: bytes, count: int) -> int | None:
    """Return the size in bytes of the runs with the first `count` values; None if `data` ends earlier.

    Raises `ValueError` for an invalid run.
    """
    position = 0
    read_run = _run_reader(form) if count else _byte_run
    while count > 0:
        try:
            values, position = read_run(data, position)
        except IndexError:
            return None
        if position > len(data):
            return None
        count -= values
    return position


def drop(form: Form, data: bytes, count: int) -> bytes:
    """Return `data` without its first `count` values; if that splits a run, its rest becomes a new run.

    The runs of these values must be complete (see `span`).
    """
    position = 0
    read_run = _run_reader(form) if count else _byte_run
    while count > 0:
        values, end = read_run(data, position)
        if count < values:
            return _rest_of_run(form, data, position, count) + data[end:]
        count -= values
        position = end
    return data[position:]


def drop_bits(data: bytes, count: int, bits: int) -> bytes:
    """Return runs of packed bits without the first `count` bytes and the `bits` bits after them."""
    packed = np.frombuffer(b"".join(_byte_runs(data)), np.uint8)[count:]
    return _literals(np.packbits(np.unpackbits(packed)[bits:]).tobytes())


def decode_integers(data: bytes, count: int, *, signed: bool) -> Numbers:
    """Decode the first `count` integers of `data`; `ValueError` if there are fewer, or for an invalid run."""
    parts: list[Numbers] = []
    position = decoded = 0
    while decoded < count:
        try:
            _, end = _integer_run(data, position)
            if end > len(data):
                raise IndexError
            parts.append(_integers(data, position, signed))
        except IndexError:
            raise ValueError(f"{decoded} integers, not {count}") from None
        decoded += len(parts[-1])
        position = end
    return np.concatenate(parts)[:count] if parts else np.empty(0, np.int64)


def _run_reader(form: Form) -> Callable[[bytes, int], tuple[int, int]]:
    if form in (Form.BYTES, Form.BITS):
        return _byte_run
    if form is Form.RAW:
        raise ValueError("a position inside a value")
    return _integer_run


def _rest_of_run(form: Form, data: bytes, position: int, count: int) -> bytes:
    if form in (Form.BYTES, Form.BITS):
        return _literals(next(_byte_runs(data[position:]))[count:])
    values = _integers(data, position, form is Form.SIGNED)[count:]
    words = values.view(np.uint64)
    if form is Form.SIGNED:
        words = ((values << 1) ^ (values >> 63)).view(np.uint64)
    length = len(words) - 1
    header = bytes([_DIRECT << 6 | (len(_WIDTHS) - 1) << 1 | length >> 8, length & 0xFF])
    return header + words.astype(">u8").tobytes()


def _byte_run(data: bytes, position: int) -> tuple[int, int]:
    """Return the number of values of the run at `position`, and its end."""
    header = data[position]
    return (header + 3, position + 2) if header < 128 else (256 - header, position + 1 + 256 - header)


def _byte_runs(data: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        count, end = _byte_run(data, position)
        run = data[position + 1 : end]
        yield run * count if data[position] < 128 else run
        position = end


def _literals(values: bytes) -> bytes:
    parts: list[bytes] = []
    for start in range(0, len(values), _MAX_LITERAL_LENGTH):
        part = values[start : start + _MAX_LITERAL_LENGTH]
        parts.append(bytes([256 - len(part)]))
        parts.append(part)
    return b"".join(parts)


def _integer_run(data: bytes, position: int) -> tuple[int, int]:
    """Return the number of values of the run at `position`, and its end; `IndexError` for a truncated
    header.
    """
    header = data[position]
    kind = header >> 6
    if kind == _SHORT_REPEAT:
        return (header & 7) + 3, position + 2 + (header >> 3 & 7)
    code = header >> 1 & 31
    count = ((header & 1) << 8 | data[position + 1]) + 1
    if kind == _DIRECT:
        return count, position + 2 + _byte_count(count, _WIDTHS[code])
    if kind == _PATCHED_BASE:
        base, _, patches, patch_width = _patch_header(data, position)
        packed = _byte_count(count, _WIDTHS[code]) + _byte_count(patches, patch_width)
        return count, position + 4 + base + packed
    _, position = _varint(data, position + 2)
    _, position = _varint(data, position)
    return count, position + (_byte_count(count - 2, _WIDTHS[code]) if code and count > 2 else 0)


def _patch_header(data: bytes, position: int) -> tuple[int, int, int, int]:
    """Return the header of a patched run: bytes of the base, bits of a patch, number of patches, and bits of
    a patch with its gap.
    """
    third, fourth = data[position + 2], data[position + 3]
    width = _WIDTHS[third & 31]
    entry_width = width + (fourth >> 5) + 1
    if entry_width > 64:
        raise ValueError(f"patches have {entry_width} bits, more than 64")
    return (third >> 5) + 1, width, fourth & 31, next(bits for bits in _WIDTHS if bits >= entry_width)


def _integers(data: bytes, position: int, signed: bool) -> Numbers:
    """Return the values of the run at `position`; unsigned values keep their 64 bits."""
    header = data[position]
    kind = header >> 6
    if kind == _SHORT_REPEAT:
        end = position + 2 + (header >> 3 & 7)
        word = int.from_bytes(data[position + 1 : end], "big")
        return _values(np.full((header & 7) + 3, word, np.uint64), signed)
    code = header >> 1 & 31
    count = ((header & 1) << 8 | data[position + 1]) + 1
    if kind == _DIRECT:
        return _values(_unpack(data, position + 2, count, _WIDTHS[code]), signed)
    if kind == _PATCHED_BASE:
        return _patched_base(data, position, count, _WIDTHS[code])
    return _deltas(data, position + 2, count, _WIDTHS[code] if code else 0, signed)


def _patched_base(data: bytes, position: int, count: int, width: int) -> Numbers:
    base_bytes, patch_bits, patches, patch_width = _patch_header(data, position)
    position += 4
    base = int.from_bytes(data[position : position + base_bytes], "big")
    sign = 1 << (base_bytes * 8 - 1)
    if base & sign:
        base = -(base & (sign - 1))
    position += base_bytes
    words = _unpack(data, position, count, width)
    position += _byte_count(count, width)
    at = 0
    for patch in _unpack(data, position, patches, patch_width).tolist():
        at += patch >> patch_bits
        if at >= count:
            raise ValueError("a patch lies beyond its run")
        high = (patch & ((1 << patch_bits) - 1)) << width & 0xFFFF_FFFF_FFFF_FFFF
        words[at] |= np.uint64(high)
    offset = np.array([base & 0xFFFF_FFFF_FFFF_FFFF], np.uint64)
    return (words + offset).view(np.int64)


def _deltas(data: bytes, position: int, count: int, width: int, signed: bool) -> Numbers:
    first, position = _varint(data, position)
    step, position = _varint(data, position)
    delta = _zigzag(step)
    steps = np.full(count, _wrapped(delta), np.int64)
    steps[0] = _wrapped(_zigzag(first) if signed else first)
    if width and count > 2:
        words = _unpack(data, position, count - 2, width).view(np.int64)
        steps[2:] = -words if delta < 0 else words
    return np.cumsum(steps)


def _unpack(data: bytes, position: int, count: int, width: int) -> _Words:
    """Unpack `count` numbers of `width` bits each, highest bit first."""
    packed = np.frombuffer(data, np.uint8, _byte_count(count, width), position)
    bits = np.zeros((count, 64), np.uint8)
    bits[:, 64 - width :] = np.unpackbits(packed)[: count * width].reshape(count, width)
    return np.packbits(bits, axis=1).view(">u8").reshape(count).astype(np.uint64)


def _values(words: _Words, signed: bool) -> Numbers:
    if not signed:
        return words.view(np.int64)
    return (words >> np.uint64(1)).view(np.int64) ^ -(words & np.uint64(1)).view(np.int64)


def _zigzag(word: int) -> int:
    return word >> 1 ^ -(word & 1)


def _wrapped(value: int) -> int:
    """Return the lower 64 bits of a number as a signed number."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _byte_count(count: int, width: int) -> int:
    return (count * width + 7) // 8
