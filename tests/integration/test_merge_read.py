"""The connector's merge and bucket code on the cases that Python's own passes."""

from __future__ import annotations

import datetime
import itertools
import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.store.merge.merge_plan import ColumnMerge, MergePlan
from lockgate.framework.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    DataType,
    decimal,
    timestamp,
    to_spark_type,
    value_to_json,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "merge").glob("*.json"))


def _conformance(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance


# Rows of a page of each input, and rows of a batch of the answer: a key's rows may be in several pages.
SIZES = [(1, 1), (2, 1), (1, 4096), (2, 3), (3, 2), (4096, 1), (4096, 4096)]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_rows_of_one_key_merge_as_in_python(spark: SparkSession, fixture: Path) -> None:
    case = json.loads(fixture.read_text())
    for page_rows, batch_rows in SIZES:
        merged = json.loads(_conformance(spark).merge(fixture.read_text(), page_rows, batch_rows))
        assert merged == case["expected"], (page_rows, batch_rows)


def test_a_plan_that_lacks_a_key_is_refused(spark: SparkSession) -> None:
    case = json.loads(next(path for path in FIXTURES if path.stem == "engine_groups").read_text())
    for part in (case["plan"], case["plan"]["columns"][0], case["plan"]["groups"][0]):
        for key in tuple(part):
            value = part.pop(key)
            with pytest.raises(Exception, match=f"{key} is missing"):
                _conformance(spark).merge(json.dumps(case), 1, 1)
            part[key] = value


KEY_VALUES: dict[str, tuple[DataType, list[Any]]] = {
    "boolean": (BOOLEAN, [False, True]),
    "tinyint": (TINYINT, [-128, -1, 0, 1, 127]),
    "smallint": (SMALLINT, [-(2**15), -1, 0, 2**15 - 1]),
    "int": (INT, [-(2**31), -2, -1, 0, 1, 2, 3, 2**31 - 1]),
    "bigint": (BIGINT, [-(2**63), -1, 0, 1, 2**31, 2**63 - 1]),
    "double": (DOUBLE, [float("-inf"), -1.5, 0.0, 1.5, float("inf"), float("nan")]),
    "date": (DATE, [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)]),
    "short decimal": (decimal(9, 2), [Decimal("-1.10"), Decimal("-1.01"), Decimal("0.00"), Decimal("9.99")]),
    "long decimal": (decimal(30, 1), [Decimal("-1" + "0" * 28 + ".5"), Decimal("0.0"), Decimal("0.1")]),
    "timestamp": (
        timestamp(6),
        [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29, 12)],
    ),
    "text": (STRING, ["", "a", "a\0", "a\0\0", "eight by", "eight bytes", "eight bytez", "é", "\U0001f600"]),
    "bytes": (BYTES, [b"", b"\0", b"eight by", b"eight bytes", b"\x7f", b"\x80", b"\xff"]),
}


def _random_case(random: Random, names: list[str]) -> tuple[dict[str, Any], list[int]]:
    """A merge fixture of rows with keys of `names`, sorted as files are, and the numbers of the rows left."""
    types = [KEY_VALUES[name][0] for name in names]
    keys = list(itertools.product(*(KEY_VALUES[name][1] for name in names)))
    if len(names) == 1 and types[0] == INT:
        # Long runs of rows of one input between those of another.
        keys = sorted([*keys, *((key,) for key in range(100, 140))])
    number = itertools.count()
    inputs = []
    for _ in range(random.randint(1, 4)):
        chosen = sorted(random.choices(range(len(keys)), k=random.randint(0, 40)))
        if random.random() < 0.5:
            chosen = sorted(set(chosen))
        inputs.append(
            [(at, random.randint(0, 30), random.choice([0, 0, 0, 1, 2, 3]), next(number)) for at in chosen]
        )
    columns = [(f"_KEY_{name}", to_spark_type(kind)) for name, kind in zip(names, types, strict=True)]
    columns += [("_SEQUENCE_NUMBER", "long"), ("_VALUE_KIND", "byte"), ("row", "integer")]
    rows = [
        [
            [*(value_to_json(kind, part) for kind, part in zip(types, keys[at], strict=True)), *rest]
            for at, *rest in one
        ]
        for one in inputs
    ]
    plan = MergePlan(tuple(f"_KEY_{name}" for name in names), (ColumnMerge("row"),))
    case = {
        "plan": plan.to_json(),
        "columns": [{"name": name, "type": kind} for name, kind in columns],
        "inputs": rows,
    }
    return case, _merged(inputs)


def _merged(inputs: list[list[tuple[int, int, int, int]]]) -> list[int]:
    """The rows that are left, by their numbers: the plainest merge there is."""
    newest: dict[int, tuple[int, int, int]] = {}
    for at, sequence, kind, number in itertools.chain(*inputs):
        if at not in newest or newest[at][0] <= sequence:
            newest[at] = (sequence, kind, number)
    return [number for _, (_, kind, number) in sorted(newest.items()) if kind not in (1, 3)]


@pytest.mark.parametrize(
    "names", [[name] for name in KEY_VALUES] + [["int", "text"], ["text", "date"]], ids="+".join
)
def test_keys_of_each_type_merge_in_their_order(spark: SparkSession, names: list[str]) -> None:
    random = Random(f"merge {names}")
    for _ in range(8):
        case, expected = _random_case(random, names)
        page_rows, batch_rows = random.choice([1, 2, 5, 64]), random.choice([1, 3, 64])
        merged = json.loads(_conformance(spark).merge(json.dumps(case), page_rows, batch_rows))
        assert [row[-1] for row in merged] == expected


def test_a_batch_is_answered_though_its_rows_are_strewn_over_many_pages(spark: SparkSession) -> None:
    # Of each page one row is left, so a batch would need all of them at once.
    deleted = [[key, 2, 3, -1] for key in range(2000) if key % 20]
    case = {
        "plan": MergePlan(("_KEY_id",), (ColumnMerge("row"),)).to_json(),
        "columns": [
            {"name": name, "type": kind}
            for name, kind in [
                ("_KEY_id", "integer"),
                ("_SEQUENCE_NUMBER", "long"),
                ("_VALUE_KIND", "byte"),
                ("row", "integer"),
            ]
        ],
        "inputs": [[[key, 1, 0, key] for key in range(2000)], deleted],
    }
    merged = json.loads(_conformance(spark).merge(json.dumps(case), 20, 4096))
    assert [row[-1] for row in merged] == list(range(0, 2000, 20))


def test_an_unknown_merge_engine_is_refused(spark: SparkSession) -> None:
    case = json.loads(FIXTURES[0].read_text())
    case["plan"]["engine"] = "newest-wins"
    with pytest.raises(Exception, match="merge engine 'newest-wins' is not supported"):
        _conformance(spark).merge(json.dumps(case), 1, 1)
