"""All merge engines on random histories, against the plainest merge there is; and functions one by one."""

from __future__ import annotations

import sys
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from merge_histories import COLUMNS, PLANS, expected, history

from lockgate.errors import InputError, OptionError, UnsupportedError
from lockgate.framework.store.merge.merge import merge_plan, merge_tables
from lockgate.framework.store.merge.merge_functions import FUNCTIONS, ORDERED, MergeFunction
from lockgate.framework.store.merge.merge_plan import ColumnMerge, MergePlan
from lockgate.framework.store.merge.merge_values import Value
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import INT, STRING, DataField, from_spark_type, to_arrow

SCHEMA = pa.schema([(name, to_arrow(from_spark_type(kind))) for name, kind in COLUMNS.items()])


@pytest.mark.parametrize("name", PLANS)
@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32))
def test_engines_agree_with_a_plain_merge(name: str, seed: int) -> None:
    plan, kinds = PLANS[name]
    inputs = history(Random(seed), kinds)
    merged = merge_tables(plan, [pa.Table.from_pylist(rows, SCHEMA) for rows in inputs], ordered=True)
    found = [list(row.values())[3:] for row in merged.to_pylist()]
    assert found == expected(plan, inputs)
    assert MergePlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("name", PLANS)
def test_some_columns_merge_as_all_do(name: str) -> None:
    plan, kinds = PLANS[name]
    for seed in range(20):
        tables = [pa.Table.from_pylist(rows, SCHEMA) for rows in history(Random(seed), kinds)]
        whole = merge_tables(plan, tables, ordered=True)
        for wanted in ("a", "d"):
            names = list(dict.fromkeys((*plan.system_columns, *plan.companions([wanted]), wanted)))
            part = merge_tables(plan, [table.select(names) for table in tables], ordered=True)
            assert part[wanted].to_pylist() == whole[wanted].to_pylist()


def fold(column: ColumnMerge, kind: pa.DataType, rows: list[tuple[int, Any]]) -> Any:
    """Merge rows of one key, each a kind and a value."""
    table = pa.table(
        {
            "_KEY_k": pa.array([1] * len(rows)),
            "_SEQUENCE_NUMBER": pa.array(range(len(rows))),
            "_VALUE_KIND": pa.array([number for number, _ in rows], pa.int8()),
            "v": pa.array([value for _, value in rows], kind),
        }
    )
    plan = MergePlan(("_KEY_k",), (column,), engine="aggregation")
    return merge_tables(plan, [table])["v"].to_pylist()[0]


MAP = pa.map_(pa.string(), pa.int32())
NESTED = pa.list_(pa.struct([("id", pa.int32()), ("at", pa.int32()), ("v", pa.string())]))
TIMED = pa.map_(pa.string(), pa.struct([("v", pa.int32()), ("ts", pa.string())]))


def nested(*rows: tuple[Any, Any, Any]) -> list[dict[str, Any]]:
    return [{"id": one, "at": at, "v": value} for one, at, value in rows]


