"""Values of every Arrow type in columns of every type of table: stored as given, or refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import InputError
from lockgate.framework import types
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.types import DataField, DataType, convert_losslessly, to_arrow

_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NUMBERS = [
    0,
    1,
    -1,
    7,
    2**7,
    2**15,
    2**24 + 1,
    2**31 - 1,
    -(2**31),
    2**53 + 1,
    2**60,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
]
_FLOATS = [
    0.0,
    -0.0,
    1.0,
    0.1,
    1.5,
    2.0**24 + 1,
    2.0**53,
    2.0**63,
    -(2.0**63),
    1e300,
    5e-324,
    math.inf,
    math.nan,
]
_TICKS = [
    0,
    1,
    -1,
    86_400,
    86_400_000,
    86_400_000_000,
    86_400 * 10**9,
    123_456_789,
    2**31 - 1,
    2**62,
    -(2**62),
]
_TEXTS = ["", "007", "1.7", "2024-01-01", "true", "é"]


def _decimals(kind: pa.DataType) -> list[Any]:
    largest = 10**kind.precision - 1
    whole = [0, 1, -1, 10**kind.scale, largest, -largest, 15]
    return pa.array([f"{each}e-{kind.scale}" for each in whole if abs(each) <= largest]).to_pylist()


def _plain_types() -> Iterator[tuple[pa.DataType, list[Any]]]:
    """Yield Arrow's types with values at their limits."""
    for width in (8, 16, 32, 64):
        for sign, low, high in (("u", 0, 2**width), ("", -(2 ** (width - 1)), 2 ** (width - 1))):
            kind = getattr(pa, f"{sign}int{width}")()
            yield kind, [each for each in _NUMBERS if low <= each < high]
    yield pa.float16(), [0.0, -0.0, 1.0, 1.5, 65504.0, math.inf, math.nan]
    yield pa.float32(), [each for each in _FLOATS if abs(each) < 1e38 or not math.isfinite(each)]
    yield pa.float64(), _FLOATS
    for kind in (
        pa.decimal128(5, 2),
        pa.decimal128(38, 0),
        pa.decimal128(38, 38),
        pa.decimal256(60, 10),
        pa.decimal32(5, 0),
    ):
        yield kind, _decimals(kind)
    yield pa.bool_(), [True, False]
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        yield kind, _TEXTS
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield kind, [b"", b"\xff", b"007", "é".encode()]
    yield pa.binary(2), [b"ab", b"\xff\xff"]
    yield pa.date32(), [0, 1, -1, 19_000, 2**31 - 1, -(2**31)]
    yield pa.date64(), [0, 86_400_000, -86_400_000]
    for unit in ("s", "ms"):
        yield pa.time32(unit), [0, 1, 86_399]
    for unit in ("us", "ns"):
        yield pa.time64(unit), [0, 1, 1_000, 1_000_000, 86_399_999_999]
    for unit in _SECONDS:
        for zone in (None, "UTC", "Europe/Berlin"):
            yield pa.timestamp(unit, zone), _TICKS
    yield pa.duration("us"), [0, 1]
    yield pa.null(), [None]


PLAIN = list(_plain_types())
TABLE_TYPES = [
    types.BOOLEAN,
    types.TINYINT,
    types.SMALLINT,
    types.INT,
    types.BIGINT,
    types.FLOAT,
    types.DOUBLE,
    types.decimal(5, 2),
    types.decimal(38, 0),
    types.decimal(38, 38),
    types.STRING,
    types.BYTES,
    types.DATE,
    types.time(3),
    *(types.timestamp(precision) for precision in (3, 6, 9)),
    *(types.timestamp_ltz(precision) for precision in (3, 6, 9)),
]


def _arrays(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def _wrapped(array: pa.Array, wrapping: str) -> pa.Array:
    """Return values inside a nested type, each in a row of its own."""
    if wrapping == "list":
        return pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)
    if wrapping == "map":
        keys = pa.array([f"k{each}" for each in range(len(array))])
        return pa.MapArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), keys, array)
    return pa.StructArray.from_arrays([array], names=["x"]) if wrapping == "struct" else array


def _wrapping_type(data_type: DataType, wrapping: str) -> DataType:
    if wrapping == "list":
        return types.array(data_type)
    if wrapping == "map":
        return types.map_of(types.STRING.with_nullable(False), data_type)
    more = DataField(2, "y", types.INT)
    return types.row((DataField(1, "x", data_type), more)) if wrapping == "struct" else data_type


def _inside(array: pa.Array, wrapping: str) -> pa.Array:
    if wrapping == "list":
        return array.flatten()
    if wrapping == "map":
        return array.items
    return array.field(0) if wrapping == "struct" else array


