"""The connector's merge and bucket code on the cases that Python's own passes."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.store.bucket import bucket_of
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
    timestamp_ltz,
    to_spark_type,
    value_to_json,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "merge").glob("*.json"))


def _conformance(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm.io.lockgate.spark.orc.Conformance


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_rows_of_one_key_merge_as_in_python(spark: SparkSession, fixture: Path) -> None:
    case = json.loads(fixture.read_text())
    merged = json.loads(_conformance(spark).merge(fixture.read_text()))
    assert merged == case["expected"]


def test_an_unknown_merge_engine_is_refused(spark: SparkSession) -> None:
    case = json.loads(FIXTURES[0].read_text())
    case["plan"]["engine"] = "aggregation"
    with pytest.raises(Exception, match="merge engine 'aggregation' is not supported"):
        _conformance(spark).merge(json.dumps(case))


BUCKET_KEYS: list[tuple[tuple[DataType, ...], list[tuple[Any, ...]]]] = [
    ((INT,), [(0,), (1,), (-1,), (2**31 - 1,), (None,)]),
    ((BIGINT,), [(0,), (-(2**63),), (123456789012,)]),
    ((STRING,), [("",), ("a",), ("sevenby",), ("eight by",), ("größer als acht Bytes",), (None,)]),
    ((TINYINT, SMALLINT, BOOLEAN), [(1, 2, True), (-1, -2, False), (None, None, None)]),
    ((FLOAT, DOUBLE), [(1.5, -2.25), (0.0, 1e300)]),
    ((DATE,), [(datetime.date(2013, 1, 1),), (datetime.date(1969, 12, 31),)]),
    (
        (decimal(9, 2), decimal(30, 3)),
        [(Decimal("12.30"), Decimal("-123456789012345678901.234")), (None, None)],
    ),
    (
        (timestamp(6), timestamp_ltz(6)),
        [
            (
                datetime.datetime(1969, 12, 31, 23, 59, 1, 123456),
                datetime.datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=datetime.UTC),
            ),
            (None, None),
        ],
    ),
    ((STRING, BIGINT, STRING), [("a rather long text", 7, "short"), (None, 7, "another text that is long")]),
]


@pytest.mark.parametrize(("types", "rows"), BUCKET_KEYS, ids=lambda value: str(value)[:40])
def test_buckets_are_those_of_the_store(
    spark: SparkSession, types: tuple[DataType, ...], rows: list[tuple[Any, ...]]
) -> None:
    names = json.dumps([to_spark_type(kind) for kind in types])
    values = [[value_to_json(kind, value) for kind, value in zip(types, row, strict=True)] for row in rows]
    found = json.loads(_conformance(spark).buckets(names, json.dumps(values), 1009))
    assert found == [bucket_of(row, types, 1009) for row in rows]
