"""What Spark's UI and its optimizer are told of a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Named = Callable[[str], str]


@pytest.fixture
def parts(spark: SparkSession, table: Named) -> str:
    """Two partitions of two files each, by `id` 1, 2 and 11, 12."""
    name = table("parts")
    spark.sql(f"CREATE TABLE {name} (id INT, day INT) PARTITIONED BY (day)")
    for number in (1, 2, 11, 12):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, {number // 10})")
    return name


def leaf(frame: DataFrame) -> Any:
    plan: Any = frame._jdf.queryExecution().executedPlan()
    return plan.collectLeaves().head()


def test_metrics(spark: SparkSession, parts: str) -> None:
    frame = spark.table(parts).where("day = 1 AND id > 11")
    assert [tuple(row) for row in frame.collect()] == [(12, 1)]
    metrics = leaf(frame).metrics()
    shown = {
        name: metrics.apply(name).value()
        for name in ("files", "bytes", "skipped_by_partitions", "skipped_by_statistics", "skipped_by_limit")
    }
    assert shown.pop("bytes") > 100
    assert shown == {
        "files": 1, "skipped_by_partitions": 2, "skipped_by_statistics": 1, "skipped_by_limit": 0
    }  # fmt: skip
    assert metrics.apply("planning_ms").value() >= 0
    assert metrics.apply("skipped_by_keys").name().get() == "files skipped by keys"


def test_statistics_count_what_is_left_after_skipping(spark: SparkSession, parts: str) -> None:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan: Any = spark.table(parts).where("day = 1")._jdf.queryExecution().optimizedPlan()
        assert plan.collectLeaves().head().stats().rowCount().get() == 2
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