CASES = [
    ("sum", {}, pa.int8(), [(0, 100), (0, None), (3, -20)], 120),
    ("sum", {}, pa.float32(), [(0, 0.1), (0, 0.2)], float(pa.scalar(0.3, pa.float32()).as_py())),
    ("sum", {}, pa.decimal128(9, 2), [(3, Decimal("1.50")), (0, Decimal("9.25"))], Decimal("7.75")),
    ("product", {}, pa.int64(), [(0, 7), (0, -3), (3, 2)], -10),
    ("product", {}, pa.decimal128(9, 2), [(0, Decimal("1.05")), (0, Decimal("0.50"))], Decimal("0.53")),
    ("product", {}, pa.float64(), [(0, 1.0), (3, 0.0)], float("inf")),
    ("max", {}, pa.string(), [(0, "é"), (0, "z")], "é"),
    ("min", {}, pa.float64(), [(0, float("nan")), (0, 2.0)], 2.0),
    ("listagg", {"delimiter": ";"}, pa.string(), [(0, "a"), (0, " "), (0, "b")], "a;b"),
    ("listagg", {"distinct": True}, pa.string(), [(0, "a,b"), (0, "b,,c,c")], "a,b,c"),
    ("collect", {}, pa.list_(pa.int32()), [(0, [1, 1, 2]), (0, [3]), (3, [1, 3])], [1, 2]),
    ("collect", {"distinct": True}, pa.list_(pa.int32()), [(0, [2, 1, 2]), (0, [1, None])], [2, 1, None]),
    ("merge_map", {}, MAP, [(0, [("a", 1), ("b", 2)]), (0, [("b", 3)]), (3, [("a", 9)])], [("b", 3)]),
    (
        "merge_map_with_keytime",
        {"time_field": "ts"},
        TIMED,
        [
            (0, [("a", {"v": 1, "ts": "2"}), ("b", {"v": 1, "ts": "1"})]),
            (0, [("a", {"v": 2, "ts": "1"}), ("b", None)]),
        ],
        [("a", {"v": 1, "ts": "2"})],
    ),
    (
        "nested_update",
        {"nested_key": ("id",), "nested_sequence": ("at",), "limit": 2},
        NESTED,
        [(0, nested((1, 5, "x"), (2, 1, "y"))), (0, nested((1, 4, "old"), (2, 2, "z"), (3, 1, "much")))],
        nested((1, 5, "x"), (2, 2, "z")),
    ),
    (
        "nested_update",
        {"nested_key": ("id",)},
        NESTED,
        [(0, nested((1, 1, "x"), (2, 1, "y"))), (3, nested((1, 9, None)))],
        nested((2, 1, "y")),
    ),
    (
        "nested_update",
        {},
        NESTED,
        [(0, nested((1, 1, "x"))), (0, nested((1, 1, "y"))), (3, nested((1, 1, "x")))],
        nested((1, 1, "y")),
    ),
    (
        "nested_partial_update",
        {"nested_key": ("id",), "null_keys": "ignore"},
        NESTED,
        [(0, nested((1, 1, None), (None, 1, "no"))), (0, nested((1, None, "y")))],
        nested((1, 1, "y")),
    ),
]


@pytest.mark.parametrize(("function", "options", "kind", "rows", "wanted"), CASES)
def test_each_function_of_values_and_retractions(
    function: str, options: dict[str, Any], kind: pa.DataType, rows: list[tuple[int, Any]], wanted: Any
) -> None:
    found = fold(ColumnMerge("v", function, **options), kind, rows)
    assert found == pytest.approx(wanted) if isinstance(wanted, float) else found == wanted