def meanings(array: pa.Array) -> list[Any]:
    """Return what values mean, as things of Python that are equal only if the values are."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        unit = 10**3 if pa.types.is_date64(kind) else 1 if pa.types.is_date32(kind) else _SECONDS[kind.unit]
        scale = Fraction(86_400 if pa.types.is_date32(kind) else 1, unit)
        numbers = array.cast(
            pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
        )
        of_day = pa.types.is_time(kind)
        aware = pa.types.is_timestamp(kind) and kind.tz is not None
        return [None if each is None else (of_day, aware, each * scale) for each in numbers.to_pylist()]
    return [_meaning(each) for each in array.to_pylist()]


def _meaning(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, float):
        return Fraction(value) if math.isfinite(value) else repr(value)
    if isinstance(value, str):
        return value.encode()
    return (
        value
        if isinstance(value, bytes)
        else Fraction(value)
        if hasattr(value, "as_integer_ratio")
        else value
    )


@pytest.mark.parametrize("wrapping", ["", "list", "map", "struct"])
def test_every_pair_of_types_keeps_each_value_or_refuses_it(wrapping: str) -> None:
    converted: set[tuple[str, str]] = set()
    for kind, values in PLAIN:
        for data_type in TABLE_TYPES:
            for value in values:
                given_values = _wrapped(_arrays(kind, [value, None]), wrapping)
                try:
                    found = convert_losslessly(
                        pa.chunked_array([given_values]),
                        _wrapping_type(data_type, wrapping),
                        "v",
                        source="f.parquet",
                    )
                except InputError as error:
                    text = str(error)
                    named = (
                        "'v'",
                        "f.parquet",
                        str(given_values.type),
                        str(_wrapping_type(data_type, wrapping)),
                    )
                    assert all(part in text for part in named)
                    continue
                stored = found.chunk(0)
                assert stored.type == to_arrow(_wrapping_type(data_type, wrapping))
                stored.validate(full=True)
                assert meanings(_inside(stored, wrapping)) == meanings(_inside(given_values, wrapping))
                converted.add((str(kind), str(data_type)))
    # What widens is converted, so that refusing everything would not pass.
    for data_type in TABLE_TYPES:
        assert (str(to_arrow(data_type)), str(data_type)) in converted
    assert {
        ("int32", "BIGINT"),
        ("float", "DOUBLE"),
        ("int8", "FLOAT"),
        ("int64", "DECIMAL(38, 0)"),
    } <= converted
    assert {("double", "INT"), ("date32[day]", "TIMESTAMP(9)"), ("timestamp[s]", "TIMESTAMP(9)")} <= converted
    assert not {pair for pair in converted if pair[0] == "string" and pair[1] not in ("STRING", "BYTES")}


@pytest.mark.parametrize(
    ("values", "to", "reason"),
    [
        (pa.array(["007"]), types.INT, "values of string are not values of INT"),
        (pa.array([0.1]), types.FLOAT, "not all of its values fit"),
        (pa.array([{"a": 1, "b": 2}]), types.row((DataField(0, "a", types.BIGINT),)), "no member 'b'"),
        (
            pa.array([{"a": None}], pa.struct([("a", pa.int64())])),
            types.row((DataField(0, "a", types.BIGINT.with_nullable(False)),)),
            "'a' is NOT NULL",
        ),
        (pa.array([[1, None]]), types.array(types.BIGINT.with_nullable(False)), "element is NOT NULL"),
        (pa.array([1], pa.timestamp("us", "UTC")), types.timestamp(6), "a point in time"),
    ],
)
def test_reasons_do_not_contain_values(values: pa.Array, to: DataType, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as refused:
        convert_losslessly(pa.chunked_array([values]), to, "v")
    assert "007" not in str(refused.value)


def test_members_are_matched_by_name_and_nulls_stay(tmp_path: Path) -> None:
    to = types.row(
        (DataField(0, "b", types.BIGINT), DataField(1, "a", types.INT), DataField(2, "c", types.DATE))
    )
    values = pa.array(
        [{"a": 1, "b": 2}, None, {"a": None, "b": 4}], pa.struct([("a", pa.int8()), ("b", pa.int16())])
    )
    found = convert_losslessly(pa.chunked_array([values.slice(1), values]), to, "v").to_pylist()
    assert found[2:] == [{"b": 2, "a": 1, "c": None}, None, {"b": 4, "a": None, "c": None}]
    assert found[:2] == found[3:]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_append_stores_the_original_values(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kind, values = data.draw(st.sampled_from(PLAIN))
    data_type = data.draw(st.sampled_from(TABLE_TYPES))
    rows = pa.table({"v": _arrays(kind, [data.draw(st.sampled_from(values)), None])})
    catalog = Catalog(tmp_path_factory.mktemp("lossless"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema((DataField(0, "v", data_type),)))
    refused = None
    try:
        table.append(rows)
    except InputError as error:
        refused = str(error)
    if refused is not None:
        assert "'v'" in refused
        assert table.latest_snapshot() is None
        assert not list(Path(table.location).rglob("data-*"))
        return
    stored = table.read(strict=True)["v"].combine_chunks()
    wanted = rows["v"].combine_chunks()
    assert sorted(map(repr, meanings(stored))) == sorted(map(repr, meanings(wanted)))
