"""Bloom filters: whether a value may be among those of a row group.

As ORC's writers fill them ("Bloom Filter Index" in the ORC v1 specification): numbers are hashed by Thomas
Wang's hash of 64 bits, texts and binaries by the 64 bits of Murmur3 that Hive made of it, decimals as text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.positions import TIMES
from lockgate.pushdown import Comparison, Op, Rank, plain, rank_of

_WORD = 0xFFFF_FFFF_FFFF_FFFF
_SEED = 104729
_FIRST, _SECOND = 0x87C37B91114253D5, 0x4CF5AD432745937F
_UTF8_UTC = 1
_NUMBERS = frozenset({TypeKind.BYTE, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG})
_FLOATS = frozenset({TypeKind.FLOAT, TypeKind.DOUBLE})
# CHAR is left out: writers do not agree whether its padding is hashed.
_BYTES = frozenset({TypeKind.STRING, TypeKind.VARCHAR, TypeKind.BINARY})
_EQUALITY = frozenset({Op.EQ, Op.EQ_NULL_SAFE, Op.IN})
_UTC_NAMES = frozenset({"GMT", "UTC", "Etc/UTC", "Etc/GMT", "Z"})


def hashes_of(
    node: Comparison, kind: TypeKind, type_: pa.DataType, encoding: proto.Message, zone: str
) -> list[int] | None:
    """Return the hashes of which at least one is in the filter of any row group where `node` is true.

    None if a Bloom filter cannot say: another operator, a type that is not hashed, NaN (many of them are
    equal). `encoding` and `zone`, the writer's time zone, are those of the column's stripe.
    """
    if node.op not in _EQUALITY or encoding.bloom_encoding != _UTF8_UTC:
        return None
    if kind is TypeKind.TIMESTAMP and zone not in _UTC_NAMES:
        return None
    hashes: list[int] = []
    for literal in node.literals:
        if not literal.is_valid:
            if node.op is Op.EQ_NULL_SAFE:
                return None
            continue
        ranked = rank_of(literal, type_)
        if ranked.rank is Rank.AT and ranked.value is not None:
            found = _hashes(ranked.value, kind)
            if found is None:
                return None
            hashes.extend(found)
    return hashes


def may_hold(bloom: proto.Message, hashes: Iterable[int]) -> bool:
    """Return whether one of the hashed values may be in the filter; False is certain."""
    bits, functions = bloom.utf8bitset, bloom.num_hash_functions
    if not bits or len(bits) % 8 or not functions:
        return True
    return any(_holds(bits, functions, value) for value in hashes)


def _holds(bits: bytes, functions: int, value: int) -> bool:
    low, high = value & 0xFFFF_FFFF, value >> 32
    for number in range(1, functions + 1):
        combined = (low + number * high) & 0xFFFF_FFFF
        if combined & 0x8000_0000:
            combined ^= 0xFFFF_FFFF
        bit = combined % (len(bits) * 8)
        if not bits[bit >> 3] >> (bit & 7) & 1:
            return False
    return True


def _hashes(value: pa.Scalar, kind: TypeKind) -> list[int] | None:
    if kind in _NUMBERS:
        return [hash_long(int(value.as_py()))]
    if kind is TypeKind.DATE:
        return [hash_long(int(value.value))]
    if kind in _FLOATS:
        return _of_float(float(value.as_py()))
    if kind in _BYTES:
        content = plain(value)
        return [hash_bytes(content)] if isinstance(content, bytes) else None
    if kind is TypeKind.DECIMAL:
        return [hash_bytes(text.encode()) for text in _decimal_texts(value.as_py())]
    if kind in TIMES:
        return [hash_long(millis) for millis in _millis(plain(value))]
    return None


def _of_float(value: float) -> list[int] | None:
    if value != value:
        return None
    # Zero equals minus zero, but not bit by bit.
    values = (0.0, -0.0) if value == 0 else (value,)
    return [hash_long(struct.unpack("<q", struct.pack("<d", each))[0]) for each in values]


def _decimal_texts(value: Decimal) -> set[str]:
    """Spell it as Java and C++ do: without zeros at the end of the fraction; also with them, to be safe."""
    whole = f"{value:f}"
    short = whole.rstrip("0").rstrip(".") if "." in whole else whole
    return {whole, "0" if short in ("-0", "") else short}


def _millis(nanoseconds: Any) -> set[int]:
    """Return milliseconds as some writer hashes them: rounded down or, before 1970, up."""
    millis = nanoseconds // 1_000_000
    return {millis, millis + 1} if nanoseconds < 0 else {millis}


def hash_long(value: int) -> int:
    """Hash 64 bits by Thomas Wang's function, with shifts to the right that keep the sign, as in Java."""
    key = value & _WORD
    key = (~key + (key << 21)) & _WORD
    key ^= _shifted(key, 24)
    key = (key + (key << 3) + (key << 8)) & _WORD
    key ^= _shifted(key, 14)
    key = (key + (key << 2) + (key << 4)) & _WORD
    key ^= _shifted(key, 28)
    return (key + (key << 31)) & _WORD


def _shifted(key: int, bits: int) -> int:
    signed = key - (1 << 64) if key >> 63 else key
    return signed >> bits & _WORD


def hash_bytes(data: bytes) -> int:
    """Return the 64 bits of Murmur3 as Hive computes them."""
    value = _SEED
    whole = len(data) // 8 * 8
    for (block,) in struct.iter_unpack("<Q", data[:whole]):
        value ^= _scrambled(block)
        value = (_rotated(value, 27) * 5 + 0x52DCE729) & _WORD
    if whole < len(data):
        value ^= _scrambled(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _WORD
    return value ^ value >> 33


def _scrambled(block: int) -> int:
    return _rotated(block * _FIRST & _WORD, 31) * _SECOND & _WORD


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _WORD