@pytest.mark.parametrize(
    ("function", "kind", "rows", "message"),
    [
        ("sum", pa.int8(), [(0, 100), (0, 100)], "8 bits"),
        ("sum", pa.int64(), [(0, 2**63 - 1), (0, 1)], "64 bits"),
        ("sum", pa.int64(), [(3, -(2**63)), (0, 1)], "64 bits"),
        ("product", pa.int64(), [(0, 2**62), (0, 2)], "64 bits"),
        ("product", pa.int32(), [(0, 7), (3, 0)], "cannot be divided"),
        ("sum", pa.decimal128(3, 1), [(0, Decimal("99.9")), (0, Decimal("0.1"))], "3 digits"),
        ("max", pa.int32(), [(0, 7), (3, 7)], "'max' cannot retract"),
    ],
)
def test_what_cannot_be_merged(
    function: str, kind: pa.DataType, rows: list[tuple[int, Any]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fold(ColumnMerge("v", function), kind, rows)


def schema(**options: str) -> TableSchema:
    fields = (
        DataField(0, "k", INT),
        DataField(1, "a", INT),
        DataField(2, "b", STRING),
        DataField(3, "g", INT),
    )
    return TableSchema(0, fields, 3, (), ("k",), options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields.a.aggregate-function": "sun"}, "did you mean 'sum'"),
        ({"fields.b.aggregate-function": "sum"}, "numbers only"),
        (
            {"merge-engine": "partial-update", "fields.a.aggregate-function": "sum"},
            "in a sequence group only",
        ),
        ({"merge-engine": "partial-update", "fields.g.sequence-group": "k"}, "primary key"),
        ({"merge-engine": "partial-update", "fields.g.sequence-group": "c"}, "no column 'c'"),
        (
            {
                "merge-engine": "partial-update",
                "fields.g.sequence-group": "a",
                "partial-update.remove-record-on-delete": "true",
            },
            "contradict",
        ),
        ({"fields.a.aggregate-function": "sum", "fields.a.ignore-retract": "perhaps"}, "ignore-retract"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        merge_plan(schema(**{"merge-engine": "aggregation", **options}))


@pytest.mark.parametrize(
    ("function", "empty", "what"),
    [
        ("rbm32", b"\x3a\x30\0\0\0\0\0\0", "a Roaring bitmap"),
        ("rbm64", b"\0", "a Roaring bitmap of 64 bits"),
    ],
)
def test_a_value_that_is_no_bitmap_is_an_error(function: str, empty: bytes, what: str) -> None:
    column = pa.chunked_array([pa.array([empty, b"hostile", b""], pa.binary())])
    bitmaps = FUNCTIONS[function].state(ColumnMerge("u", function), column, 1)
    bitmaps.replace(np.array([0]), np.array([0]))
    for row in (1, 2):
        with pytest.raises(InputError, match=rf"column 'u': a value of . bytes is not {what}, which"):
            bitmaps.add(np.array([0]), np.array([row]))
    with pytest.raises(OptionError, match="takes VARBINARY and BYTES only"):
        merge_plan(schema(**{"merge-engine": "aggregation", "fields.a.aggregate-function": function}))


@pytest.mark.parametrize("function", ["hll_sketch", "theta_sketch"])
def test_sketches_without_their_library(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    sketches = FUNCTIONS[function].state(
        ColumnMerge("u", function), pa.chunked_array([pa.array([b"a", b"b"])]), 1
    )
    sketches.replace(np.array([0]), np.array([0]))
    with pytest.raises(UnsupportedError, match=r"pip install 'lockgate\[sketches\]'"):
        sketches.add(np.array([0]), np.array([1]))


@pytest.mark.parametrize(
    ("function", "what"), [("hll_sketch", "an HLL sketch"), ("theta_sketch", "a theta sketch")]
)
def test_a_value_that_is_no_sketch_is_an_error(function: str, what: str) -> None:
    column = pa.chunked_array([pa.array([b"", b"hostile", bytes(40)], pa.binary())])
    sketches = FUNCTIONS[function].state(ColumnMerge("u", function), column, 1)
    sketches.replace(np.array([0]), np.array([0]))
    for row in (1, 2):
        with pytest.raises(InputError, match=rf"column 'u': a value of \d+ bytes is not {what}"):
            sketches.add(np.array([0]), np.array([row]))
    with pytest.raises(OptionError, match="takes VARBINARY and BYTES only"):
        merge_plan(schema(**{"merge-engine": "aggregation", "fields.a.aggregate-function": function}))


class Shortest(Value):
    """The shortest text."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Return the shorter of two texts."""
        return min(filter(None, (older, newer)), key=len, default=None)


def test_a_function_is_its_class_and_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/how-to-change.md says of Python's side."""
    aggregating = {"merge-engine": "aggregation", "fields.a.aggregate-function": "shortest"}
    with pytest.raises(OptionError, match="there is no merge function 'shortest'"):
        merge_plan(schema(**aggregating))
    monkeypatch.setitem(FUNCTIONS, "shortest", MergeFunction("shortest", ORDERED, False, Shortest))
    plan = merge_plan(schema(**aggregating))
    assert plan is not None
    assert {column.name: column.function for column in plan.columns}["a"] == "shortest"
    column = ColumnMerge("v", "shortest")
    assert fold(column, pa.string(), [(0, "long"), (0, None), (0, "s"), (0, "mid")]) == "s"
    with pytest.raises(InputError, match="'shortest' cannot retract"):
        fold(column, pa.string(), [(0, "long"), (3, "s")])
