"""Rows survive the codec exactly, whatever their types, nulls, offsets and order."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import UnsupportedTypeError
from lockgate.lookup.codec.byte_rows import Rows, Scattered, ragged
from lockgate.lookup.codec.row_codec import RowCodec

MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))
TYPES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.decimal128(9, 2): st.decimals(-9999999, 9999999, places=2),
    pa.decimal128(18, 0): st.integers(-(10**18) + 1, 10**18 - 1).map(decimal.Decimal),
    pa.decimal128(38, 4): st.integers(-(10**37), 10**37).map(lambda n: decimal.Decimal(n).scaleb(-4)),
    pa.date32(): st.dates(),
    pa.time32("ms"): st.times().map(lambda t: t.replace(microsecond=0)),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS.map(lambda t: t.replace(tzinfo=datetime.UTC)),
    pa.string(): st.text(max_size=20),
    pa.large_string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=20),
    pa.large_binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
}


def with_nested(kind: pa.DataType, depth: int = 2) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    """A type that holds `kind` in a list, map or struct, some levels deep, and a strategy for its values."""
    flat = st.just((kind, TYPES[kind]))
    if depth == 0:
        return flat
    inner = with_nested(kind, depth - 1)
    lists = inner.map(lambda made: (pa.list_(made[0]), st.lists(st.none() | made[1], max_size=3)))
    large = inner.map(lambda made: (pa.large_list(made[0]), st.lists(st.none() | made[1], max_size=2)))
    maps = inner.map(
        lambda made: (
            pa.map_(pa.int16(), made[0]),
            st.dictionaries(st.integers(0, 99), st.none() | made[1], max_size=3).map(
                lambda m: list(m.items())
            ),
        )
    )
    structs = inner.map(
        lambda made: (
            pa.struct([("a", made[0]), ("b", pa.string())]),
            st.fixed_dictionaries({"a": st.none() | made[1], "b": st.none() | st.text(max_size=3)}),
        )
    )
    return st.one_of(flat, lists, large, maps, structs)


@st.composite
def nested_batches(draw: st.DrawFn) -> pa.RecordBatch:
    made = draw(st.lists(st.sampled_from(list(TYPES)).flatmap(with_nested), min_size=1, max_size=3))
    count = draw(st.integers(0, 8))
    columns = []
    for kind, values in made:
        column = draw(st.lists(st.none() | values, min_size=count + 1, max_size=count + 1))
        columns.append(pa.array(column, kind).slice(draw(st.integers(0, 1)), count))
    return pa.RecordBatch.from_arrays(columns, [f"c{n}" for n in range(len(columns))])


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=8))
    count = draw(st.integers(0, 20))
    lists = {kind: st.lists(st.none() | TYPES[kind], min_size=count, max_size=count) for kind in kinds}
    columns = [pa.array(draw(lists[kind]), kind) for kind in kinds]
    return pa.RecordBatch.from_arrays(columns, [f"c{n}" for n in range(len(kinds))])


@settings(max_examples=examples(150))
@given(batches(), st.data())
def test_rows_survive_in_any_order(batch: pa.RecordBatch, data: st.DataObject) -> None:
    codec = RowCodec(batch.schema)
    rows = codec.encode(batch)
    assert codec.decode(rows).equals(batch)
    if batch.num_rows:
        order = data.draw(st.lists(st.integers(0, batch.num_rows - 1), min_size=1, max_size=30))
        wanted = batch.take(pa.array(order))
        taken = rows.take(np.array(order))
        assert codec.decode(taken).equals(wanted)
        assert codec.decode(Rows.from_values(taken.to_bytes())).equals(wanted)


@settings(max_examples=examples(150))
@given(nested_batches(), st.data())
def test_nested_values_survive_in_any_order(batch: pa.RecordBatch, data: st.DataObject) -> None:
    codec = RowCodec(batch.schema)
    rows = codec.encode(batch)
    back = codec.decode(rows)
    back.validate(full=True)
    assert back.equals(batch)
    copy = pa.RecordBatch.from_pylist(batch.to_pylist(), schema=batch.schema)
    assert codec.encode(copy).to_bytes() == rows.to_bytes()
    if batch.num_rows:
        order = data.draw(st.lists(st.integers(0, batch.num_rows - 1), min_size=1, max_size=12))
        assert codec.decode(rows.take(np.array(order))).to_pylist() == batch.take(pa.array(order)).to_pylist()
        lie = Scattered(rows.words, rows.starts[order], rows.lengths[order])
        assert codec.decode(lie).equals(codec.decode(lie.gather()))


@settings(max_examples=examples(50))
@given(batches(), st.integers(0, 5))
def test_a_slice_is_encoded_like_a_copy(batch: pa.RecordBatch, start: int) -> None:
    piece = batch.slice(start)
    copy = pa.RecordBatch.from_pylist(piece.to_pylist(), schema=piece.schema)
    assert RowCodec(batch.schema).encode(piece).to_bytes() == RowCodec(batch.schema).encode(copy).to_bytes()


def test_more_than_64_columns() -> None:
    schema = pa.schema([(f"c{n}", pa.int32() if n % 2 else pa.string()) for n in range(200)])
    row = {f"c{n}": None if n % 3 == 0 else (n if n % 2 else str(n)) for n in range(200)}
    batch = pa.RecordBatch.from_pylist([row, dict.fromkeys(row), row], schema=schema)
    codec = RowCodec(schema)
    assert codec.null_words == 4
    assert codec.decode(codec.encode(batch)).equals(batch)


def test_special_floats_keep_their_bits() -> None:
    batch = pa.RecordBatch.from_pydict({"f": pa.array([float("nan"), -0.0, float("-inf"), 5e-324])})
    codec = RowCodec(batch.schema)
    back = codec.decode(codec.encode(batch))
    assert np.asarray(back.column(0)).tobytes() == np.asarray(batch.column(0)).tobytes()


def test_dictionary_columns_are_decoded_first() -> None:
    schema = pa.schema([("s", pa.string())])
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "a"]).dictionary_encode()], ["s"])
    codec = RowCodec(schema)
    assert codec.decode(codec.encode(batch)).column(0).to_pylist() == ["a", "b", "a"]


def test_null_and_empty_are_told_apart_at_every_level() -> None:
    point = pa.struct([("x", pa.int32()), ("tags", pa.list_(pa.string()))])
    kind = pa.map_(pa.string(), pa.list_(point))
    values = [
        None,
        [],
        [("k", None)],
        [("k", [])],
        [("k", [None])],
        [("k", [{"x": None, "tags": None}])],
        [("k", [{"x": 1, "tags": []}, {"x": None, "tags": [None, ""]}]), ("", [])],
    ]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, kind), pa.array([{}] * 7, pa.struct([]))], ["m", "e"]
    )
    codec = RowCodec(batch.schema)
    rows = codec.encode(batch)
    assert len(set(rows.to_bytes())) == len(values)
    assert codec.decode(rows).to_pylist() == batch.to_pylist()


def test_what_lies_under_a_null_makes_no_difference() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2]), pa.array(["a", "b"])], ["x", "y"], mask=pa.array([True, False])
    )
    listed = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([7, 8, 9]), mask=hidden.is_null()
    )
    batch = pa.RecordBatch.from_arrays([hidden, listed], ["s", "l"])
    clean = pa.RecordBatch.from_pylist(batch.to_pylist(), schema=batch.schema)
    codec = RowCodec(batch.schema)
    assert codec.encode(batch).to_bytes() == codec.encode(clean).to_bytes()


def test_a_type_no_table_has_is_refused_by_name() -> None:
    for kind in (pa.duration("s"), pa.list_(pa.duration("s"))):
        with pytest.raises(UnsupportedTypeError, match=r"column 'gap.* has type dur.*leave it out of select"):
            RowCodec(pa.schema([("gap", kind)]))


def test_large_batches_are_encoded_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"s": [str(n) * (n % 7) for n in range(100)]})
    codec = RowCodec(batch.schema)
    whole = codec.encode(batch).to_bytes()
    monkeypatch.setattr("lockgate.lookup.codec.row_codec._MOST_BYTES", 100)
    assert codec.encode(batch).to_bytes() == whole


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 5)), max_size=20))
def test_ragged_concatenates_ranges(ranges: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in ranges], np.int64)
    lengths = np.array([length for _, length in ranges], np.int64)
    assert ragged(starts, lengths).tolist() == [n for s, c in ranges for n in range(s, s + c)]
