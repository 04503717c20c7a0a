"""Filters that tasks skip row groups by: no row is lost, whatever Spark makes of a condition on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = Callable[[str], str]

COMPARISONS = ["<", "<=", ">", ">=", "=", "<>", "<=>"]
OTHERS = ["o IS NULL", "s LIKE 'b%'"]


def ids(spark: SparkSession, query: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(query).collect())


@pytest.fixture
def flags(spark: SparkSession, table: Named) -> str:
    name = table("flags")
    spark.sql(f"CREATE TABLE {name} (id INT, o INT, b BOOLEAN, s STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 5, true, 'a'), (2, 5, false, 'a'), (3, 5, NULL, 'a')")
    return name


def test_a_side_of_or_that_tasks_cannot_use_takes_the_other_with_it(spark: SparkSession, flags: str) -> None:
    conditions = [
        f"{other} OR {'b' if column_first else literal} {comparison} {literal if column_first else 'b'}"
        for other in OTHERS
        for comparison in COMPARISONS
        for literal, column_first in (("true", True), ("false", False))
    ]
    plain = spark.sql(
        "SELECT * FROM VALUES (1, 5, true, 'a'), (2, 5, false, 'a'), (3, 5, NULL, 'a') t(id, o, b, s)"
    )
    truths = plain.selectExpr("id", *(f"({item}) AS c{i}" for i, item in enumerate(conditions))).collect()
    union = " UNION ALL ".join(
        f"SELECT {i} AS condition, id FROM {flags} WHERE {item}" for i, item in enumerate(conditions)
    )
    found = {(row.condition, row.id) for row in spark.sql(union).collect()}
    assert found == {(i, row.id) for i in range(len(conditions)) for row in truths if row[f"c{i}"]}


def test_rows_are_changed_by_such_a_filter(spark: SparkSession, flags: str) -> None:
    spark.sql(f"UPDATE {flags} SET o = 0 WHERE o > 7 OR b <= false")
    assert ids(spark, f"SELECT id FROM {flags} WHERE o = 0") == [2]
    spark.sql(f"DELETE FROM {flags} WHERE o IS NULL OR b > false")
    assert ids(spark, f"SELECT id FROM {flags}") == [2, 3]


@pytest.mark.parametrize("greatest", ["\U0001f600", "\uff5e"])
def test_texts_are_compared_in_the_order_of_their_bytes(
    spark: SparkSession, table: Named, greatest: str
) -> None:
    name = table("texts")
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING)")
    texts = ["z", "\ud7ff", "\ue000", "\uff5e", "\U0001f600"]
    texts = texts[: texts.index(greatest) + 1]
    rows = ", ".join(f"({i}, '{text}')" for i, text in enumerate(texts))
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    for i, text in enumerate(texts):
        assert ids(spark, f"SELECT id FROM {name} WHERE s >= '{text}' AND s <= '{text}'") == [i]
        assert ids(spark, f"SELECT id FROM {name} WHERE s < '{text}'") == list(range(i))
        assert ids(spark, f"SELECT id FROM {name} WHERE s > '{text}'") == list(range(i + 1, len(texts)))


@pytest.fixture
def samoa(spark: SparkSession) -> Iterator[None]:
    """A JVM in a zone that went from 2011-12-29 to 2011-12-31."""
    assert spark.sparkContext._jvm is not None
    zones = spark.sparkContext._jvm.java.util.TimeZone
    usual = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Pacific/Apia"))
    yield
    zones.setDefault(usual)


@pytest.mark.usefixtures("samoa")
def test_a_day_that_the_zone_skipped(spark: SparkSession, table: Named) -> None:
    name = table("days")
    spark.sql(f"CREATE TABLE {name} (id INT, d DATE)")
    spark.sql(f"INSERT INTO {name} VALUES (1, DATE '2011-12-30'), (2, DATE '2011-12-29')")
    assert ids(spark, f"SELECT id FROM {name} WHERE d >= DATE '2011-12-30'") == [1]
    assert ids(spark, f"SELECT id FROM {name} WHERE d > DATE '2011-12-29' OR id > 5") == [1]
