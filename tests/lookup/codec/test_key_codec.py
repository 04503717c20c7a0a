"""Equal keys have equal bytes, different keys different ones, and sorting by bytes is sorting by hash."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.lookup.codec import key_codec
from lockgate.lookup.codec.key_codec import PRIMARY_SPACE, KeyCodec, widen, widens

COMPOSITE = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.binary())])
COMPOSITE_ROWS = st.lists(
    st.tuples(st.none() | st.integers(-3, 3), st.none() | st.text("ab\0", max_size=3), st.binary(max_size=2)),
    min_size=1,
    max_size=40,
)


def columns(rows: list[tuple[Any, ...]], schema: pa.Schema) -> list[pa.Array]:
    return [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)]


def check(rows: list[tuple[Any, ...]], codec: KeyCodec) -> None:
    keys = codec.encode(columns(rows, codec.schema))
    present = [row for row in rows if None not in row]
    assert keys.valid.tolist() == [None not in row for row in rows]
    encoded = keys.rows.to_bytes()
    assert len(set(zip(present, encoded, strict=True))) == len(set(present)) == len(set(encoded))
    groups = keys.distinct()
    first = [encoded[n] for n in groups.first]
    assert first == sorted(set(encoded))
    assert [first[n] for n in groups.inverse] == encoded
    for number, key in enumerate(first):
        at = [n for n, other in enumerate(encoded) if other == key]
        assert (groups.first[number], groups.last[number]) == (at[0], at[-1])


@settings(max_examples=examples(150))
@given(COMPOSITE_ROWS)
def test_composite_keys_are_injective_and_sorted(rows: list[tuple[Any, ...]]) -> None:
    check(rows, KeyCodec(COMPOSITE))


@settings(max_examples=examples(50))
@given(COMPOSITE_ROWS)
def test_keys_of_one_hash_are_told_apart(rows: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_codec, "hash_rows", lambda rows: np.full(len(rows), 7, np.uint64))
        check(rows, KeyCodec(COMPOSITE))


@settings(max_examples=examples(50))
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40))
def test_integer_keys(values: list[int]) -> None:
    check([(value,) for value in values], KeyCodec(pa.schema([("k", pa.int64())])))


def test_key_spaces_do_not_meet() -> None:
    schema = pa.schema([("k", pa.int64())])
    values = [pa.array(range(100))]
    lookup = KeyCodec(schema).encode(values).rows.to_bytes()
    primary = KeyCodec(schema, PRIMARY_SPACE).encode(values).rows.to_bytes()
    assert max(lookup) < min(primary)


def test_floats_compare_as_in_sql() -> None:
    codec = KeyCodec(pa.schema([("f", pa.float64())]))
    keys = codec.encode([pa.array([0.0, -0.0, float("nan"), -float("nan"), 1.5])]).rows.to_bytes()
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert len(set(keys)) == 3


def test_hashes_of_different_widths_agree_with_alone() -> None:
    codec = KeyCodec(pa.schema([("s", pa.string())]))
    texts = ["", "a", "b" * 9, "c" * 30, "a"]
    together = codec.encode([pa.array(texts)]).rows.to_bytes()
    assert together == [codec.encode([pa.array([text])]).rows.to_bytes()[0] for text in texts]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int8(), pa.int64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.int32(), pa.float64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(10, 4)),
        (pa.string(), pa.large_string()),
        (pa.timestamp("us", "America/New_York"), pa.timestamp("us", "UTC")),
    ],
)
def test_widening_finds_the_same_key(source: pa.DataType, target: pa.DataType) -> None:
    values: list[Any] = [None]
    if pa.types.is_string(source):
        values.append("x")
    elif pa.types.is_decimal(source):
        values.append(decimal.Decimal("1.25"))
    else:
        values.append(7)
    codec = KeyCodec(pa.schema([("k", target)]))
    narrow = pa.array(values, source)
    wide = narrow.cast(target)
    assert codec.encode([narrow]).rows.to_bytes() == codec.encode([wide]).rows.to_bytes()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.string()),
        (pa.string(), pa.date32()),
        (pa.float64(), pa.decimal128(10, 2)),
        (pa.decimal128(10, 2), pa.decimal128(10, 4)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.bool_(), pa.int32()),
    ],
)
def test_anything_else_names_both_types(source: pa.DataType, target: pa.DataType) -> None:
    assert not widens(source, target)
    with pytest.raises(InputError, match="join column 'k' has type") as caught:
        widen(pa.array([], source), target, "k")
    assert str(source) in str(caught.value)
    assert str(target) in str(caught.value)


def test_a_nested_key_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="cannot join on"):
        KeyCodec(pa.schema([("k", pa.list_(pa.int8()))]))
