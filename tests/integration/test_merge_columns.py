"""The connector merges columns of a batch at once as Python merges them row by row."""

from __future__ import annotations

import datetime
import itertools
import json
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockgate.framework.store.merge.merge import merge_tables
from lockgate.framework.store.merge.merge_plan import (
    AGGREGATION,
    PARTIAL_UPDATE,
    ColumnMerge,
    MergePlan,
    SequenceGroup,
)
from lockgate.framework.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    DataType,
    decimal,
    timestamp,
    to_arrow,
    to_spark_type,
    value_from_json,
    value_to_json,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Sums of a key's few values fit.
VALUES: dict[DataType, list[Any]] = {
    TINYINT: [-3, 0, 3],
    SMALLINT: [-800, 0, 7],
    INT: [-(2**20), -1, 0, 1, 2**20],
    BIGINT: [-(2**40), -1, 0, 1, 2**40],
    DOUBLE: [-1.5, 0.0, 2.25, 1e10],
    FLOAT: [-1.5, 0.0, 2.25],
    decimal(9, 2): [Decimal("-1.10"), Decimal("0.00"), Decimal("99.99")],
    decimal(30, 1): [Decimal("-1000000000000000000000.5"), Decimal("0.0"), Decimal("0.1")],
    STRING: ["", "a", "eight by", "eight bytes", "é"],
    BOOLEAN: [False, True],
    DATE: [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
    timestamp(6): [
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(2024, 2, 29, 12),
    ],
}
ORDERED = ["last_value", "last_non_null_value", "first_value", "first_non_null_value", "max", "min"]
FUNCTIONS = {
    **dict.fromkeys(VALUES, ORDERED),
    **{kind: [*ORDERED, "sum", "product"] for kind in (DOUBLE, FLOAT)},
    **{kind: [*ORDERED, "sum"] for kind in (TINYINT, SMALLINT, INT, BIGINT, decimal(9, 2), decimal(30, 1))},
    BOOLEAN: ["last_value", "last_non_null_value", "bool_and", "bool_or"],
    STRING: [*ORDERED, "listagg"],
}
ADDS, ALL = [0, 2], [0, 0, 0, 2, 1, 3]


GROUPS = "sequence groups"
ENGINES = {AGGREGATION: AGGREGATION, PARTIAL_UPDATE: PARTIAL_UPDATE, GROUPS: PARTIAL_UPDATE}


def _case(random: Random, case: str, kinds: list[int]) -> dict[str, Any]:
    """Rows of a few keys in some sorted inputs, and columns of types and functions by chance."""
    chosen = random.sample(sorted(VALUES, key=repr), k=5)
    merges = [_column(random, case, number, kind) for number, kind in enumerate(chosen)]
    groups: tuple[SequenceGroup, ...] = ()
    if case == GROUPS:
        # Two columns order the first group, of c0 and c1, and one the second, of c2; c3 and c4 are in none.
        groups = (SequenceGroup(("c5", "c6")), SequenceGroup(("c7",)))
        chosen += [INT, STRING, DATE]
        merges += [ColumnMerge(f"c{number}", "sequence", number // 7) for number in (5, 6, 7)]
    plan = MergePlan(
        ("_KEY_k",), (ColumnMerge("k"), *merges), engine=ENGINES[case], groups=groups, ignore_delete=True
    )
    sequence = itertools.count()
    inputs = []
    for _ in range(random.randint(1, 4)):
        keys = random.choices(range(30), k=random.randint(0, 40))
        if random.random() < 0.7:
            keys = list(set(keys))
        inputs.append(
            [
                [
                    key,
                    next(sequence),
                    random.choice(kinds),
                    key,
                    *(value_to_json(kind, random.choice([None, *VALUES[kind]])) for kind in chosen),
                ]
                for key in sorted(keys)
            ]
        )
    random.shuffle(inputs)
    columns = [("_KEY_k", INT), ("_SEQUENCE_NUMBER", BIGINT), ("_VALUE_KIND", TINYINT), ("k", INT)]
    columns += [(f"c{number}", kind) for number, kind in enumerate(chosen)]
    return {
        "plan": plan.to_json(),
        "columns": [{"name": name, "type": to_spark_type(kind)} for name, kind in columns],
        "inputs": inputs,
        "types": [kind for _, kind in columns],
    }


def _column(random: Random, case: str, number: int, kind: DataType) -> ColumnMerge:
    name, function = f"c{number}", random.choice(FUNCTIONS[kind])
    if case == GROUPS and number < 3:
        function = random.choice(["set", function])
        return ColumnMerge(name, function, number // 2, ignore_retract=function != "set")
    if case != AGGREGATION:
        function = "last_non_null_value"
    return ColumnMerge(name, function, ignore_retract=True)


def _in_python(case: dict[str, Any]) -> list[list[Any]]:
    types: list[DataType] = case["types"]
    names = [column["name"] for column in case["columns"]]
    schema = pa.schema([(name, to_arrow(kind)) for name, kind in zip(names, types, strict=True)])
    tables = [
        pa.Table.from_arrays(
            [
                pa.array([value_from_json(kind, row[i]) for row in rows], schema.types[i])
                for i, kind in enumerate(types)
            ],
            schema=schema,
        )
        for rows in case["inputs"]
    ]
    merged = merge_tables(MergePlan.from_json(case["plan"]), tables, ordered=True)
    return [
        [value_to_json(kind, value) for kind, value in zip(types, row.values(), strict=True)]
        for row in merged.to_pylist()
    ]


@pytest.mark.parametrize("kinds", [ADDS, ALL], ids=["adds", "all kinds"])
@pytest.mark.parametrize("of", ENGINES)
def test_columns_merge_as_rows_do(spark: SparkSession, of: str, kinds: list[int]) -> None:
    random = Random(f"columns {of} {kinds}")
    merge = _merge(spark)
    for _ in range(25):
        case = _case(random, of, kinds)
        expected = _in_python(case)
        fixture = json.dumps({name: part for name, part in case.items() if name != "types"})
        page_rows, batch_rows = random.choice([1, 2, 5, 64]), random.choice([1, 3, 64])
        found = json.loads(merge(fixture, page_rows, batch_rows))
        assert found == expected, (case["plan"]["columns"], case["inputs"], page_rows, batch_rows)


@pytest.mark.parametrize(("kind", "most", "bits"), [("integer", 2**31 - 1, 32), ("long", 2**63 - 1, 64)])
def test_a_sum_that_is_too_large_is_refused_though_the_next_row_would_bring_it_back(
    spark: SparkSession, kind: str, most: int, bits: int
) -> None:
    plan = MergePlan(("_KEY_k",), (ColumnMerge("n", "sum"),), engine=AGGREGATION)
    columns = {"_KEY_k": "integer", "_SEQUENCE_NUMBER": "long", "_VALUE_KIND": "byte", "n": kind}
    case = {
        "plan": plan.to_json(),
        "columns": [{"name": name, "type": of} for name, of in columns.items()],
        "inputs": [[[1, number, 0, value]] for number, value in enumerate((most, 1, -1))],
    }
    with pytest.raises(Exception, match=f"column 'n': a merged value does not fit into {bits} bits"):
        _merge(spark)(json.dumps(case), 8, 8)


def _merge(spark: SparkSession) -> Any:
    """Return the connector's own merge of a case in JSON."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return jvm.io.lockgate.spark.merge.Conformance.merge
