"""DDL: databases and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


def names(spark: SparkSession, text: str, column: str) -> list[str]:
    return [row[column] for row in spark.sql(text).collect()]


def test_databases_are_made_and_only_empty_ones_dropped(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE lake.made")
    spark.sql("CREATE DATABASE IF NOT EXISTS lake.made")
    assert "made" in names(spark, "SHOW DATABASES IN lake", "namespace")
    with pytest.raises(AnalysisException):
        spark.sql("CREATE DATABASE lake.made")
    spark.sql("CREATE TABLE lake.made.t (id INT)")
    with pytest.raises(AnalysisException):
        spark.sql("DROP DATABASE lake.made")
    spark.sql("DROP DATABASE lake.made CASCADE")
    assert "made" not in names(spark, "SHOW DATABASES IN lake", "namespace")


def test_databases_have_one_level(spark: SparkSession) -> None:
    assert names(spark, "SHOW TABLES IN lake", "tableName") == []
    with pytest.raises(AnalysisException, match=r"a database is named lake\.db"):
        spark.sql("CREATE DATABASE lake.a.b")
    with pytest.raises(AnalysisException, match=r"a table lake\.db\.t"):
        spark.sql("SELECT * FROM lake.t")


def test_the_system_database_holds_no_tables(spark: SparkSession) -> None:
    assert "sys" in names(spark, "SHOW DATABASES IN lake", "namespace")
    lineage = ["lineage_edges", "lineage_processes", "lineage_runs"]
    of_warehouse = sorted(
        ["access_requests", "all_table_options", "catalog_options", "partitions", "tables", *lineage]
    )
    assert names(spark, "SHOW TABLES IN lake.sys", "tableName") == of_warehouse
    with pytest.raises(AnalysisException, match="reserved"):
        spark.sql("CREATE TABLE lake.sys.t (id INT)")


def test_tables_are_created_listed_and_described(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE lake.{database}.b (id INT COMMENT 'the number', name STRING) COMMENT 'some'")
    spark.sql(f"CREATE TABLE lake.{database}.a (id INT)")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.{database}.a (other STRING)")
    assert names(spark, f"SHOW TABLES IN lake.{database}", "tableName") == ["a", "b"]
    assert spark.catalog.tableExists(f"lake.{database}.a")
    assert not spark.catalog.tableExists(f"lake.{database}.none")
    described = {row[0]: (row[1], row[2]) for row in spark.sql(f"DESCRIBE lake.{database}.b").collect()}
    assert described["id"] == ("int", "the number")
    spark.sql(f"DROP TABLE lake.{database}.a")
    spark.sql(f"DROP TABLE IF EXISTS lake.{database}.a")
    assert names(spark, f"SHOW TABLES IN lake.{database}", "tableName") == ["b"]
    with pytest.raises(AnalysisException):
        spark.sql(f"DROP TABLE lake.{database}.a")


def test_a_table_with_keys_partitions_and_options(
    lake: Lake, spark: SparkSession, table: Callable[[str], str], database: str
) -> None:
    spark.sql(f"""
        CREATE TABLE {table("t")} (id INT, day DATE, ssn STRING, email STRING)
        PARTITIONED BY (day)
        TBLPROPERTIES ('primary-key' = 'day,id', 'bucket' = '3',
                       'orc.encrypt' = 'pii:ssn,email', 'orc.mask' = 'nullify:ssn;sha256:email')""")
    schema = lake.catalog.load_table(f"{database}.t").schema
    assert schema.partition_keys == ("day",)
    assert schema.primary_keys == ("day", "id")
    assert schema.bucket_count == 3
    assert schema.bucket_keys == ("id",)
    # The columns of the key are NOT NULL, whatever the statement said.
    assert {field.name: field.nullable for field in spark.table(table("t")).schema} == {
        "id": False,
        "day": False,
        "ssn": True,
        "email": True,
    }
    properties = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {table('t')}").collect()}
    assert properties["primary-key"] == "day,id"
    assert properties["orc.mask"] == "nullify:ssn;sha256:email"
    partitions = [row[0] for row in spark.sql(f"DESCRIBE EXTENDED {table('t')}").collect()]
    assert "# Partitioning" in partitions or "# Partition Information" in partitions


def test_every_type(spark: SparkSession, table: Callable[[str], str]) -> None:
    columns = (
        "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20, 5), i STRING, "
        "j VARCHAR(10), k CHAR(5), l BINARY, m DATE, n TIMESTAMP, o TIMESTAMP_NTZ"
    )
    spark.sql(f"CREATE TABLE {table('t')} ({columns})")
    spark.sql(f"""
        INSERT INTO {table("t")} VALUES (true, 1, 2, 3, 4, 1.5, -0.25, 123456789012345.12345,
            'ä', 'var', 'ch', X'00FF', DATE'1969-12-31', TIMESTAMP'2024-02-29 12:34:56.123456',
            TIMESTAMP_NTZ'1900-01-01 00:00:00.000001')""")
    spark.sql(f"INSERT INTO {table('t')} (a) VALUES (NULL)")
    plain = spark.sql("""
        SELECT true a, 1Y b, 2S c, 3 d, 4L e, CAST(1.5 AS FLOAT) f, CAST(-0.25 AS DOUBLE) g,
            CAST('123456789012345.12345' AS DECIMAL(20, 5)) h, 'ä' i, 'var' j, 'ch   ' k, X'00FF' l,
            DATE'1969-12-31' m, TIMESTAMP'2024-02-29 12:34:56.123456' n,
            TIMESTAMP_NTZ'1900-01-01 00:00:00.000001' o""").collect()
    assert spark.sql(f"SELECT * FROM {table('t')} WHERE a").collect() == plain
    empty = spark.sql(f"SELECT * FROM {table('t')} WHERE a IS NULL").collect()
    assert [list(row) for row in empty] == [[None] * 15]


def test_create_table_as_select(spark: SparkSession, table: Callable[[str], str]) -> None:
    spark.sql(f"CREATE TABLE {table('t')} AS SELECT id, id % 3 AS part FROM range(10)")
    assert spark.table(table("t")).count() == 10
    spark.range(5).write.saveAsTable(table("u"))
    assert spark.table(table("u")).count() == 5
    spark.range(7).writeTo(table("v")).create()
    assert spark.table(table("v")).count() == 7
    spark.range(4).write.mode("overwrite").saveAsTable(table("u"))
    spark.range(4).write.mode("append").saveAsTable(table("u"))
    assert spark.table(table("u")).count() == 8
    spark.sql(f"CREATE OR REPLACE TABLE {table('u')} AS SELECT 'x' AS other")
    assert spark.table(table("u")).collect() == [("x",)]


def test_nested_types(spark: SparkSession, table: Callable[[str], str]) -> None:
    columns = "id INT, a ARRAY<INT>, m MAP<STRING, BIGINT>, s STRUCT<x: INT, y: STRUCT<z: STRING>>"
    for name, properties in (("t", ""), ("k", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")):
        spark.sql(f"CREATE TABLE {table(name)} ({columns}) {properties}")
        spark.sql(f"""
            INSERT INTO {table(name)} VALUES (1, array(1, NULL), map('k', 5L), struct(1, struct('q'))),
                (2, NULL, NULL, NULL)""")
        whole = sorted(spark.table(table(name)).collect(), key=lambda row: row.id)
        assert whole == [(1, [1, None], {"k": 5}, (1, ("q",))), (2, None, None, None)]
        assert spark.sql(f"SELECT s.y.z, a[0] FROM {table(name)} WHERE s.x = 1").collect() == [("q", 1)]


REFUSED = [
    ("CREATE TABLE {} (id INT) PARTITIONED BY (bucket(4, id))", "partition by top-level columns"),
    ("CREATE TABLE {} (id INT) USING csv", "leave USING"),
    ("CREATE TABLE {} (id INT) LOCATION '/tmp/x'", "tables live in its warehouse"),
    ("CREATE TABLE {} (id INT) TBLPROPERTIES ('bucket' = 'many')", "bucket"),
    ("CREATE TABLE {} (id INT) TBLPROPERTIES ('primary-kye' = 'id')", "did you mean 'primary-key'"),
    ("CREATE TABLE {} (id INT) TBLPROPERTIES ('primary-key' = 'idd', 'bucket' = '1')", "mean 'id'"),
    (
        "CREATE TABLE {} (id INT) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'orc.encrypt' = 'pii:id')",
        "id",
    ),
    ("CREATE TABLE {} (id INT, t INTERVAL DAY TO SECOND)", "t"),
]


@pytest.mark.parametrize(("statement", "message"), REFUSED)
def test_create_table_refuses_what_tables_cannot_have(
    spark: SparkSession, table: Callable[[str], str], statement: str, message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        spark.sql(statement.format(table("t")))
    assert not spark.catalog.tableExists(table("t"))


def test_two_sessions_with_two_warehouses_under_one_name(spark: SparkSession, lake_folder: object) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.catalog.lake.warehouse", f"{lake_folder}/elsewhere")
    other.sql("CREATE DATABASE IF NOT EXISTS lake.only_there")
    assert "only_there" in names(other, "SHOW DATABASES IN lake", "namespace")
    assert "only_there" not in names(spark, "SHOW DATABASES IN lake", "namespace")
