"""Rows survive their encoding, and the encoding is Paimon's to the byte."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import CorruptFileError, InputError, UnsupportedTypeError
from lockgate.framework import types as t
from lockgate.framework.store.codec.binary_row import decode_row, encode_row, row_codec

UTC = datetime.UTC

CELLS: list[tuple[t.DataType, st.SearchStrategy[Any]]] = [
    (t.BOOLEAN, st.booleans()),
    (t.TINYINT, st.integers(-128, 127)),
    (t.SMALLINT, st.integers(-(2**15), 2**15 - 1)),
    (t.INT, st.integers(-(2**31), 2**31 - 1)),
    (t.BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (t.FLOAT, st.floats(width=32, allow_nan=False)),
    (t.DOUBLE, st.floats(allow_nan=False)),
    (t.STRING, st.text(max_size=20)),
    (t.sized(t.Kind.CHAR, 3), st.text(max_size=3)),
    (t.BYTES, st.binary(max_size=20)),
    (t.DATE, st.dates()),
    (t.time(3), st.integers(0, 86_399_999).map(t.time_of)),
    (t.timestamp(6), st.datetimes()),
    (t.timestamp(9), st.datetimes()),
    (
        t.timestamp(3),
        st.datetimes().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)),
    ),
    (t.timestamp_ltz(6), st.datetimes(timezones=st.just(UTC))),
    (t.decimal(9, 2), st.decimals(places=2, min_value=-(10**6), max_value=10**6)),
    (t.decimal(18, 0), st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal)),
    (t.decimal(38, 10), st.decimals(places=10, min_value=-(10**27), max_value=10**27)),
]

cell = st.sampled_from(CELLS).flatmap(lambda pair: st.tuples(st.just(pair[0]), st.none() | pair[1]))


@given(st.lists(cell, max_size=70))
def test_round_trip(cells: list[tuple[t.DataType, Any]]) -> None:
    types, values = tuple(kind for kind, _ in cells), tuple(value for _, value in cells)
    row = row_codec(types).encode(values)
    assert len(row) % 8 == 0
    assert t.partition_key(row_codec(types).decode(row)) == t.partition_key(values)
    data = encode_row(values, types)
    assert struct.unpack(">i", data[:4]) == (len(types),)
    assert t.partition_key(decode_row(data, types)) == t.partition_key(values)


def test_layout_of_fixed_and_inline_values() -> None:
    row = row_codec((t.INT, t.STRING, t.BOOLEAN)).encode((1, "abc", None))
    # The header byte, then the null bit of the third field.
    nulls, first, second, third = "0004000000000000", "0100000000000000", "6162630000000083", "00" * 8
    assert row.hex() == nulls + first + second + third


def test_layout_of_long_values() -> None:
    row = row_codec((t.STRING, t.decimal(20, 0), t.timestamp(6))).encode(
        ("12345678", Decimal(-1), datetime.datetime(1970, 1, 1, 0, 0, 0, 1001))
    )
    words = [row[at : at + 8] for at in range(0, len(row), 8)]
    assert struct.unpack("<II", words[1]) == (8, 32)
    assert struct.unpack("<II", words[2]) == (1, 40)
    assert struct.unpack("<II", words[3]) == (1000, 56)
    assert words[4] == b"12345678"
    assert words[5:7] == [b"\xff" + bytes(7), bytes(8)]
    assert struct.unpack("<q", words[7]) == (1,)


def test_a_null_of_a_wide_type_keeps_its_place() -> None:
    row = row_codec((t.decimal(20, 0), t.timestamp(6))).encode((None, None))
    assert len(row) == 8 + 2 * 8 + 16 + 8
    assert struct.unpack("<II", row[8:16]) == (0, 24)


def test_nan_survives() -> None:
    (value,) = decode_row(encode_row((math.nan,), (t.DOUBLE,)), (t.DOUBLE,))
    assert math.isnan(value)


def test_a_row_without_fields_stands_for_no_statistics() -> None:
    assert decode_row(encode_row((), ()), (t.INT, t.INT)) == ()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (t.TINYINT, 128),
        (t.INT, "x"),
        (t.decimal(3, 1), Decimal("1.25")),
        (t.decimal(3, 1), Decimal("100")),
        (t.DATE, 5),
        (t.STRING, 5),
    ],
)
def test_values_that_do_not_fit(kind: t.DataType, value: Any) -> None:
    with pytest.raises(InputError):
        row_codec((kind,)).encode((value,))


def test_nested_values_are_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="ARRAY"):
        row_codec((t.array(t.INT),)).encode(([1],))
    assert decode_row(encode_row((None,), (t.array(t.INT),)), (t.array(t.INT),)) == (None,)


@pytest.mark.parametrize("cut", [0, 3, 8, 20, 35])
def test_a_row_that_is_cut_off(cut: int) -> None:
    data = encode_row(("a long text", 5), (t.STRING, t.INT))
    with pytest.raises(CorruptFileError):
        decode_row(data[:cut], (t.STRING, t.INT))


def test_a_row_with_another_number_of_fields() -> None:
    with pytest.raises(CorruptFileError, match="2 fields where 1"):
        decode_row(encode_row((1, 2), (t.INT, t.INT)), (t.INT,))
