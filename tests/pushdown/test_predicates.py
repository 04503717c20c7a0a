"""Building predicates, their text and their JSON."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, InputError, UnsupportedTypeError
from lockgate.pushdown import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Comparison,
    Op,
    all_of,
    any_of,
    col,
    columns_of,
    conjuncts,
    describe,
    describe_json,
    filter_table,
    from_json,
    reason_unsupported,
    to_arrow_expression,
    to_json,
    unsupported_reason,
)


def test_operators_build_predicates() -> None:
    predicate = (col("a") < 1) & (col("b", "c") == "x") & ~col("d").is_null()
    assert isinstance(predicate, And)
    assert len(predicate.children) == 3
    assert columns_of(predicate) == {("a",), ("b", "c"), ("d",)}
    assert conjuncts(predicate) == predicate.children
    assert conjuncts(AlwaysTrue()) == ()
    assert Comparison(Op.LT, ("a",), (pa.scalar(1),)) == (col("a") < 1)
    assert hash(col("a") < 1) == hash(col("a") < 1)


def test_joins_simplify() -> None:
    one = col("a") < 1
    assert all_of() == AlwaysTrue()
    assert any_of() == AlwaysFalse()
    assert all_of(one, AlwaysTrue()) is one
    assert all_of(one, AlwaysFalse()) == AlwaysFalse()
    assert any_of(one, AlwaysTrue()) == AlwaysTrue()


def test_a_predicate_in_an_if_is_refused() -> None:
    with pytest.raises(InputError, match="no truth value"):
        bool(col("a") < 1)
    with pytest.raises(InputError, match="cannot be a literal"):
        _ = col("a") == object()
    with pytest.raises(InputError, match="literals"):
        Comparison(Op.EQ, ("a",))
    with pytest.raises(InputError, match="path of names"):
        Comparison(Op.IS_NULL, ())


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (col("price") < 111.321, "price < 111.321"),
        ((col("a") == 1) & ((col("b") == 2) | (col("c") == 3)), "a = 1 AND (b = 2 OR c = 3)"),
        (~(col("a").isin([1, None])), "NOT (a IN (1, NULL))"),
        (col("x", "my col").starts_with("it's"), "startswith(x.`my col`, 'it''s')"),
        (col("d") >= dt.date(2024, 2, 29), "d >= DATE '2024-02-29'"),
        (col("d") >= dt.datetime(2024, 2, 29, 1, 2, 3, 40), "d >= TIMESTAMP_NTZ '2024-02-29 01:02:03.00004'"),
        (
            col("d") >= dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
            "d >= TIMESTAMP '2024-02-29 00:00:00Z'",
        ),
        (col("f") == float("nan"), "f = DOUBLE 'nan'"),
        (col("y") == b"\x01\xff", "y = X'01FF'"),
        (col("b") == True, "b = TRUE"),  # noqa: E712 - builds a predicate
        (col("c") <= Decimal("1.50"), "c <= 1.50"),
        (AlwaysFalse(), "FALSE"),
        (And(()), "TRUE"),
    ],
)
def test_a_predicate_is_described_in_sql(predicate: Comparison, text: str) -> None:
    assert describe(predicate) == text


def test_json_of_the_connector() -> None:
    node = {
        "op": "AND",
        "args": [
            {"op": "=", "args": [{"col": ["a", "b"]}, {"value": "12.30", "type": "decimal(5,2)"}]},
            {"op": ">", "args": [{"value": 5, "type": "integer"}, {"col": ["c"]}]},
            {
                "op": "IN",
                "args": [{"col": ["d"]}, {"value": 0, "type": "date"}, {"value": None, "type": "date"}],
            },
        ],
    }
    predicate = from_json(node)
    assert predicate is not None
    assert describe(predicate) == "a.b = 12.30 AND c < 5 AND d IN (DATE '1970-01-01', NULL)"


@pytest.mark.parametrize("arguments", ["literal first", "column first"])
def test_json_of_a_boolean_literal(arguments: str) -> None:
    sides: list[object] = [{"col": ["b"]}, {"op": "ALWAYS_FALSE", "args": []}]
    sides = sides[::-1] if arguments == "literal first" else sides
    predicate = from_json({"op": "<=>", "args": sides})
    assert predicate is not None
    assert describe(predicate) == "b <=> FALSE"


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ({"op": "CAST", "args": [{"col": ["a"]}]}, "CAST is not a comparison"),
        ({"op": "=", "args": [{"op": "CAST", "args": []}, {"value": 1, "type": "integer"}]}, "an expression"),
        ({"op": "=", "args": [{"col": ["a"]}, {"col": ["b"]}]}, "not a literal"),
        ({"op": "=", "args": [{"col": ["a"]}, {"value": 1, "type": "interval"}]}, "of type interval"),
        ({"op": "=", "args": [{"col": ["a"]}, {"value": "x", "type": "integer"}]}, "'x' is not a integer"),
        ({"op": "IS_NULL", "args": []}, "without arguments"),
        ({"op": "=", "args": [{"col": ["a"]}]}, "1 arguments"),
        ({"op": "AND", "args": []}, "AND is not a comparison"),
        ("x", "not an operator"),
        (None, "not an operator"),
        (
            {"op": "=", "args": [{"col": ["a"]}, {"value": "a", "type": "string collate UNICODE_CI"}]},
            "collate",
        ),
    ],
)
def test_json_without_a_predicate_has_a_reason(node: object, why: str) -> None:
    assert from_json(node) is None
    assert why in str(reason_unsupported(node))


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"op": "=", "args": [{"col": ["a"]}, {"value": "x", "type": "string"}]}, "a = 'x'"),
        (
            {
                "op": "=",
                "args": [
                    {"op": "UPPER", "args": [{"col": ["ssn"]}]},
                    {"value": "X", "type": "string"},
                ],
            },
            "UPPER(ssn) = 'X'",
        ),
        (
            {
                "op": "OR",
                "args": [
                    {"op": "IS_NULL", "args": [{"op": "?", "text": "f(a)"}]},
                    {"op": ">", "args": [{"col": ["a", "b c"]}, {"value": 1, "type": "interval"}]},
                ],
            },
            "(f(a) IS NULL OR a.`b c` > 1)",
        ),
        ({"op": "CAST", "type": "double", "args": [{"col": ["a"]}]}, "CAST(a AS DOUBLE)"),
        ({"value": None}, "NULL"),
        (7, "?"),
    ],
)
def test_any_json_has_a_text(node: object, text: str) -> None:
    assert describe_json(node) == text


def test_json_refuses_literals_that_spark_lacks() -> None:
    with pytest.raises(UnsupportedTypeError, match="finer"):
        to_json(Comparison(Op.EQ, ("a",), (pa.scalar(1, pa.timestamp("ns")),)))
    with pytest.raises(UnsupportedTypeError, match="no literals"):
        to_json(Comparison(Op.EQ, ("a",), (pa.scalar([1]),)))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int32(), [111, 112, None], [111]),
        (pa.float64(), [111.32, 111.321, 111.322, float("nan")], [111.32]),
        (pa.decimal128(6, 3), [Decimal("111.320"), Decimal("111.321")], [Decimal("111.320")]),
    ],
)
@pytest.mark.parametrize("literal", [111.321, Decimal("111.321"), pa.scalar(Decimal("111.32100"))])
def test_a_fraction_against_any_number(
    kind: pa.DataType, values: list[object], expected: list[object], literal: object
) -> None:
    if pa.types.is_floating(kind) and literal != 111.321:
        # The double 111.321 is a little below the decimal, so it does pass `< 111.321` exactly.
        expected = [*expected, 111.321] if Decimal("111.321") > 111.321 else expected
    if pa.types.is_decimal(kind) and literal == 111.321 and isinstance(literal, float):
        expected = [value for value in values if value < 111.321]  # type: ignore[operator]  # floats, by the parameters
    table = pa.table({"f": pa.array(values, kind)})
    assert filter_table(table, col("f") < literal)["f"].to_pylist() == expected


def test_float_columns_compare_by_their_stored_value() -> None:
    table = pa.table({"f": pa.array([111.321], pa.float32())})  # stored as 111.3209991455...
    assert filter_table(table, col("f") < 111.321).num_rows == 1
    assert filter_table(table, col("f") == 111.321).num_rows == 0
    assert filter_table(table, col("f") == pa.scalar(111.321, pa.float32())).num_rows == 1


def test_nested_fields_and_null_parents() -> None:
    table = pa.table({"a": pa.array([{"b": 1}, None, {"b": None}], pa.struct([("b", pa.int32())]))})
    assert filter_table(table, col("a", "b") == 1).num_rows == 1
    assert filter_table(table, col("a", "b").is_null()).num_rows == 2


def test_errors_name_what_does_not_fit_the_schema() -> None:
    schema = pa.schema(
        [("planes", pa.int32()), ("at", pa.timestamp("us")), ("s", pa.struct([("x", pa.int8())]))]
    )
    with pytest.raises(ColumnNotFoundError, match="did you mean 'planes'"):
        to_arrow_expression(col("plane") == 1, schema)
    with pytest.raises(ColumnNotFoundError, match="no column 'y' in s; known: x"):
        to_arrow_expression(col("s", "y") == 1, schema)
    with pytest.raises(UnsupportedTypeError, match="cannot be compared with a string"):
        to_arrow_expression(col("planes") == "1", schema)
    with pytest.raises(UnsupportedTypeError, match="cannot be compared"):
        to_arrow_expression(col("at") < dt.datetime(2024, 1, 1, tzinfo=dt.UTC), schema)
    with pytest.raises(UnsupportedTypeError, match="needs a string column"):
        to_arrow_expression(col("planes").starts_with(1), schema)
    assert unsupported_reason(col("planes") == 1, schema) is None
    assert "no column" in str(unsupported_reason(col("x") == 1, schema))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("long", [3, None, 5], pa.array([3, None, 5])),
        ("decimal(5,2)", ["1.50", "2"], pa.array([Decimal("1.50"), Decimal(2)], pa.decimal128(5, 2))),
        ("double", ["NaN", 1], pa.array([float("nan"), 1.0])),
        ("binary", ["YQ==", None], pa.array([b"a", None])),
        ("string", ["a", "1"], pa.array(["a", "1"])),
    ],
)
def test_lists_are_parsed_like_single_literals(kind: str, values: list[Any], expected: pa.Array) -> None:
    items = [{"value": value, "type": kind} for value in values]
    predicate = from_json({"op": "IN", "args": [{"col": ["c"]}, *items]})
    assert isinstance(predicate, Comparison)
    assert [repr(each) for each in predicate.literals] == [repr(each) for each in expected]
    alone = [from_json({"op": "IN", "args": [{"col": ["c"]}, item]}) for item in items]
    assert [repr(each.literals[0]) for each in alone if isinstance(each, Comparison)] == [
        repr(each) for each in predicate.literals
    ]


def test_a_list_of_mixed_types_is_parsed() -> None:
    items = [{"value": value, "type": "long"} for value in (1, "2", 3)]
    assert reason_unsupported({"op": "IN", "args": [{"col": ["c"]}, *items]}) == "'2' is not a long"
    mixed = [{"value": 1, "type": "long"}, {"value": "a", "type": "string"}]
    predicate = from_json({"op": "IN", "args": [{"col": ["c"]}, *mixed]})
    assert isinstance(predicate, Comparison)
    assert [each.type for each in predicate.literals] == [pa.int64(), pa.string()]
