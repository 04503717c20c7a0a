"""Keys as bytes: a 64-bit hash for sorting, then bytes that differ for any two keys.

The bytes of a key are its row (`row_codec`) with the null word replaced by the hash, most significant byte
first, so that RocksDB's order by bytes is the order of the hashes and sorting a batch sorts machine words.
The top bit of the hash names the key space: lookup keys and, for tables joined by something else, primary
keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.lookup.codec.byte_rows import Bools, Int64s, Rows, UInt64s
from lockgate.lookup.codec.nested import is_nested
from lockgate.lookup.codec.row_codec import RowCodec

LOOKUP_SPACE = 0
PRIMARY_SPACE = 1

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SPACE_SHIFT = np.uint64(63)
_HASH_BITS = np.uint64((1 << 63) - 1)


def mix(words: UInt64s) -> UInt64s:
    """Scramble 64-bit words one to one (the finaliser of SplitMix64, Steele et al. 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hash_rows(rows: Rows) -> UInt64s:
    """Hash each row to 64 bits; a word counts with its position."""
    count = len(rows)
    if count == 0:
        return np.zeros(0, np.uint64)
    lengths = rows.lengths
    width = int(lengths[0])
    if (lengths == width).all():
        words = rows.words[rows.offsets[0] : rows.offsets[-1]].reshape(count, width)
        salt = np.arange(1, width + 1, dtype=np.uint64) * _GOLDEN
        return mix(mix(words + salt).sum(axis=1, dtype=np.uint64))
    position = np.arange(int(rows.offsets[-1]), dtype=np.int64) - np.repeat(rows.offsets[:-1], lengths)
    salted = mix(rows.words[: int(rows.offsets[-1])] + (position + 1).astype(np.uint64) * _GOLDEN)
    return mix(np.add.reduceat(salted, rows.offsets[:-1]))


@dataclass(frozen=True)
class Keys:
    """Encoded keys: `rows` of the keys without nulls, their `hashes`, and where they stood (`valid`)."""

    rows: Rows
    hashes: UInt64s
    valid: Bools

    def distinct(self) -> DistinctKeys:
        """Sort the keys and drop repeated ones; see `Distinct`."""
        return distinct(self.rows, self.hashes)


@dataclass(frozen=True)
class DistinctKeys:
    """Keys sorted by their bytes, each once.

    `order` sorts the keys (stable), `starts` are the positions in `order` where a new key begins,
    `inverse[i]` is the number of key i among the distinct ones.
    """

    order: Int64s
    starts: Int64s
    inverse: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first(self) -> Int64s:
        """The first of each group of equal keys, in the order of their arrival."""
        return self.order[self.starts]

    @property
    def last(self) -> Int64s:
        """The last of each group of equal keys, in the order of their arrival."""
        ends = np.append(self.starts[1:], len(self.order))
        last: Int64s = self.order[ends - 1]
        return last


def distinct(rows: Rows, hashes: UInt64s) -> DistinctKeys:
    """Group equal keys: by hash, then exactly, so that keys of one hash are never taken for each other."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    fresh = np.ones(len(order), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    repeated = np.flatnonzero(~fresh)
    if len(repeated) and not rows.equal_at(order[repeated - 1], order[repeated]).all():
        order, fresh = _distinct_exactly(rows)
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    return DistinctKeys(order, np.flatnonzero(fresh), inverse)


def _distinct_exactly(rows: Rows) -> tuple[Int64s, Bools]:
    # Two different keys share a hash: about once in 2^63 pairs, so plain Python is fast enough.
    keys = rows.to_bytes()
    order = sorted(range(len(keys)), key=keys.__getitem__)
    fresh = [at == 0 or keys[row] != keys[order[at - 1]] for at, row in enumerate(order)]
    return np.array(order, np.int64), np.array(fresh, bool)


class KeyCodec:
    """Encodes the key columns of one dimension; `schema` names and types them, in key order.

    Keys must be of flat types; floats compare as in SQL (NaN equals NaN, -0.0 equals 0.0). In an encrypted
    cache `seal` puts a MAC in place of the hash, and the keys are sorted by that.
    """

    def __init__(
        self, schema: pa.Schema, space: int = LOOKUP_SPACE, seal: Callable[[Rows], Rows] | None = None
    ) -> None:
        if len(schema) == 0:
            raise InputError("a lookup needs at least one key column")
        self.schema = schema
        self.space = space
        self._seal = seal
        for field in schema:
            if is_nested(field.type):
                raise UnsupportedTypeError(
                    f"cannot join on column {field.name!r} of type {field.type}: keys are of flat types"
                )
        try:
            self._rows = RowCodec(schema)
        except UnsupportedTypeError as error:
            raise UnsupportedTypeError(f"cannot join on {schema.names}: {error}") from None

    def encode(self, columns: Sequence[pa.Array]) -> Keys:
        """Encode key columns, widening them to this codec's types; a key with a null is left out."""
        arrays = [
            _normal(widen(column, field.type, field.name))
            for column, field in zip(columns, self.schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        valid = np.ones(batch.num_rows, bool)
        for array in arrays:
            if array.null_count:
                valid &= np.asarray(array.is_valid())
        if not valid.all():
            batch = batch.filter(pa.array(valid))
        rows = self._rows.encode(batch)
        hashes = hash_rows(rows) & _HASH_BITS | np.uint64(self.space) << _SPACE_SHIFT
        words = rows.words.copy()
        words[rows.offsets[:-1]] = hashes.byteswap()
        keys = Rows(words, rows.offsets)
        if self._seal is not None:
            keys = self._seal(keys)
            hashes = keys.words[keys.offsets[:-1]].byteswap()
        return Keys(keys, hashes, valid)

    def decode(self, keys: Rows) -> pa.RecordBatch:
        """Return the columns of encoded keys that are not sealed."""
        assert self._seal is None, "a sealed key cannot be read"
        words = keys.words.copy()
        words[keys.starts] = 0  # the word of the hash, which says of rows which values are null: none here
        return self._rows.decode(Rows(words, keys.offsets))


def _normal(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    canonical = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    # Adding a positive zero turns the negative one into it and changes nothing else.
    return pc.add(canonical, pa.scalar(0.0, column.type))


# --- widening --------------------------------------------------------------------------------------

_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


def widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether every value of `source` is exactly a value of `target` (or the two are the same kind)."""
    if source == target:
        return True
    if (_is_text(source) and _is_text(target)) or (_is_bytes(source) and _is_bytes(target)):
        return True
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    if pa.types.is_integer(source):
        return _integer_widens(source, target)
    if pa.types.is_floating(source):
        return bool(pa.types.is_floating(target) and target.bit_width >= source.bit_width)
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        whole = target.precision - target.scale >= source.precision - source.scale
        return bool(whole and target.scale >= source.scale)
    return False


def _integer_widens(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_integer(target):
        signed = pa.types.is_signed_integer(source) == pa.types.is_signed_integer(target)
        return bool(signed and target.bit_width >= source.bit_width)
    if pa.types.is_decimal(target):
        return bool(target.precision - target.scale >= _INTEGER_DIGITS[source.bit_width])
    # A float of 24 or 53 bits of mantissa holds the integers of 16 or 32 bits exactly.
    return bool(pa.types.is_floating(target) and target.bit_width >= 2 * source.bit_width)


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_bytes(data_type: pa.DataType) -> bool:
    fixed = pa.types.is_fixed_size_binary(data_type) and not pa.types.is_decimal(data_type)
    return bool(pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or fixed)


def widen(column: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    """Bring a key column to the dimension's type.

    Raises `InputError` naming both types where a value could change or be lost.
    """
    if column.type == target:
        return column
    if pa.types.is_dictionary(column.type):
        return widen(column.cast(column.type.value_type), target, name)
    if not widens(column.type, target):
        raise InputError(type_mismatch(repr(name), str(column.type), str(target)))
    return column.cast(target)


def type_mismatch(name: str, stream_type: str, dimension_type: str) -> str:
    """Return the message for a join column, named in quotes, whose types do not fit."""
    return (
        f"join column {name} has type {stream_type} in the stream and {dimension_type} in the dimension; "
        "only widening is done by itself: cast the stream's column"
    )
