"""INSERT, overwrite, DELETE, UPDATE and MERGE."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as f

from lockgate.framework.store import Schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=repr)


@pytest.fixture
def keyed(spark: SparkSession, table: Named) -> str:
    """A table with a primary key, two buckets and five rows."""
    name = table("keyed")
    spark.sql(f"""
        CREATE TABLE {name} (id INT, name STRING, n BIGINT)
        TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')
    """)
    spark.sql(f"INSERT INTO {name} VALUES (1,'a',10), (2,'b',20), (3,'c',30), (4,'d',40), (5,'e',50)")
    return name


@pytest.fixture
def parts(spark: SparkSession, table: Named) -> str:
    """A table without a key, with partitions p = x, y, z of two rows each."""
    name = table("parts")
    spark.sql(f"CREATE TABLE {name} (id INT, p STRING) PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1,'x'), (2,'x'), (3,'y'), (4,'y'), (5,'z'), (6,'z')")
    return name


# --- tables without a key ------------------------------------------------------------------------


def test_inserts_and_data_frames_append_rows(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, s STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, NULL)")
    spark.sql(f"INSERT INTO {name} (s) VALUES ('only s')")
    spark.range(3, 5).withColumn("s", f.lit("frame")).writeTo(name).append()
    spark.sql(f"INSERT INTO {name} SELECT id, s FROM {name} WHERE id = 1")
    assert rows(spark, f"SELECT * FROM {name}") == sorted(
        [(1, "a"), (2, None), (None, "only s"), (3, "frame"), (4, "frame"), (1, "a")], key=repr
    )


def test_an_empty_append_makes_no_snapshot(
    lake: Lake, spark: SparkSession, table: Named, database: str
) -> None:
    spark.sql(f"CREATE TABLE {table('t')} (id BIGINT)")
    spark.range(0).writeTo(table("t")).append()
    assert lake.catalog.load_table(f"{database}.t").latest_snapshot() is None
    assert spark.table(table("t")).count() == 0


def test_overwrite_and_truncate_replace_all_rows(spark: SparkSession, parts: str) -> None:
    spark.sql(f"INSERT OVERWRITE {parts} VALUES (9, 'w')")
    assert rows(spark, f"SELECT * FROM {parts}") == [(9, "w")]
    spark.sql(f"TRUNCATE TABLE {parts}")
    assert rows(spark, f"SELECT * FROM {parts}") == []


def test_overwrite_one_partition(spark: SparkSession, parts: str) -> None:
    spark.sql(f"INSERT OVERWRITE {parts} PARTITION (p = 'x') VALUES (9)")
    assert rows(spark, f"SELECT * FROM {parts}") == [(3, "y"), (4, "y"), (5, "z"), (6, "z"), (9, "x")]


def test_overwrite_the_partitions_that_come(spark: SparkSession, parts: str) -> None:
    spark.sql("SELECT 9 AS id, 'x' AS p UNION ALL SELECT 8, 'new'").writeTo(parts).overwritePartitions()
    assert rows(spark, f"SELECT * FROM {parts}") == [
        (3, "y"),
        (4, "y"),
        (5, "z"),
        (6, "z"),
        (8, "new"),
        (9, "x"),
    ]


def test_delete_whole_partitions(spark: SparkSession, parts: str) -> None:
    spark.sql(f"DELETE FROM {parts} WHERE p IN ('x', 'z')")
    assert rows(spark, f"SELECT * FROM {parts}") == [(3, "y"), (4, "y")]


def test_overwrite_replaces_whole_partitions_only(spark: SparkSession, parts: str) -> None:
    with pytest.raises(AnalysisException, match=r"whole partitions.*DELETE"):
        spark.sql("SELECT 9 AS id, 'x' AS p").writeTo(parts).overwrite(f.col("id") == 1)
    assert spark.table(parts).count() == 6


def test_special_partition_values(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING, d DATE) PARTITIONED BY (s, d)")
    values = [
        (1, None, None),
        (2, "a/b=c %", "2024-02-29"),
        (3, "ü", "1969-12-31"),
        (4, "x", "2024-02-29"),
    ]
    frame = spark.createDataFrame(values, "id INT, s STRING, d STRING").withColumn(
        "d", f.col("d").cast("date")
    )
    frame.writeTo(name).append()
    assert rows(spark, f"SELECT id, s, CAST(d AS STRING) FROM {name}") == sorted(values, key=repr)
    assert rows(spark, f"SELECT id FROM {name} WHERE s IS NULL") == [(1,)]
    assert rows(spark, f"SELECT id FROM {name} WHERE d = DATE'2024-02-29' AND s <> 'x'") == [(2,)]


# --- tables with a key ---------------------------------------------------------------------------


def test_inserts_into_a_key_table_replace_rows_of_a_key(spark: SparkSession, keyed: str) -> None:
    spark.sql(f"INSERT INTO {keyed} VALUES (2, 'B', 21), (6, 'f', 60)")
    spark.sql(f"INSERT INTO {keyed} VALUES (2, 'BB', 22)")
    assert rows(spark, f"SELECT * FROM {keyed}") == [
        (1, "a", 10),
        (2, "BB", 22),
        (3, "c", 30),
        (4, "d", 40),
        (5, "e", 50),
        (6, "f", 60),
    ]
    # A filter on a value must not bring an old version back.
    assert rows(spark, f"SELECT * FROM {keyed} WHERE name = 'b'") == []
    assert rows(spark, f"SELECT id FROM {keyed} WHERE n = 22") == [(2,)]
    assert spark.table(keyed).count() == 6


def test_many_upserts_in_one_job(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v BIGINT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '3')")
    spark.range(0, 5000, 1, 4).selectExpr("id AS k", "id AS v").writeTo(name).append()
    spark.range(0, 5000, 1, 4).where("id % 2 = 0").selectExpr("id AS k", "-id AS v").writeTo(name).append()
    found = spark.sql(f"SELECT count(*), sum(v), count(DISTINCT k), min(v) FROM {name}").collect()[0]
    assert tuple(found) == (5000, sum(i if i % 2 else -i for i in range(5000)), 5000, -4998)


def test_deleted_keys_are_gone_and_may_come_back(spark: SparkSession, keyed: str) -> None:
    spark.sql(f"DELETE FROM {keyed} WHERE id = 1 OR name = 'c'")
    assert rows(spark, f"SELECT id FROM {keyed}") == [(2,), (4,), (5,)]
    spark.sql(f"DELETE FROM {keyed} WHERE id IN (SELECT id FROM {keyed} WHERE n > 45)")
    assert rows(spark, f"SELECT id FROM {keyed}") == [(2,), (4,)]
    spark.sql(f"INSERT INTO {keyed} VALUES (1, 'back', 11)")
    assert rows(spark, f"SELECT id FROM {keyed}") == [(1,), (2,), (4,)]
    spark.sql(f"DELETE FROM {keyed}")
    assert rows(spark, f"SELECT id FROM {keyed}") == []


def test_an_update_changes_all_but_the_primary_key(spark: SparkSession, keyed: str) -> None:
    spark.sql(f"UPDATE {keyed} SET name = upper(name), n = n + 1 WHERE id >= 4")
    assert rows(spark, f"SELECT * FROM {keyed} WHERE id >= 3") == [(3, "c", 30), (4, "D", 41), (5, "E", 51)]
    with pytest.raises(PySparkException, match="primary key"):
        spark.sql(f"UPDATE {keyed} SET id = id + 1")
    assert rows(spark, f"SELECT id FROM {keyed}") == [(1,), (2,), (3,), (4,), (5,)]


def test_a_merge_deletes_updates_and_inserts_by_key(spark: SparkSession, keyed: str) -> None:
    spark.sql(
        "SELECT 1 AS id, 'A' AS name UNION ALL SELECT 2, NULL UNION ALL SELECT 7, 'g'"
    ).createOrReplaceTempView("changes")
    spark.sql(f"""
        MERGE INTO {keyed} t USING changes c ON t.id = c.id
        WHEN MATCHED AND c.name IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET name = c.name
        WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (c.id, c.name, 70)""")
    assert rows(spark, f"SELECT * FROM {keyed}") == [
        (1, "A", 10),
        (3, "c", 30),
        (4, "d", 40),
        (5, "e", 50),
        (7, "g", 70),
    ]


def test_partitioned_table_with_a_key(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"""
        CREATE TABLE {name} (id INT, day DATE, v INT) PARTITIONED BY (day)
        TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '2')""")
    spark.sql(f"""
        INSERT INTO {name}
        SELECT CAST(id % 10 AS INT), DATE'2024-01-01' + CAST(id DIV 10 AS INT), 0 FROM range(30)""")
    spark.sql(f"INSERT INTO {name} VALUES (3, DATE'2024-01-02', 1)")
    assert rows(spark, f"SELECT count(*), sum(v) FROM {name}") == [(30, 1)]
    spark.sql(f"DELETE FROM {name} WHERE day = DATE'2024-01-01'")
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    assert rows(spark, f"SELECT count(*), sum(v) FROM {name}") == [(18, 0)]


def test_null_in_the_key(spark: SparkSession, keyed: str) -> None:
    with pytest.raises(PySparkException):
        spark.sql(f"INSERT INTO {keyed} SELECT CAST(NULL AS INT), 'x', 1")
    assert spark.table(keyed).count() == 5


def test_one_file_a_bucket(lake: Lake, spark: SparkSession, table: Named, database: str) -> None:
    """However many tasks there are, the rows of a bucket meet in one."""
    name = table("t")
    spark.sql(f"""
        CREATE TABLE {name} (a STRING, b DATE, v BIGINT)
        TBLPROPERTIES ('primary-key' = 'a,b', 'bucket' = '3')""")
    rows = spark.range(0, 400, 1, 8).selectExpr(
        "concat('key-', id % 100) AS a", "DATE'2024-01-01' + CAST(id % 7 AS INT) AS b", "id AS v"
    )
    rows.writeTo(name).append()
    buckets = sorted(split.bucket for split in lake.catalog.load_table(f"{database}.t").scan().splits)
    assert buckets == [0, 1, 2]
    assert len(data_files(lake, database, "t")) == 3
    spark.sql(f"DELETE FROM {name} WHERE v % 2 = 0")
    assert len(data_files(lake, database, "t")) == 6
    assert spark.table(name).where("v % 2 = 0").count() == 0


# --- failures ------------------------------------------------------------------------------------


def data_files(lake: Lake, database: str, name: str) -> list[Path]:
    from pathlib import Path

    return list(Path(lake.catalog.load_table(f"{database}.{name}").location).rglob("data-*"))


def test_a_failed_job_leaves_nothing(lake: Lake, spark: SparkSession, table: Named, database: str) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    spark.range(10).writeTo(name).append()
    before = data_files(lake, database, "t")
    failing = spark.range(0, 1000, 1, 4).selectExpr("IF(id = 999, raise_error('stop'), id) AS id")
    with pytest.raises(PySparkException, match="stop"):
        failing.writeTo(name).append()
    assert spark.table(name).count() == 10
    # A task that still runs deletes its file when it ends, which may be after the statement has failed.
    deadline = time.monotonic() + 20
    while sorted(data_files(lake, database, "t")) != sorted(before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert sorted(data_files(lake, database, "t")) == sorted(before)


def test_store_assignment_is_ansi(spark: SparkSession, keyed: str) -> None:
    with pytest.raises(PySparkException):
        spark.sql(f"INSERT INTO {keyed} VALUES ('not a number', 'x', 1)")
    with pytest.raises(AnalysisException):
        spark.sql(f"INSERT INTO {keyed} VALUES (1, 'x')")


def test_two_jobs_at_once(spark: SparkSession, table: Named) -> None:
    from concurrent.futures import ThreadPoolExecutor

    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, job INT)")

    def append(job: int) -> None:
        spark.range(100).withColumn("job", f.lit(job)).writeTo(name).append()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    assert rows(spark, f"SELECT job, count(*) FROM {name} GROUP BY job") == [(i, 100) for i in range(4)]


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
@pytest.mark.parametrize("keyed", [False, True])
def test_timestamps_of_milliseconds_are_rounded_down(
    lake: Lake, database: str, file_format: str, keyed: bool
) -> None:
    """Spark's have microseconds, whatever the column has; Python and Spark read the same, and filters too."""
    zoned = pa.timestamp("ms", tz="UTC")
    columns = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ms")), ("zoned", zoned)])
    keys = {"primary_keys": ["id"]} if keyed else {}
    options = {"file.format": file_format, **({"bucket": "1"} if keyed else {})}
    made = lake.catalog.create_table(f"{database}.t", Schema.from_arrow(columns, **keys, options=options))
    lake.sql(
        f"INSERT INTO lake.{database}.t VALUES (1, TIMESTAMP_NTZ'2024-01-01 00:00:00.123999', NULL), "
        "(2, TIMESTAMP_NTZ'1960-01-01 00:00:00.000001', TIMESTAMP'1960-01-01 00:00:00.123456')"
    )
    zones = [None, at("1960-01-01 00:00:00.123")]
    expected = [(1, at("2024-01-01 00:00:00.123"), zones[0]), (2, at("1960-01-01"), zones[1])]
    found = lake.sql(f"SELECT id, at, CAST(zoned AS TIMESTAMP_NTZ) FROM lake.{database}.t ORDER BY id")
    assert [tuple(row) for row in found.collect()] == expected
    read = made.read().sort_by("id").to_pylist()
    plain = [(row["id"], row["at"], row["zoned"] and row["zoned"].replace(tzinfo=None)) for row in read]
    assert plain == expected
    sought = f"SELECT id FROM lake.{database}.t WHERE at = TIMESTAMP_NTZ'2024-01-01 00:00:00.123'"
    assert lake.sql(sought).collect() == [(1,)]


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)
