"""Queries for single rows, which the driver or tasks read."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SIZE = "source.split.driver-max-size"
OFF = f"WITH (`{SIZE}` = '0')"


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def on_driver(frame: DataFrame) -> bool:
    return "DriverScan" in plan(frame)


def collected(spark: SparkSession, frame: DataFrame) -> tuple[list[str], int]:
    """The rows of a query, and how many jobs it takes to collect them."""
    group = uuid.uuid4().hex
    spark.sparkContext.setJobGroup(group, "a test")
    try:
        found = rows(frame)
        return found, len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes the property away


def rows(frame: DataFrame) -> list[str]:
    """The rows as text, in which NaN equals itself and the zeros differ."""
    return sorted(str(tuple(row)) for row in frame.collect())


def ask(spark: SparkSession, name: str, condition: str, columns: str = "*") -> list[str]:
    """Answer a query that the driver reads, after seeing that tasks answer it alike."""
    frame = spark.sql(f"SELECT {columns} FROM {name} WHERE {condition}")
    assert on_driver(frame), condition
    found, jobs = collected(spark, frame)
    assert jobs == 0, condition
    tasks = spark.sql(f"SELECT {columns} FROM {name} {OFF} WHERE {condition}")
    assert not on_driver(tasks)
    assert found == rows(tasks), condition
    assert frame.schema == tasks.schema
    return found


def left_to_tasks(spark: SparkSession, name: str, condition: str, columns: str = "*") -> list[str]:
    """Answer a query that the driver does not read."""
    frame = spark.sql(f"SELECT {columns} FROM {name} WHERE {condition}")
    assert not on_driver(frame), condition
    found = rows(frame)
    assert found == rows(spark.sql(f"SELECT {columns} FROM {name} {OFF} WHERE {condition}"))
    return found
