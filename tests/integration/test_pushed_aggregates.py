"""Aggregates from metadata, LIMIT and ORDER BY with LIMIT through Spark: what is answered, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def pushed(frame: DataFrame) -> bool:
    """Tell whether a query is answered from metadata: no file is read, and nothing is left to aggregate."""
    text = plan(frame)
    return "answered from metadata" in text and "HashAggregate" not in text


def values(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture(scope="module")
def days(lake: Lake) -> Any:
    """A table of three partitions of two files; `id` has no nulls, `n` has."""
    lake.catalog.create_namespace("pushed")
    name = "lake.pushed.days"
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, n INT, c DECIMAL(9,2), s STRING, f DOUBLE, day DATE) "
        "PARTITIONED BY (day)"
    )
    for start in range(0, 60, 10):
        lake.spark.sql(
            f"INSERT INTO {name} SELECT id, IF(id % 3 = 0, NULL, CAST(id AS INT)), id / 100, "
            f"concat('s', id), id, DATE '2024-01-01' + CAST({start} DIV 20 AS INT) "
            f"FROM range({start}, {start + 10})"
        )
    rows = lake.spark.table(name)
    lake.spark.createDataFrame(rows.collect(), rows.schema).createOrReplaceTempView("plain_days")
    yield name
    lake.catalog.drop_namespace("pushed", cascade=True)


def test_answers_are_those_of_the_rows(spark: SparkSession, days: str) -> None:
    for select, answered in [
        ("count(*)", True),
        ("count(*), count(n), min(n), max(n), min(day), max(day)", True),
        ("min(c) AS low, max(c) + 1 AS high, count(s)", True),
        ("count(DISTINCT day)", False),
        ("max(s)", False),
        ("max(f)", False),
        ("sum(n), count(*)", False),
        ("max(n + 1)", False),
        ("min(id % 8)", False),
    ]:
        for where in ["", "WHERE day > DATE '2024-01-01'"][: 1 + answered]:
            query = spark.sql(f"SELECT {select} FROM {days} {where}")
            assert pushed(query) is answered, select
            assert query.collect() == spark.sql(f"SELECT {select} FROM plain_days {where}").collect()
    grouped = spark.sql(f"SELECT day, count(*) AS many, max(id) FROM {days} GROUP BY day HAVING many > 1")
    assert "answered from metadata" in plan(grouped)
    expected = spark.sql("SELECT day, count(*) AS many, max(id) FROM plain_days GROUP BY day HAVING many > 1")
    assert values(grouped) == values(expected)
    distinct = spark.sql(f"SELECT DISTINCT day FROM {days}")
    assert "answered from metadata" in plan(distinct)
    assert len(distinct.collect()) == 3
    assert spark.table(days).count() == 60
    assert spark.sql(f"SELECT count(*), max(id) FROM {days} WHERE day IS NULL").collect() == [(0, None)]


def test_filters_on_rows_prevent_it(spark: SparkSession, days: str) -> None:
    query = spark.sql(f"SELECT count(*) FROM {days} WHERE id > 25")
    assert not pushed(query)
    assert query.collect()[0][0] == 34
    query = spark.sql(f"SELECT count(*) FROM {days} WHERE id > 25 OR day = DATE '2024-01-01'")
    assert query.collect()[0][0] == 54


def test_explain_shows_which_aggregates_metadata_answers(spark: SparkSession, days: str, lake: Lake) -> None:
    text = spark.sql(f"EXPLAIN SELECT count(*), max(id) FROM {days}").collect()[0][0]
    assert "aggregates=[COUNT(*), MAX(id)] answered from metadata" in text
    (report,) = lake.explain_pushdown(f"SELECT max(id) FROM {days} WHERE day = DATE '2024-01-01'")
    assert report.aggregates == (("MAX(id)", "answered from metadata, no file is read"),)
    assert (report.total.files, report.kept.files) == (6, 2)
    (report,) = lake.explain_pushdown(f"SELECT max(s), count(*) FROM {days}")
    assert report.aggregates == (("MAX(s)", "remains because column s is STRING: its bounds may be cut"),)
    (report,) = lake.explain_pushdown(f"SELECT sum(id) FROM {days}")
    assert "are all that is answered" in report.aggregates[0][1]


def test_an_aggregate_from_metadata_reads_no_files(spark: SparkSession, days: str) -> None:
    frame = spark.sql(f"SELECT count(*) FROM {days} WHERE day > DATE '2024-01-01'")
    frame.collect()
    leaf: Any = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    names = ("files", "manifests", "answered_from_metadata")
    shown = {name: leaf.metrics().apply(name).value() for name in names}
    assert shown == {"files": 0, "manifests": 6, "answered_from_metadata": 4}


def test_snapshots_and_changes(spark: SparkSession, table: Named, lake: Lake, database: str) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, v INT)")
    count = f"SELECT count(*), max(id), count(v) FROM {name}"
    assert pushed(spark.sql(count))
    assert values(spark.sql(count)) == [(0, None, 0)]
    spark.sql(f"INSERT INTO {name} VALUES (1, 1), (2, NULL)")
    spark.sql(f"INSERT INTO {name} VALUES (3, 3)")
    assert values(spark.sql(count)) == [(3, 3, 2)]
    first = lake.catalog.load_table(f"{database}.t").snapshots()[0].id
    assert values(spark.sql(f"{count} VERSION AS OF {first}")) == [(2, 2, 1)]
    between = spark.read.option("incremental-between", f"{first},{first + 1}").table(name)
    assert between.agg({"id": "max"}).collect()[0][0] == 3
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    assert values(spark.sql(count)) == [(2, 2, 1)]
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN w INT")
    assert pushed(spark.sql(f"SELECT max(id), count(w), max(w) FROM {name}"))
    assert values(spark.sql(f"SELECT max(id), count(w), max(w) FROM {name}")) == [(2, 0, None)]


def test_key_tables(spark: SparkSession, table: Named) -> None:
    name = table("k")
    spark.sql(f"CREATE TABLE {name} (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')")
    spark.sql(f"INSERT INTO {name} SELECT id, id FROM range(10)")
    spark.sql(f"INSERT INTO {name} SELECT id, 100 FROM range(5)")
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    query = f"SELECT count(*), max(v), max(id) FROM {name}"
    assert not pushed(spark.sql(query))
    assert values(spark.sql(query)) == [(9, 100, 8)]
    spark.sql(f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}', compact_strategy => 'full')")
    assert pushed(spark.sql(query))
    assert values(spark.sql(query)) == [(9, 100, 8)]


def test_order_with_limit(spark: SparkSession, days: str, lake: Lake) -> None:
    for order, files in [
        ("id", 1),
        ("id DESC", 1),
        ("n DESC", 1),
        ("n", 6),
        ("s, id", 2),
        ("f", 6),
        ("id % 8", 6),
    ]:
        query = f"SELECT id FROM {days} ORDER BY {order}, id LIMIT 5"
        assert lake.explain_pushdown(query)[0].kept.files == files, order
        sorted_all = spark.sql(f"SELECT id FROM plain_days ORDER BY {order}, id LIMIT 5").collect()
        assert spark.sql(query).collect() == sorted_all, order
    (report,) = lake.explain_pushdown(f"SELECT id FROM {days} ORDER BY day DESC LIMIT 7")
    assert (report.kept.partitions, report.kept.files) == (1, 2)
    assert report.steps[-1].by == "ORDER BY day DESC NULLS LAST LIMIT 7"
    text = spark.sql(f"EXPLAIN SELECT id FROM {days} ORDER BY id LIMIT 3").collect()[0][0]
    assert "limit=3 order=[" in text
    (report,) = lake.explain_pushdown(f"SELECT id FROM {days} WHERE id > 3 ORDER BY id DESC LIMIT 3")
    assert report.kept.files == 6


def test_limit_with_offset(spark: SparkSession, days: str) -> None:
    assert len(spark.sql(f"SELECT id FROM {days} LIMIT 7 OFFSET 20").collect()) == 7
    assert len(spark.sql(f"SELECT id FROM {days} OFFSET 55").collect()) == 5
    rows = spark.sql(f"SELECT id FROM {days} ORDER BY id LIMIT 3 OFFSET 30").collect()
    assert [row.id for row in rows] == [30, 31, 32]
