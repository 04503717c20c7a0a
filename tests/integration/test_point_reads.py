"""Queries for single values: the driver reads the few rows while it plans, and no job is started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from point_reads import OFF, SIZE, ask, collected, left_to_tasks, on_driver, plan, rows
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


Named = Callable[[str], str]


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, shared_table: Named) -> str:
    """Five files of ten rows; `id` grows from file to file."""
    name = shared_table("numbers")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, n INT, s STRING, tags ARRAY<STRING>, at STRUCT<x: INT, y: STRING>)"
    )
    spark.range(0, 50, numPartitions=5).selectExpr(
        "id", "CAST(id % 10 AS INT) AS n", "concat('s', id) AS s", "array('a', concat('b', id)) AS tags",
        "named_struct('x', CAST(id AS INT), 'y', concat('y', id)) AS at",
    ).writeTo(name).append()  # fmt: skip
    return name


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("id = 17", 1),
        ("17 = id", 1),
        ("id <=> 17", 1),
        ("id = 17 AND n > 3 AND s LIKE 's1%'", 1),
        ("id = 17 AND n IS NULL", 0),
        ("id IN (11, 12, 13, NULL)", 3),
        ("id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13)", 12),
        ("id = 11 OR s = 's12'", 2),
        ("id = 17 AND NOT n = 3", 1),
        ("id = 17 AND at.x = 17", 1),
        ("id = 1000", 0),
        ("n = 7", 5),
        ("s LIKE '%17'", 1),
        ("s LIKE 's%1%7'", 1),
        ("s ILIKE '%S4%'", 11),
        ("lake.sys.match(s, 'S17')", 1),
    ],
)
def test_conditions_that_the_driver_answers(
    spark: SparkSession, numbers: str, condition: str, count: int
) -> None:
    assert len(ask(spark, numbers, condition)) == count


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "columns",
    [
        "s",
        "n AS m, id",
        "id + 1, CAST(n AS STRING)",
        "at.y",
        "tags",
        "at",
        "id, id",
        "7 AS seven",
        "s = 's17'",
    ],
)
def test_a_query_reads_any_columns_of_one_row(spark: SparkSession, numbers: str, columns: str) -> None:
    assert len(ask(spark, numbers, "id = 17", columns)) == 1


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "condition",
    ["id > 47", "id = 17 AND upper(s) = 'S17'", "id = 17 AND uuid() <> s", "id = 3 OR n > 8", "id % 50 = 17"],
)
def test_other_conditions_are_left_to_tasks(spark: SparkSession, numbers: str, condition: str) -> None:
    assert left_to_tasks(spark, numbers, condition)


def test_explain_says_it_and_reports_stay(spark: SparkSession, numbers: str, lake: Lake) -> None:
    frame = spark.table(numbers).where("id = 17").select("s")
    assert f"{numbers} snapshot=1 accepted=[id IS NOT NULL, id = 17] read on the driver" in plan(frame)
    frame.explain("formatted")
    frame.collect()
    metrics = frame._jdf.queryExecution().executedPlan().metrics()
    shown = {
        name: metrics.apply(name).value() for name in ("numOutputRows", "files", "skipped_by_statistics")
    }
    assert shown == {"numOutputRows": 1, "files": 1, "skipped_by_statistics": 4}
    (report,) = lake.explain_pushdown(f"SELECT s FROM {numbers} WHERE id = 17")
    assert (report.total.files, report.kept.files) == (5, 1)


def test_the_ways_to_take_rows(spark: SparkSession, numbers: str) -> None:
    frame = spark.table(numbers).where("id IN (15, 16, 17)").select("id")
    assert on_driver(frame)
    assert frame.count() == 3
    assert len(frame.take(2)) == 2
    assert [row.id for row in frame.tail(1)] == [17]
    assert sorted(row.id for row in frame.toLocalIterator()) == [15, 16, 17]
    assert sorted(row.id for row in frame.rdd.collect()) == [15, 16, 17]
    assert sorted(frame.toArrow().column("id").to_pylist()) == [15, 16, 17]
    assert [row.id for row in frame.limit(1).collect()] == [15]
    assert frame.orderBy(frame.id.desc()).first() == (17,)
    cached = frame.cache()
    assert cached.count() == 3
    assert sorted(row.id for row in cached.collect()) == [15, 16, 17]
    cached.unpersist()


def test_unions_and_subqueries(spark: SparkSession, numbers: str) -> None:
    for query in (
        "SELECT s FROM {0} {1} WHERE id = 3 UNION ALL SELECT s FROM {0} {1} WHERE id = 44",
        "SELECT (SELECT s FROM {0} {1} WHERE id = 9), id FROM {0} {1} WHERE id = 17",
    ):
        frame = spark.sql(query.format(numbers, ""))
        assert on_driver(frame), query
        assert rows(frame) == rows(spark.sql(query.format(numbers, OFF))), query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), max(s), sum(n) FROM {0} {1} WHERE id = 17",
        "SELECT count(*), count(s), min(s), sum(n), avg(n), max(id) FROM {0} {1} WHERE id = 1000",
        "SELECT count(*) + 1 AS c, 'x' || max(s) FROM {0} {1} WHERE id IN (15, 17, 25)",
        "SELECT n, count(*), sum(id) FROM {0} {1} WHERE id IN (15, 17, 25) GROUP BY n",
        "SELECT n + 1, sum(CAST(id AS DECIMAL(10, 2))) FROM {0} {1} WHERE id IN (5, 7) GROUP BY n + 1",
        "SELECT count(*) FILTER (WHERE n = 5), sum(n) FILTER (WHERE n = 99) FROM {0} {1} WHERE id IN (5, 7)",
        "SELECT at.y, count(at.x) FROM {0} {1} WHERE id IN (5, 7) GROUP BY at.y",
        "SELECT count(*), max(s) FROM {0} {1} WHERE s LIKE '%7'",
    ],
)
def test_aggregates_of_few_rows_start_no_job(spark: SparkSession, numbers: str, query: str) -> None:
    frame = spark.sql(query.format(numbers, ""))
    assert on_driver(frame)
    found, jobs = collected(spark, frame)
    assert jobs == 0
    tasks = spark.sql(query.format(numbers, OFF))
    assert found == rows(tasks)
    assert frame.schema == tasks.schema


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT n) FROM {0} {1} WHERE id IN (15, 17, 25)",
        "SELECT DISTINCT n FROM {0} {1} WHERE id IN (15, 17, 25)",
        "SELECT n FROM {0} {1} WHERE id = 1000 GROUP BY n",
        "SELECT collect_set(n) FROM {0} {1} WHERE id = 17",
        "SELECT n * 1e0 AS d, count(*) FROM {0} {1} WHERE id IN (15, 25) GROUP BY n * 1e0",
        "SELECT n, id, count(*) FROM {0} {1} WHERE id IN (15, 25) GROUP BY ROLLUP (n, id)",
    ],
)
def test_other_aggregates_are_computed_by_spark(spark: SparkSession, numbers: str, query: str) -> None:
    assert rows(spark.sql(query.format(numbers, ""))) == rows(spark.sql(query.format(numbers, OFF)))


def test_an_overflow_has_the_message_of_a_task(spark: SparkSession, numbers: str) -> None:
    query = "SELECT sum(id + 9223372036854775000) FROM {0} {1} WHERE id IN (5, 7)"
    messages = []
    for where in ("", OFF):
        with pytest.raises(PySparkException) as raised:
            spark.sql(query.format(numbers, where)).collect()
        messages.append(raised.value.getCondition())
    assert messages == ["ARITHMETIC_OVERFLOW"] * 2


@pytest.mark.parametrize("threshold", ["-1", "10mb"])
def test_a_join_reads_single_rows_on_either_side(
    spark: SparkSession, numbers: str, table: Named, threshold: str
) -> None:
    """With the rows on either side, or both, whether Spark broadcasts them or not."""
    other = table("other")
    spark.sql(f"CREATE TABLE {other} AS SELECT id AS k, n AS m FROM {numbers} WHERE id % 2 = 1")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    try:
        for kind in ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            query = (
                "SELECT * FROM (SELECT * FROM {0} {2} WHERE id IN (12, 13, 17)) a "
                f"{kind} {{1}} b ON a.n = b.m"
            )
            frame = spark.sql(query.format(numbers, other, ""))
            assert on_driver(frame)
            assert rows(frame) == rows(spark.sql(query.format(numbers, other, OFF)))
        itself = spark.sql(
            f"SELECT a.s, b.s FROM {numbers} a JOIN {numbers} b ON a.n = b.n WHERE a.id = 17 AND b.id = 27"
        )
        assert rows(itself) == ["('s17', 's27')"]
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_joins_by_buckets_move_no_rows(spark: SparkSession, table: Named) -> None:
    names = [table("a"), table("b")]
    for name in names:
        spark.sql(f"CREATE TABLE {name} (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '4')")
        spark.sql(f"INSERT INTO {name} SELECT id, id * 2 FROM range(100)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        query = f"SELECT a.id, b.v FROM {names[0]} a LEFT JOIN {names[1]} b ON a.id = b.id WHERE a.v = 14"
        frame = spark.sql(query)
        assert rows(frame) == ["(7, 14)"]
        assert "Exchange" not in plan(frame)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_the_driver_reads_up_to_a_size(spark: SparkSession, numbers: str) -> None:
    for size, expected in (("0", False), ("10 b", False), ("1 mb", True)):
        frame = spark.sql(f"SELECT * FROM {numbers} WITH (`{SIZE}` = '{size}') WHERE id = 17")
        assert on_driver(frame) is expected, size
        assert len(rows(frame)) == 1
    with pytest.raises(PySparkException, match=SIZE):
        spark.read.option(SIZE, "much").table(numbers).where("id = 17").collect()
    spark.sql(f"ALTER TABLE {numbers} SET TBLPROPERTIES ('{SIZE}' = '0')")
    try:
        assert not on_driver(spark.table(numbers).where("id = 17"))
        assert on_driver(spark.read.option(SIZE, "1 mb").table(numbers).where("id = 17"))
    finally:
        spark.sql(f"ALTER TABLE {numbers} UNSET TBLPROPERTIES ('{SIZE}')")


def test_many_rows_are_left_to_tasks(spark: SparkSession, table: Named) -> None:
    name = table("many")
    spark.sql(
        f"CREATE TABLE {name} AS SELECT /*+ COALESCE(1) */ id, id % 2 AS odd, id % 20 AS n FROM range(15000)"
    )
    assert len(ask(spark, name, "n = 3")) == 750
    assert len(left_to_tasks(spark, name, "odd = 1")) == 7500
    long = table("long")
    spark.sql(
        f"CREATE TABLE {long} AS SELECT 1 AS n, repeat(CAST(id AS STRING), 100000) AS s FROM range(300)"
    )
    assert len(spark.sql(f"SELECT s FROM {long} WHERE n = 1").collect()) == 300
    assert not on_driver(spark.sql(f"SELECT s FROM {long} WHERE n = 1"))
    assert on_driver(spark.sql(f"SELECT s FROM {long} WHERE n = 1 AND s LIKE '29%'"))


def test_many_files_are_left_to_tasks(spark: SparkSession, table: Named) -> None:
    name = table("files")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, n INT)")
    spark.range(0, 100, numPartitions=10).selectExpr("id", "CAST(id % 10 AS INT) AS n").writeTo(name).append()
    assert len(left_to_tasks(spark, name, "n = 3")) == 10
    assert len(ask(spark, name, "id IN (3, 13)")) == 2


def test_single_rows_of_partitions_are_found(spark: SparkSession, table: Named) -> None:
    name = table("p")
    spark.sql(f"CREATE TABLE {name} (id INT, day DATE, part STRING) PARTITIONED BY (day, part)")
    spark.sql(f"INSERT INTO {name} SELECT id, DATE '2024-02-29', 'a/b' FROM range(5)")
    spark.sql(f"INSERT INTO {name} SELECT id, NULL, 'ü' FROM range(3, 8)")
    assert len(ask(spark, name, "id = 3")) == 2
    assert len(ask(spark, name, "id = 3 AND day = DATE '2024-02-29'", "id, part, day")) == 1
    assert len(ask(spark, name, "id = 3 AND part = 'ü'", "day, part")) == 1
    # A partition is no single value: its rows are what tasks are for.
    assert len(left_to_tasks(spark, name, "part = 'ü'")) == 5


def test_key_tables(spark: SparkSession, table: Named) -> None:
    """The newest row of a key counts, wherever an older one would pass the filter."""
    name = table("k")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')")
    spark.sql(f"INSERT INTO {name} SELECT id, 'old' FROM range(10)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'new' FROM range(5)")
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    assert ask(spark, name, "id = 3") == ["(3, 'new')"]
    assert ask(spark, name, "id = 7") == ["(7, 'old')"]
    assert ask(spark, name, "id = 3 AND v = 'old'") == []
    assert ask(spark, name, "id = 9") == []
    assert ask(spark, name, "id IN (2, 7, 9)", "v") == ["('new',)", "('old',)"]
    assert len(ask(spark, name, "v = 'old'")) == 4
    spark.sql(f"UPDATE {name} SET v = 'newest' WHERE id = 3")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 7 AS id) s ON t.id = s.id AND t.id = 7 WHEN MATCHED THEN DELETE"
    )
    assert ask(spark, name, "id IN (3, 7)") == ["(3, 'newest')"]
    first = f"{name} VERSION AS OF 1"
    assert rows(spark.sql(f"SELECT * FROM {first} WHERE id = 3")) == ["(3, 'old')"]
    assert on_driver(spark.sql(f"SELECT * FROM {first} WHERE id = 3"))


def test_changes_of_single_rows(spark: SparkSession, table: Named) -> None:
    name = table("c")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    spark.range(20).coalesce(1).selectExpr("CAST(id AS INT) AS id", "'old' AS v").writeTo(name).append()
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(f"UPDATE {name} SET v = 'new' WHERE id IN (4, 5)")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 6 AS id) s ON t.id = s.id AND t.id = 6 "
        "WHEN MATCHED THEN UPDATE SET v = 'merged'"
    )
    spark.sql(f"INSERT INTO {name} SELECT id + 100, v FROM {name} WHERE id = 4")
    expected = {**dict.fromkeys(range(20), "old"), 4: "new", 5: "new", 6: "merged", 104: "new"}
    del expected[3]
    assert {row.id: row.v for row in spark.table(name).collect()} == expected
    assert ask(spark, name, "id IN (3, 4, 6)") == ["(4, 'new')", "(6, 'merged')"]


def test_evolved_columns(spark: SparkSession, table: Named) -> None:
    name = table("e")
    spark.sql(f"CREATE TABLE {name} (id INT, n INT, name STRING)")
    spark.sql(f"INSERT INTO {name} SELECT id, id * 2, concat('n', id) FROM range(10)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN name TO called")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN more STRING FIRST")
    spark.sql(f"INSERT INTO {name} SELECT 'm', id, 5000000000, 'late' FROM range(5, 12)")
    assert ask(spark, name, "id = 5") == ["('m', 5, 5000000000, 'late')", "(None, 5, 10, 'n5')"]
    assert ask(spark, name, "called = 'n5'", "n, more") == ["(10, None)"]
    assert ask(spark, name, "n = 10", "called") == ["('n5',)"]
    assert ask(spark, name, "n = 5000000000 AND id = 6", "called") == ["('late',)"]
    assert ask(spark, name, "more <=> NULL AND id = 5", "called") == ["('n5',)"]


def test_columns_of_files(spark: SparkSession, numbers: str) -> None:
    columns = "id, _FILE_PATH, _ROW_INDEX, _PARTITION, _BUCKET"
    (found,) = ask(spark, numbers, "id = 17", columns)
    assert found.endswith(", 7, '', 0)")
    assert len(ask(spark, numbers, "id IN (7, 17) AND _ROW_INDEX = 7", "id")) == 2


def test_what_the_driver_has_read_is_computed_once(spark: SparkSession, numbers: str) -> None:
    """Both sides of a union join the same rows, so the second takes what the first has broadcast."""

    def joined(value: int) -> str:
        few = f"SELECT id FROM {numbers} WHERE n = {value}"
        return f"SELECT n.n, count(*) AS c FROM {numbers} n JOIN ({few}) f ON n.id = f.id GROUP BY n.n"

    same = spark.sql(f"SELECT c FROM ({joined(7)}) UNION ALL SELECT n FROM ({joined(7)})")
    other = spark.sql(f"SELECT c FROM ({joined(7)}) UNION ALL SELECT n FROM ({joined(8)})")
    assert sorted(row[0] for row in same.collect()) == [5, 7]
    assert sorted(row[0] for row in other.collect()) == [5, 8]
    plans = [frame._jdf.queryExecution().executedPlan().toString() for frame in (same, other)]
    assert ["ReusedSubquery" in each for each in plans] == [True, False]
