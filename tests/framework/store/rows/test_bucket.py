"""Buckets are Paimon's, and whole columns give what single rows give."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo import expected

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework import types as t
from lockgate.framework.store.rows.bucket import assign_buckets, bucket_of, hash_rows, murmur_hash

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures" / "buckets.json").read_text())
CELLS: list[tuple[t.DataType, st.SearchStrategy[Any]]] = [
    (t.BOOLEAN, st.booleans()),
    (t.TINYINT, st.integers(-128, 127)),
    (t.SMALLINT, st.integers(-(2**15), 2**15 - 1)),
    (t.INT, st.integers(-(2**31), 2**31 - 1)),
    (t.BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (t.FLOAT, st.floats(width=32)),
    (t.DOUBLE, st.floats()),
    (t.STRING, st.text(max_size=40)),
    (t.BYTES, st.binary(max_size=40)),
    (t.DATE, st.dates()),
    (t.time(3), st.integers(0, 86_399_999).map(t.time_of)),
    (t.timestamp(6), st.datetimes()),
    (
        t.timestamp(3),
        st.datetimes().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)),
    ),
    (t.timestamp_ltz(6), st.datetimes(timezones=st.just(datetime.UTC))),
    (t.decimal(9, 2), st.decimals(places=2, min_value=-(10**6), max_value=10**6)),
    (t.decimal(38, 10), st.decimals(places=10, min_value=-(10**27), max_value=10**27)),
]


@given(st.data())
def test_columns_give_what_rows_give(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4))
    types = tuple(kind for kind, _ in chosen)
    rows = data.draw(st.lists(st.tuples(*(st.none() | cells for _, cells in chosen)), max_size=12))
    names = [f"c{index}" for index in range(len(types))]
    table = pa.table(
        {
            name: pa.array([row[index] for row in rows], t.to_arrow(types[index]))
            for index, name in enumerate(names)
        }
    )
    buckets = data.draw(st.integers(1, 1000))
    found = assign_buckets(table, names, types, buckets)
    assert found.dtype == np.int32
    assert found.tolist() == [bucket_of(row, types, buckets) for row in rows]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"][:40])
def test_hashes_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    types = tuple(t.parse_type(kind) for kind in case["types"])
    rows = [
        [t.value_from_json(kind, value) for kind, value in zip(types, row, strict=True)]
        for row in case["rows"]
    ]
    columns = [
        pa.array(list(values), t.to_arrow(kind))
        for kind, values in zip(types, zip(*rows, strict=True), strict=True)
    ]
    assert hash_rows(columns, types).tolist() == case["hashes"]
    for row, value in zip(rows, case["hashes"], strict=True):
        assert bucket_of(row, types, 7) == abs(math.fmod(value, 7))


def test_vectors_have_the_hashes_of_paimon() -> None:
    (case,) = (case for case in VECTORS if "hash index" in case["name"])
    indexes = [
        index for snapshot in expected()["dynamic"]["snapshots"].values() for index in snapshot["indexes"]
    ]
    assert {value for index in indexes for value in index.get("hashes", ())} == {*case["hashes"]}


def test_murmur_of_known_words() -> None:
    # murmur3_32 with seed 42 of four zero bytes, as Spark's hash(0).
    assert murmur_hash(np.zeros((1, 1), dtype="<u4")).tolist() == [933211791]
    # Spark's hash(1L).
    assert murmur_hash(np.array([[1, 0]], dtype="<u4")).tolist() == [-1712319331]


def test_slices_and_dictionaries() -> None:
    table = pa.table({"s": pa.array(["x" * 9, "a", None, "b" * 20]).dictionary_encode()})
    whole = assign_buckets(table, ["s"], (t.STRING,), 100)
    assert assign_buckets(table.slice(1, 2), ["s"], (t.STRING,), 100).tolist() == whole[1:3].tolist()


def test_bad_requests() -> None:
    with pytest.raises(InputError, match="buckets must be positive"):
        bucket_of((1,), (t.INT,), 0)
    with pytest.raises(UnsupportedTypeError, match="ARRAY"):
        assign_buckets(pa.table({"a": [[1]]}), ["a"], (t.array(t.BIGINT),), 2)
