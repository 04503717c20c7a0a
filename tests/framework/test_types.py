"""Types survive every form they are written in; values survive JSON."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework import types as t

PLAIN = [t.BOOLEAN, t.TINYINT, t.SMALLINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.STRING, t.BYTES, t.DATE]


def decimals() -> st.SearchStrategy[t.DataType]:
    return st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: t.decimal(p, s)))


def atomic_types() -> st.SearchStrategy[t.DataType]:
    return st.one_of(
        st.sampled_from(PLAIN),
        decimals(),
        st.integers(0, 9).map(t.timestamp),
        st.integers(0, 9).map(t.timestamp_ltz),
        st.integers(0, 9).map(t.time),
        st.integers(1, 255).map(lambda n: t.sized(t.Kind.CHAR, n)),
        st.integers(1, 70000).map(lambda n: t.sized(t.Kind.VARCHAR, n)),
        st.integers(1, 70000).map(lambda n: t.sized(t.Kind.BINARY, n)),
    )


def nullable(types: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    return st.tuples(types, st.booleans()).map(lambda pair: pair[0].with_nullable(pair[1]))


def nested_types(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    fields = st.lists(
        st.tuples(st.integers(0, 99), st.text(min_size=1, max_size=5), inner), min_size=1, max_size=3
    )
    return nullable(
        st.one_of(
            inner.map(t.array),
            st.tuples(inner, inner).map(lambda pair: t.map_of(pair[0].with_nullable(False), pair[1])),
            fields.map(lambda members: t.row(tuple(t.DataField(*member) for member in members))),
        )
    )


any_type = st.recursive(nullable(atomic_types()), nested_types, max_leaves=5)


@given(any_type)
def test_schema_json_round_trip(data_type: t.DataType) -> None:
    assert t.parse_type(json.loads(json.dumps(t.type_to_json(data_type)))) == data_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INT NOT NULL", t.INT.with_nullable(False)),
        ("integer", t.INT),
        ("DOUBLE PRECISION", t.DOUBLE),
        ("DECIMAL", t.decimal(10, 0)),
        ("NUMERIC(5, 2)", t.decimal(5, 2)),
        ("VARCHAR(2147483647)", t.STRING),
        ("TIMESTAMP", t.timestamp(6)),
        ("TIMESTAMP(3) WITHOUT TIME ZONE NOT NULL", t.timestamp(3).with_nullable(False)),
        ("TIMESTAMP_LTZ(9)", t.timestamp_ltz(9)),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", t.timestamp_ltz(6)),
        ({"type": "ARRAY NOT NULL", "element": "INT"}, t.array(t.INT).with_nullable(False)),
    ],
)
def test_spellings_of_other_writers(text: Any, expected: t.DataType) -> None:
    assert t.parse_type(text) == expected


@pytest.mark.parametrize(
    "text", ["VARIANT", "INT(3)", "DECIMAL(39)", "DECIMAL(5, 6)", "ARRAY<INT>", "", "INT NULLABLE", {}]
)
def test_unsupported_types_are_named(text: Any) -> None:
    with pytest.raises(UnsupportedTypeError):
        t.parse_type(text)


@given(nullable(atomic_types()))
def test_arrow_round_trip(data_type: t.DataType) -> None:
    back = t.from_arrow(t.to_arrow(data_type), nullable=data_type.nullable)
    assert t.to_arrow(back) == t.to_arrow(data_type)
    assert back.nullable == data_type.nullable


def test_arrow_schema_keeps_nested_names_and_nullability() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
            pa.field(
                "where", pa.struct([pa.field("zip", pa.string()), pa.field("no", pa.int32(), nullable=False)])
            ),
        ]
    )
    fields = t.fields_from_arrow(schema)
    assert [field.id for field in fields] == [0, 1, 2]
    assert [member.id for member in fields[2].type.fields] == [3, 4]
    assert t.fields_from_arrow(t.arrow_schema(fields)) == fields


def test_arrow_types_that_cannot_be_stored_name_the_column() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'n'.*uint32"):
        t.fields_from_arrow(pa.schema([("n", pa.uint32())]))


def test_spark_json_round_trip() -> None:
    fields = (
        t.DataField(0, "id", t.BIGINT.with_nullable(False)),
        t.DataField(1, "name", t.sized(t.Kind.VARCHAR, 20), "full name"),
        t.DataField(2, "at", t.timestamp_ltz(6)),
        t.DataField(3, "clock", t.timestamp(6)),
        t.DataField(4, "price", t.decimal(5, 2)),
        t.DataField(5, "tags", t.map_of(t.STRING.with_nullable(False), t.array(t.INT.with_nullable(False)))),
        t.DataField(6, "at_home", t.row((t.DataField(7, "zip", t.STRING),))),
    )
    struct = json.loads(json.dumps(t.to_spark_json(fields)))
    assert [member["type"] for member in struct["fields"][:5]] == [
        "long",
        "varchar(20)",
        "timestamp",
        "timestamp_ntz",
        "decimal(5,2)",
    ]
    assert t.from_spark_json(struct) == fields


def test_spark_declares_lengths_in_metadata() -> None:
    member = {
        "name": "c",
        "type": "string",
        "nullable": True,
        "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"},
    }
    assert t.from_spark_json({"fields": [member]})[0].type == t.sized(t.Kind.CHAR, 3)


@pytest.mark.parametrize("name", ["interval", "void", "variant"])
def test_spark_types_that_cannot_be_stored_name_the_column(name: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="column 'c'"):
        t.from_spark_json({"fields": [{"name": "c", "type": name}]})


def test_time_has_no_spark_counterpart() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column 'c'.*TIME"):
        t.to_spark_json([t.DataField(0, "c", t.time(3))])


VALUES = [
    (t.BOOLEAN, st.booleans()),
    (t.BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (t.DOUBLE, st.floats(allow_nan=False)),
    (t.STRING, st.text()),
    (t.BYTES, st.binary()),
    (t.DATE, st.dates()),
    (t.time(3), st.integers(0, 86_399_999).map(t.time_of)),
    (t.timestamp(6), st.datetimes()),
    (t.timestamp_ltz(6), st.datetimes(timezones=st.just(datetime.UTC))),
    (t.decimal(38, 10), st.decimals(places=10, min_value=-(10**27), max_value=10**27)),
]


@given(st.sampled_from(VALUES).flatmap(lambda pair: st.tuples(st.just(pair[0]), pair[1])))
def test_values_round_trip_through_json(pair: tuple[t.DataType, Any]) -> None:
    data_type, value = pair
    assert t.value_from_json(data_type, json.loads(json.dumps(t.value_to_json(data_type, value)))) == value


def test_spelling_of_values_in_json() -> None:
    assert t.value_to_json(t.decimal(5, 2), Decimal("12.30")) == "12.30"
    assert t.value_to_json(t.DOUBLE, math.nan) == "NaN"
    assert t.value_to_json(t.FLOAT, -math.inf) == "-Infinity"
    assert t.value_to_json(t.DATE, datetime.date(1969, 12, 31)) == -1
    assert t.value_to_json(t.timestamp(6), datetime.datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000
    assert t.value_to_json(t.BYTES, b"\x00\xff") == "AP8="
    assert t.value_to_json(t.INT, None) is None
    assert math.isnan(t.value_from_json(t.DOUBLE, "NaN"))


@pytest.mark.parametrize(
    ("data_type", "json_value"),
    [(t.INT, "x"), (t.DATE, []), (t.BYTES, "*"), (t.STRING, 1), (t.decimal(3, 1), "1,5")],
)
def test_json_that_does_not_fit_the_type_is_refused(data_type: t.DataType, json_value: Any) -> None:
    with pytest.raises(InputError, match="is not a value of type"):
        t.value_from_json(data_type, json_value)
