"""Rows survive the codec exactly, whatever their types, nulls, offsets and order."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import UnsupportedTypeError
from lockgate.lookup.rowcodec import RowCodec
from lockgate.lookup.rows import Rows, ragged

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


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=8))
    count = draw(st.integers(0, 20))
    lists = {kind: st.lists(st.none() | TYPES[kind], min_size=count, max_size=count) for kind in kinds}
    columns = [pa.array(draw(lists[kind]), kind) for kind in kinds]
    return pa.RecordBatch.from_arrays(columns, [f"c{n}" for n in range(len(kinds))])


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=50, deadline=None)
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


def test_a_nested_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'tags' has type list.*leave it out of select"):
        RowCodec(pa.schema([("tags", pa.list_(pa.int32()))]))


def test_large_batches_are_encoded_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"s": [str(n) * (n % 7) for n in range(100)]})
    codec = RowCodec(batch.schema)
    whole = codec.encode(batch).to_bytes()
    monkeypatch.setattr("lockgate.lookup.rowcodec._MOST_BYTES", 100)
    assert codec.encode(batch).to_bytes() == whole


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 5)), max_size=20))
def test_ragged_concatenates_ranges(ranges: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in ranges], np.int64)
    lengths = np.array([length for _, length in ranges], np.int64)
    assert ragged(starts, lengths).tolist() == [n for s, c in ranges for n in range(s, s + c)]
