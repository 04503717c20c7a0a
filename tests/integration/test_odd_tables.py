"""Tables with names, keys and partitions that are legal and rare."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from opaque_tables import TYPES, opaque_table
from pyspark.errors import AnalysisException, StreamingQueryException

from lockgate.errors import LockgateError
from lockgate.framework.store import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def _rows(spark: SparkSession, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


@pytest.mark.parametrize("column", ["日本", "a b", "x.y", "back`tick", "select", "1"])
def test_partition_columns_of_any_name(spark: SparkSession, table: Named, column: str) -> None:
    name, quoted = table("t"), "`" + column.replace("`", "``") + "`"
    spark.sql(f"CREATE TABLE {name} (id INT, {quoted} STRING) PARTITIONED BY ({quoted})")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a/b=c %'), (2, NULL), (3, '😀')")
    spark.sql(f"DELETE FROM {name} WHERE {quoted} = '😀'")
    assert _rows(spark, f"SELECT id FROM {name} WHERE {quoted} = 'a/b=c %'") == [(1,)]
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]
    created = _rows(spark, f"SHOW CREATE TABLE {name}")[0][0]
    spark.sql(created.replace(name, f"{name}_again"))
    assert spark.table(f"{name}_again").columns == ["id", column]


def test_a_partition_of_nan(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, f DOUBLE) PARTITIONED BY (f)")
    spark.sql(
        f"INSERT INTO {name} VALUES (1, double('NaN')), (2, 1D), (3, double('NaN')), (4, double('NaN'))"
    )
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"UPDATE {name} SET id = 5 WHERE id = 3")
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(2,), (4,), (5,)]
    spark.createDataFrame([(6, float("nan"))], "id INT, f DOUBLE").writeTo(name).overwritePartitions()
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(2,), (6,)]
    assert _rows(spark, f"SHOW PARTITIONS {name} PARTITION (f = 'NaN')") == [("f=NaN",)]
    spark.sql(f"DELETE FROM {name} WHERE f = double('NaN')")
    assert _rows(spark, f"SELECT id FROM {name}") == [(2,)]
    spark.sql(f"INSERT INTO {name} VALUES (7, double('NaN'))")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (f = 'NaN')")
    assert _rows(spark, f"SELECT id FROM {name}") == [(2,)]


def test_rows_with_keys_of_bytes_are_changed(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BINARY, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (X'01', 'a'), (X'02', 'b'), (X'0300', 'c')")
    spark.sql(f"UPDATE {name} SET v = 'u' WHERE id = X'01'")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT X'02' id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'"
    )
    spark.sql(f"DELETE FROM {name} WHERE id = X'0300'")
    assert _rows(spark, f"SELECT hex(id), v FROM {name} ORDER BY id") == [("01", "u"), ("02", "m")]
    with pytest.raises(Exception, match="UPDATE must not change column 'id' of the primary key"):
        spark.sql(f"UPDATE {name} SET id = X'09' WHERE id = X'01'")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TABLE {0} (s STRING COLLATE UTF8_LCASE)", "Column 's' cannot be stored with a collation"),
        (
            "CREATE TABLE {0} (s STRUCT<a: STRING COLLATE UNICODE_CI>)",
            "Column 's' cannot be stored with a coll",
        ),
        ("CREATE TABLE {0} AS SELECT 'x' COLLATE UTF8_LCASE AS s", "Column 's' cannot be stored with a coll"),
        (
            "ALTER TABLE {0}_old ADD COLUMN s STRING COLLATE UTF8_LCASE",
            "Column 's' cannot be stored with a coll",
        ),
        (
            "ALTER TABLE {0}_old REPLACE COLUMNS (id BIGINT, z STRING)",
            "REPLACE COLUMNS would empty every column",
        ),
    ],
)
def test_statements_that_would_lose_something(
    spark: SparkSession, table: Named, statement: str, words: str
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name}_old (id INT)")
    with pytest.raises(AnalysisException, match=words):
        spark.sql(statement.format(name))
    assert spark.table(f"{name}_old").columns == ["id"]
    assert not spark.catalog.tableExists(name)


def test_texts_of_streams_are_filled_up_and_measured(
    spark: SparkSession, table: Named, tmp_path: Path
) -> None:
    name, columns = table("t"), "id STRING, n STRING, s STRUCT<c: STRING>"
    spark.sql(
        f"CREATE TABLE {name} (id CHAR(4), n VARCHAR(3), s STRUCT<c: CHAR(2)>) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '4')"
    )
    spark.sql(f"INSERT INTO {name} VALUES ('a', 'x', named_struct('c', 'b'))")

    def stream(rows: list[tuple[Any, ...]]) -> None:
        spark.createDataFrame(rows, columns).write.mode("append").json(str(tmp_path / "rows"))
        source = spark.readStream.schema(columns).json(str(tmp_path / "rows"))
        writer = source.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).toTable(name).awaitTermination()

    stream([("a", "y", ("c",)), ("é", None, None)])
    expected = [("a   ", "y", ("c ",)), ("é   ", None, None)]
    assert _rows(spark, f"SELECT * FROM {name} ORDER BY id") == expected
    with pytest.raises(StreamingQueryException, match="EXCEED_LIMIT_LENGTH"):
        stream([("b", "too long", None)])
    assert _rows(spark, f"SELECT * FROM {name} ORDER BY id") == expected


@pytest.mark.parametrize("value", ["a/b=c %", " x ", "é😀", "a+b&c?d#e", "100%25", "..", "q\"\\'`"])
def test_rows_of_partitions_of_any_name_are_changed(spark: SparkSession, table: Named, value: str) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, p STRING) PARTITIONED BY (p)")
    for first in (1, 3):
        rows = [(first, value), (first + 1, value), (first + 4, "other")]
        spark.createDataFrame(rows, "id INT, p STRING").writeTo(name).append()
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"UPDATE {name} SET id = 30 WHERE id = 3")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 4 id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 40"
    )
    expected = [(2, value), (5, "other"), (7, "other"), (30, value), (40, value)]
    assert _rows(spark, f"SELECT id, p FROM {name} ORDER BY id") == expected
    spark.createDataFrame([(9, value)], "id INT, p STRING").writeTo(name).overwritePartitions()
    assert _rows(spark, f"SELECT id FROM {name} ORDER BY id") == [(5,), (7,), (9,)]


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"])
def test_tables_with_columns_of_char(lake: Lake, spark: SparkSession, table: Named, properties: str) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id CHAR(4), n VARCHAR(3)) {properties}")
    spark.sql(f"INSERT INTO {name} VALUES ('a', 'x'), ('b', 'y'), ('é', 'z')")
    spark.sql(f"UPDATE {name} SET n = 'u' WHERE id = 'a'")
    spark.sql(f"UPDATE {name} SET n = 'w' WHERE id IN ('é', 'q')")
    spark.sql(f"MERGE INTO {name} t USING (SELECT 1) ON t.id = 'b' WHEN MATCHED THEN DELETE")
    assert _rows(spark, f"SELECT * FROM {name} ORDER BY id") == [("a   ", "u"), ("é   ", "w")]
    if properties:
        rows = pa.table({"id": ["a", "c"], "n": ["py", "py"]})
        lake.catalog.load_table(name.removeprefix("lake.")).append(rows)
        expected = [("a   ", "py"), ("c   ", "py"), ("é   ", "w")]
        assert _rows(spark, f"SELECT * FROM {name} ORDER BY id") == expected
    spark.sql(f"DELETE FROM {name} WHERE id = 'é'")
    assert _rows(spark, f"SELECT * FROM {name} WHERE id > 'd'") == []
    spark.sql(f"DELETE FROM {name}")
    assert _rows(spark, f"SELECT * FROM {name}") == []


@pytest.mark.parametrize("properties", ["append", "key"])
def test_a_type_that_is_not_known_is_shown_and_refused_by_name(
    lake: Lake, spark: SparkSession, table: Named, properties: str
) -> None:
    name = table("t")
    parts = {"primary_keys": ["id"], "options": {"bucket": "1"}} if properties == "key" else {}
    made = opaque_table(lake.catalog, name.removeprefix("lake."), "inside", **parts)
    text = TYPES["inside"][2]
    assert spark.table(name).columns == ["id", "v", "n"]
    assert [row[:2] for row in spark.sql(f"DESCRIBE {name}").collect()[:3]] == [
        ("id", "bigint"),
        ("v", text),
        ("n", "string"),
    ]
    assert f"v {text}" in _rows(spark, f"SHOW CREATE TABLE {name}")[0][0]
    assert spark.table(name).schema["v"].dataType.json()
    assert _rows(spark, f"SELECT n, id FROM {name} WHERE n >= 'n2' ORDER BY id") == [("n2", 2), ("n3", 3)]
    assert _rows(spark, f"SELECT count(*), max(id) FROM {name}") == [(3, 3)]
    assert spark.sql(f"SELECT * EXCEPT (v) FROM {name}").count() == 3
    assert spark.table(f"{name}.audit_log").columns == ["rowkind", "id", "v", "n"]
    files = {path: path.read_bytes() for path in Path(made.location).rglob("*") if path.is_file()}
    for statement in (
        f"SELECT * FROM {name}",
        f"SELECT v.b FROM {name}",
        f"SELECT id FROM {name} WHERE v IS NULL",
        f"SELECT count(v) FROM {name}",
        f"SELECT v FROM {name}.audit_log",
        f"INSERT INTO {name} (id, n) VALUES (4, 'n')",
        f"INSERT OVERWRITE {name} SELECT 4, NULL, 'n'",
        f"UPDATE {name} SET n = 'm' WHERE id = 1",
        f"DELETE FROM {name} WHERE id = 1",
        f"MERGE INTO {name} t USING (SELECT 1L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 'm'",
        f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}', compact_strategy => 'full')",
        f"ALTER TABLE {name} ALTER COLUMN v TYPE STRING",
        f"CREATE TABLE {name}_like LIKE {name}",
        f"CREATE TABLE {name}_as AS SELECT * FROM {name}",
    ):
        with pytest.raises((LockgateError, AnalysisException), match=r"\bv\b"):
            spark.sql(statement).collect()
    assert files == {path: path.read_bytes() for path in Path(made.location).rglob("*") if path.is_file()}
    spark.sql(f"ALTER TABLE {name} ADD COLUMN m INT")
    assert (
        lake.catalog.load_table(name.removeprefix("lake.")).schema.to_json()["fields"][1]["type"]
        == (TYPES["inside"][0])
    )
    spark.sql(f"ALTER TABLE {name} DROP COLUMN v")
    spark.sql(f"INSERT INTO {name} VALUES (4, 'n4', 4)")
    assert _rows(spark, f"SELECT id, n, m FROM {name} WHERE id > 2 ORDER BY id") == [
        (3, "n3", None),
        (4, "n4", 4),
    ]


def test_a_type_that_spark_lacks_is_shown_and_refused_by_name(
    lake: Lake, spark: SparkSession, table: Named
) -> None:
    name = table("t")
    schema = pa.schema([("id", pa.int64()), ("at", pa.time32("ms"))])
    made = lake.catalog.create_table(name.removeprefix("lake."), Schema.from_arrow(schema))
    made.append(pa.table({"id": [1], "at": [datetime.time(1, 2)]}, schema=schema))
    assert [row[:2] for row in spark.sql(f"DESCRIBE {name}").collect()[:2]] == [
        ("id", "bigint"),
        ("at", "TIME(3)"),
    ]
    assert _rows(spark, f"SELECT id FROM {name} WHERE id = 1") == [(1,)]
    for statement in (
        f"SELECT at FROM {name}",
        f"INSERT INTO {name} (id) VALUES (2)",
        f"DELETE FROM {name} WHERE id = 1",
    ):
        with pytest.raises((LockgateError, AnalysisException), match=r"'at' cannot be .*Spark.*TIME\(3\)"):
            spark.sql(statement).collect()
    made.append(pa.table({"id": [2], "at": [datetime.time(3)]}, schema=schema))
    lake.sql(
        f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}', compact_strategy => 'full')"
    ).collect()
    assert made.read()["at"].to_pylist() == [datetime.time(1, 2), datetime.time(3)]


def test_a_reserved_column_is_refused(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT)")
    for statement in (
        f"CREATE TABLE {name}_2 (`_ROW_ID` BIGINT)",
        f"ALTER TABLE {name} ADD COLUMN _ROW_ID BIGINT",
        f"ALTER TABLE {name} RENAME COLUMN id TO _ROW_ID",
    ):
        with pytest.raises(AnalysisException, match="'_ROW_ID' has a name that is reserved"):
            spark.sql(statement)
    assert spark.table(name).columns == ["id"]
    assert not spark.catalog.tableExists(f"{name}_2")


def test_floats_are_compared_with_literals_as_plain_spark_compares_them(
    spark: SparkSession, table: Named
) -> None:
    """A FLOAT of 1.1 is no DOUBLE of 1.1: pushed as FLOAT, the literal would find it."""
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, f FLOAT, p FLOAT) PARTITIONED BY (p)")
    values = "(1, 1.1F, 1.1F), (2, 1.5F, 1.5F), (3, NULL, NULL), (4, -0.0F, 0.0F)"
    spark.sql(f"INSERT INTO {name} VALUES {values}")
    plain = spark.sql(f"SELECT * FROM VALUES {values} AS t(id, f, p)")
    conditions = [
        f"{column} {comparison}"
        for column in ("f", "p")
        for comparison in (
            "= 1.1",
            "= 1.1F",
            "= 1.1D",
            "<> 1.1",
            "< 1.1D",
            ">= 1.1",
            "IN (1.1D, 1.5)",
            "= 1.5",
            "= 0",
        )
    ]
    truths = plain.selectExpr("id", *(f"{each} AS c{at}" for at, each in enumerate(conditions))).collect()
    for at, condition in enumerate(conditions):
        wanted = [(row["id"],) for row in truths if row[f"c{at}"]]
        assert _rows(spark, f"SELECT id FROM {name} WHERE {condition} ORDER BY id") == wanted, condition
