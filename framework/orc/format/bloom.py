"""Bloom filters of ORC: whether a row group may contain a value.

ORC's writers ("Bloom Filter Index" in the ORC v1 specification) hash numbers by Thomas Wang's 64-bit hash,
texts and binaries by Hive's 64-bit variant of Murmur3, and decimals as text.
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
# Not CHAR: writers differ in whether they hash its padding.
_BYTES = frozenset({TypeKind.STRING, TypeKind.VARCHAR, TypeKind.BINARY})
_EQUALITY = frozenset({Op.EQ, Op.EQ_NULL_SAFE, Op.IN})
_UTC_NAMES = frozenset({"GMT", "UTC", "Etc/UTC", "Etc/GMT", "Z"})


def hashes_of(
    node: Comparison, kind: TypeKind, type_: pa.DataType, encoding: proto.Message, zone: str
) -> list[int] | None:
    """Return hashes of which every row group with a match of `node` has at least one in its Bloom filter.

    None if a Bloom filter cannot help: another operator, a type without a hash, or NaN, which has many bit
    patterns. `encoding` and `zone`, the writer's time zone, come from the column's stripe.
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
            literal_hashes = _hashes(ranked.value, kind)
            if literal_hashes is None:
                return None
            hashes.extend(literal_hashes)
    return hashes


def may_hold(bloom: proto.Message, hashes: Iterable[int]) -> bool:
    """Return whether the filter may contain one of the hashed values; False means that it contains none."""
    bits, functions = bloom.utf8bitset, bloom.num_hash_functions
    if not bits or len(bits) % 8 or not functions:
        return True
    return any(_contains(bits, functions, value) for value in hashes)


def _contains(bits: bytes, functions: int, value: int) -> bool:
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
        return _float_hashes(float(value.as_py()))
    if kind in _BYTES:
        content = plain(value)
        return [hash_bytes(content)] if isinstance(content, bytes) else None
    if kind is TypeKind.DECIMAL:
        return [hash_bytes(text.encode()) for text in _decimal_texts(value.as_py())]
    if kind in TIMES:
        return [hash_long(millis) for millis in _millis(plain(value))]
    return None


def _float_hashes(value: float) -> list[int] | None:
    if value != value:
        return None
    # Zero and minus zero are equal but have different bits.
    values = (0.0, -0.0) if value == 0 else (value,)
    return [hash_long(struct.unpack("<q", struct.pack("<d", number))[0]) for number in values]


def _decimal_texts(value: Decimal) -> set[str]:
    """Return the texts that writers hash: without trailing zeros, as Java and C++ do, and with them."""
    text = f"{value:f}"
    shortest = text.rstrip("0").rstrip(".") if "." in text else text
    return {text, "0" if shortest in ("-0", "") else shortest}


def _millis(nanoseconds: Any) -> set[int]:
    """Return the milliseconds that writers may hash: rounded down, and before 1970 also rounded up."""
    millis = nanoseconds // 1_000_000
    return {millis, millis + 1} if nanoseconds < 0 else {millis}


def hash_long(value: int) -> int:
    """Return Thomas Wang's 64-bit hash; right shifts keep the sign, as in Java."""
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
    """Return Hive's 64-bit variant of Murmur3."""
    value = _SEED
    blocks_end = len(data) // 8 * 8
    for (block,) in struct.iter_unpack("<Q", data[:blocks_end]):
        value ^= _scrambled(block)
        value = (_rotated(value, 27) * 5 + 0x52DCE729) & _WORD
    if blocks_end < len(data):
        value ^= _scrambled(int.from_bytes(data[blocks_end:], "little"))
    value ^= len(data)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & _WORD
    return value ^ value >> 33


def _scrambled(block: int) -> int:
    return _rotated(block * _FIRST & _WORD, 31) * _SECOND & _WORD


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _WORD
