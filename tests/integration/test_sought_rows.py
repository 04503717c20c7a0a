"""Rows with single values: tasks decode other columns for these rows only, and lose none."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from exact_rows import exact_rows, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = Callable[[str], str]

ROWS = 24_000
# Values in a few rows, in the last one, in most rows, in none; of texts with and without a dictionary.
COLUMNS = f"""
  id,
  CASE WHEN id % 911 = 0 THEN 7 WHEN id = {ROWS - 1} THEN 8 WHEN id % 5 > 0 THEN 1 END AS n,
  CAST(id % 128 AS TINYINT) AS tiny,
  CASE WHEN id % 13 > 0 THEN concat('host', id % 700) END AS host,
  CASE WHEN id % 17 > 0 THEN md5(CAST(id AS STRING)) END AS hash,
  CASE WHEN id < 9000 THEN 'same' ELSE concat('x', id) END AS halves,
  CASE id % 5 WHEN 0 THEN 0.0D WHEN 1 THEN -0.0D WHEN 2 THEN double('NaN') WHEN 3 THEN id / 7 END AS d,
  CAST(id AS DECIMAL(9, 2)) AS few, CAST(id AS DECIMAL(30, 5)) AS many,
  timestamp_micros(id * 1000003) AS at, date_from_unix_date(CAST(id % 40000 AS INT)) AS day,
  id % 3 = 0 AS yes, encode(concat('b', id), 'UTF-8') AS raw,
  CASE WHEN id % 7 > 0 THEN sequence(0, id % 4) END AS list,
  map(concat('k', id % 3), id) AS pairs,
  named_struct('a', id, 's', CASE WHEN id % 2 = 0 THEN concat('s', id) END) AS inside
"""
CONDITIONS = [
    "n = 7",
    "n = 8",
    "n = 1 AND id % 41 = 3",
    "n = 12345",
    "n IN (7, 8, 9)",
    "n = 7 AND host = 'host211'",
    "n <=> 7 AND d > 100",
    "tiny IN (3, 120, -5) AND id % 5 = 0",
    "host = 'host3'",
    "host IN ('host3', 'host699', 'no host', '')",
    "hash = md5('4320')",
    "hash IN ({hashes})",
    "halves = 'same' AND id % 40 = 0",
    "halves = 'x20001'",
    "halves IN ('same', 'x23997') AND n = 7",
    "inside.a = 4242 AND n = 1",
    "id = 23999 OR n = 7",
]
NONE = ("n = 12345", "n = 7 AND host = 'host211'", "inside.a = 4242 AND n = 1")


@pytest.fixture(scope="module", params=["append", "vectors"])
def events(request: pytest.FixtureRequest, spark: SparkSession, shared_table: Named) -> str:
    """A table of one file of several row groups, whole or with a deletion vector."""
    name = shared_table(request.param)
    vectors = request.param == "vectors"
    properties = "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')" if vectors else ""
    rows = f"SELECT /*+ COALESCE(1) */ {COLUMNS} FROM range({ROWS})"
    spark.sql(f"CREATE TABLE {name} {properties} AS {rows}")
    if vectors:
        spark.sql(f"DELETE FROM {name} WHERE id % 3 = 1 OR id BETWEEN 3000 AND 4000")
    return name


@contextmanager
def conf(spark: SparkSession, **values: str) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    yield
    for key, old in before.items():
        spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def read(spark: SparkSession, query: str) -> list[Any]:
    return in_order(exact_rows(spark.sql(query).toArrow()))


def whole(spark: SparkSession, query: str) -> list[Any]:
    """Read with every column of every row decoded."""
    with conf(spark, **{"spark.sql.orc.filterPushdown": "false"}):
        return read(spark, query)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("driver", ["0", "16 mb"])
def test_each_condition_finds_its_rows(spark: SparkSession, events: str, condition: str, driver: str) -> None:
    hashes = ", ".join(f"md5('{number}')" for number in range(0, 60_000, 1_009))
    source = f"{events} WITH (`source.split.driver-max-size` = '{driver}')"
    query = f"SELECT *, _ROW_INDEX FROM {source} WHERE {condition.format(hashes=hashes)}"
    found = read(spark, query)
    assert found == whole(spark, query)
    assert found or condition in NONE


@pytest.mark.parametrize("column", ["n", "host", "hash"])
def test_values_of_a_small_side_find_their_rows(spark: SparkSession, events: str, column: str) -> None:
    wanted = spark.sql(f"SELECT DISTINCT {column} AS wanted FROM {events} WHERE id % 911 = 0 AND n > 1")
    wanted.createOrReplaceTempView("listed")
    spark.sql("CACHE TABLE listed")
    query = f"SELECT e.*, e._ROW_INDEX FROM {events} e JOIN listed l ON e.{column} = l.wanted"
    found = read(spark, query)
    assert found == whole(spark, query)
    assert found
    spark.sql("UNCACHE TABLE listed")


def test_random_conditions(spark: SparkSession, events: str) -> None:
    chosen = random.Random(5)
    for _ in range(8):
        parts = [
            f"n = {chosen.choice([1, 7, 8])}",
            f"host = 'host{chosen.randrange(700)}'",
            f"hash IN (md5('{chosen.randrange(ROWS)}'), md5('{chosen.randrange(ROWS)}'))",
            f"tiny = {chosen.randrange(128)}",
            f"id % 50 = {chosen.randrange(50)}",
            "d > 0 AND id % 20 = 3",
        ]
        condition = " AND ".join(chosen.sample(parts, chosen.randrange(1, 4)))
        columns = ", ".join(chosen.sample(["id", "d", "few", "list", "pairs", "inside", "at", "halves"], 3))
        query = f"SELECT {columns} FROM {events} WHERE {condition}"
        assert read(spark, query) == whole(spark, query), condition


def test_columns_that_came_widened_or_went(spark: SparkSession, table: Named) -> None:
    name = table("evolved")
    spark.sql(f"CREATE TABLE {name} (id INT, n INT, s STRING)")
    spark.sql(f"INSERT INTO {name} SELECT id, id % 1000, concat('s', id % 500) FROM range(20000)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN s TO `a.b ``c`")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN later STRING")
    spark.sql(f"INSERT INTO {name} SELECT id, id % 1000 + 5000000000, 's7', 'l7' FROM range(20000)")
    for condition in (
        "n = 7",
        "n = 5000000007",
        "`a.b ``c` = 's7'",
        "later = 'l7' AND n = 5000000007",
        "later <=> NULL AND n = 3",
    ):
        query = f"SELECT * FROM {name} WITH (`source.split.driver-max-size` = '0') WHERE {condition}"
        found = read(spark, query)
        assert found == whole(spark, query), condition
        assert found, condition


def test_files_that_are_written_again_keep_their_other_rows(spark: SparkSession, table: Named) -> None:
    name = table("rewritten")
    spark.sql(f"CREATE TABLE {name} AS SELECT /*+ COALESCE(1) */ id, id % 5000 AS n FROM range(30000)")
    spark.sql(f"UPDATE {name} SET id = -1 WHERE n = 77")
    spark.sql(f"DELETE FROM {name} WHERE n IN (78, 79)")
    assert spark.table(name).count() == 30_000 - 12
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE id = -1").collect() == [(6,)]
