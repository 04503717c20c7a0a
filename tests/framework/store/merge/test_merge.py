"""The merge passes the fixtures shared with the connector, and agrees with a plain merge on random rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.store.merge.group_codes import group_codes, groups
from lockgate.framework.store.merge.merge import merge_plan, merge_tables
from lockgate.framework.store.merge.merge_plan import ColumnMerge, MergePlan
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import (
    INT,
    STRING,
    DataField,
    from_spark_type,
    to_arrow,
    value_from_json,
    value_to_json,
)

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "merge").glob("*.json"))
PLAN = MergePlan(key=("_KEY_a", "_KEY_b"), columns=(ColumnMerge("v"),))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_vectors_are_merged_as_they_say(path: Path) -> None:
    fixture = json.loads(path.read_text(encoding="utf-8"))
    types = [from_spark_type(column["type"]) for column in fixture["columns"]]
    schema = pa.schema(
        [(column["name"], to_arrow(kind)) for column, kind in zip(fixture["columns"], types, strict=True)]
    )

    def table(rows: list[list[Any]]) -> pa.Table:
        columns = [
            pa.array([value_from_json(kind, row[i]) for row in rows], schema.types[i])
            for i, kind in enumerate(types)
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    plan = MergePlan.from_json(fixture["plan"])
    keep_deletes = fixture["plan"]["keep_deletes"]
    assert plan.to_json(keep_deletes=keep_deletes) == fixture["plan"]
    inputs = [table(rows) for rows in fixture["inputs"]]
    merged = merge_tables(plan, inputs, ordered=True, keep_deletes=keep_deletes)
    found = [
        [value_to_json(kind, value) for kind, value in zip(types, row.values(), strict=True)]
        for row in merged.to_pylist()
    ]
    assert found == fixture["expected"]


def test_there_are_fixtures() -> None:
    assert len(FIXTURES) >= 13


rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.integers(0, 9), st.sampled_from([0, 1, 2, 3])),
    max_size=12,
)


@settings(max_examples=examples(150))
@given(inputs=st.lists(rows, min_size=1, max_size=4))
def test_merge_agrees_with_a_plain_one(inputs: list[list[tuple[int, str, int, int]]]) -> None:
    newest: dict[tuple[int, str], tuple[int, int, int]] = {}
    tables = []
    for number, part in enumerate(inputs):
        for a, b, sequence, kind in part:
            if (a, b) not in newest or newest[a, b][0] <= sequence:
                newest[a, b] = (sequence, kind, number)
        columns = list(zip(*part, strict=True)) or [(), (), (), ()]
        tables.append(
            pa.table(
                {
                    "_KEY_a": pa.array(columns[0], pa.int64()),
                    "_KEY_b": pa.array(columns[1], pa.string()),
                    "_SEQUENCE_NUMBER": pa.array(columns[2], pa.int64()),
                    "_VALUE_KIND": pa.array(columns[3], pa.int8()),
                    "v": pa.array([number] * len(part), pa.int32()),
                }
            )
        )
    every = sorted((*key, *value) for key, value in newest.items())
    living = [row for row in every if row[3] not in (1, 3)]

    def answer(**options: bool) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in merge_tables(PLAN, tables, **options).to_pylist()]

    assert answer(ordered=True) == living
    assert sorted(answer()) == living  # type: ignore[type-var]  # tuples of values that sort
    assert answer(ordered=True, keep_deletes=True) == every


def test_user_sequences_come_before_the_number() -> None:
    plan = MergePlan(key=("k",), sequence=("version", "_SEQUENCE_NUMBER"), columns=())
    table = pa.table(
        {"k": [1, 1, 1], "version": [2, 3, 3], "_SEQUENCE_NUMBER": [9, 2, 1], "_VALUE_KIND": [0, 0, 0]}
    )
    assert merge_tables(plan, [table])["_SEQUENCE_NUMBER"].to_pylist() == [2]


def schema(**options: str) -> TableSchema:
    fields = (DataField(0, "id", INT), DataField(1, "day", STRING), DataField(2, "v", INT))
    return TableSchema(0, fields, 2, ("day",), ("id", "day"), options)


def test_plan_of_a_table() -> None:
    plan = merge_plan(schema())
    assert plan is not None
    assert plan.key == ("_KEY_id",)
    assert plan.system_columns == ("_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND")
    assert [column.name for column in plan.columns] == ["id", "day", "v"]
    assert merge_plan(TableSchema(0, schema().fields, 2)) is None
    assert merge_plan(TableSchema(0, schema().fields, 2, options={"sequence.field": "v"})) is None


def test_plan_of_a_table_with_sequence_fields() -> None:
    plan = merge_plan(schema(**{"sequence.field": "v, day"}))
    assert plan is not None
    assert (plan.sequence, plan.descending) == (("v", "day", "_SEQUENCE_NUMBER"), ())
    falling = merge_plan(schema(**{"sequence.field": "v", "sequence.field.sort-order": "Descending"}))
    assert falling is not None
    assert (falling.sequence, falling.descending) == (("v", "_SEQUENCE_NUMBER"), ("v",))


ages = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from([float("nan"), -0.0, 0.0, 1.5, float("-inf"), float("inf")]),
    st.none() | st.sampled_from(["", "Z", "a", "é", "\U0001f600"]),
)


@settings(max_examples=examples(150))
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), ages, st.integers(0, 3)), max_size=14),
    falling=st.booleans(),
)
def test_user_sequences_order_as_a_plain_sort(
    rows: list[tuple[int, tuple[int | None, float | None, str | None], int]], falling: bool
) -> None:
    columns = list(zip(*((key, *age, number) for key, age, number in rows), strict=True)) or [()] * 5
    names = ("k", "i", "f", "s", "_SEQUENCE_NUMBER")
    types = (pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.int64())
    arrays = {name: pa.array(column, kind) for name, column, kind in zip(names, columns, types, strict=True)}
    kinds = pa.array([0] * len(rows), pa.int8())
    table = pa.table({**arrays, "_VALUE_KIND": kinds, "at": pa.array(range(len(rows)), pa.int64())})
    plan = MergePlan(
        key=("k",), sequence=names[1:], descending=("i", "f", "s") if falling else (), columns=()
    )

    def order(value: Any) -> Any:
        if isinstance(value, float):
            value = (value != value, 0.0 if value != value else value)
        return value

    def newer(one: int, other: int) -> bool:
        """Say whether row `one` is newer than `other`, which stands before it."""
        for left, right in zip(rows[one][1], rows[other][1], strict=True):
            if left is None or right is None:
                if (left is None) != (right is None):
                    return right is None
            elif order(left) != order(right):
                return bool((order(left) > order(right)) != falling)
        return rows[one][2] >= rows[other][2]

    newest: dict[int, int] = {}
    for at, (key, _, _) in enumerate(rows):
        if key not in newest or newer(at, newest[key]):
            newest[key] = at
    half = table.num_rows // 2
    merged = merge_tables(plan, [table.slice(0, half), table.slice(half)], ordered=True)
    assert merged["at"].to_pylist() == [newest[key] for key in sorted(newest)]


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "newest-wins"},
        {"sequence.field": "gone"},
        {"sequence.snapshot-ordering": "true"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_merge_that_is_not_understood_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedError, match=list(options.values())[-1]):
        merge_plan(schema(**options))


def test_bad_plans() -> None:
    with pytest.raises(UnsupportedError, match="'sum'"):
        MergePlan(key=("k",), columns=(ColumnMerge("v", "sum"),))
    with pytest.raises(InputError, match="needs key"):
        MergePlan(key=(), columns=())
    with pytest.raises(InputError, match="descending columns v"):
        MergePlan(key=("k",), columns=(), descending=("v",))


WRITTEN: dict[str, Any] = json.loads(json.dumps(PLAN.to_json()))
WRITTEN["groups"] = [{"columns": ["v"], "removes": True}]
PARTS = {"a merge plan": WRITTEN, "a column": WRITTEN["columns"][0], "a group": WRITTEN["groups"][0]}


@pytest.mark.parametrize(("what", "key"), [(what, key) for what, part in PARTS.items() for key in part])
def test_a_plan_that_lacks_a_key_is_refused(what: str, key: str) -> None:
    value = PARTS[what].pop(key)
    try:
        with pytest.raises(InputError, match=f"^{what}.* lacks '{key}'$"):
            MergePlan.from_json(WRITTEN)
    finally:
        PARTS[what][key] = value


def test_a_plan_with_a_key_that_nobody_reads_is_refused() -> None:
    with pytest.raises(InputError, match="has no 'keep_delets'; did you mean 'keep_deletes'"):
        MergePlan.from_json({**WRITTEN, "keep_delets": True})


def test_grouping_counts_nulls_as_equal() -> None:
    columns = [pa.chunked_array([[1, None], [None, 1]]), pa.chunked_array([["a", "b", "b", None]])]
    codes, count = group_codes(columns, 4)
    assert codes[1] == codes[2]
    assert len(set(codes.tolist())) == 3
    assert sorted(part.tolist() for part in groups(codes, count)) == [[0], [1, 2], [3]]
    assert [part.tolist() for part in groups(*group_codes([pa.chunked_array([[7, -1, 7]])], 3))] == [
        [1],
        [0, 2],
    ]
    assert group_codes([], 3)[1] == 1
    assert groups(*group_codes([], 0)) == []
