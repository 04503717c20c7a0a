"""How long Spark takes to plan queries of a table of 100,000 files."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from lockgate import Lake
from store.plans import FILES, ROWS_PER_FILE, report


def in_spark(lake: Lake, repetitions: int) -> None:
    """Time optimizing and planning, with the splits of its tasks, of a full scan and of a point."""
    full, point = "SELECT * FROM lake.b.wide", f"WHERE id = {FILES * ROWS_PER_FILE // 3}"
    if plan(lake, full) < 2:
        raise AssertionError("a scan of 100,000 files has one task")
    report("spark_plan_100k_warm_s", repetitions, lambda: plan(lake, full))
    if plan(lake, f"{full} {point}") != 1:
        raise AssertionError("a scan of one file has several tasks")
    report("spark_plan_100k_point_s", repetitions, lambda: plan(lake, f"{full} {point}"))


def plan(lake: Lake, query: str) -> int:
    """Plan a query up to the tasks it would start; return their number."""
    frame: DataFrame = lake.spark.sql(query)
    execution = frame._jdf.queryExecution()
    jvm: Any = lake.spark._jvm
    mode = jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    execution.explainString(mode)
    return int(execution.toRdd().getNumPartitions())
