"""ALTER TABLE in SQL, and what old files then show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


def rows(spark: SparkSession, text: str) -> list[tuple]:
    return [tuple(row) for row in spark.sql(text).collect()]


def test_columns_come_go_and_change(
    spark: SparkSession, lake: Lake, database: str, table: Callable[[str], str]
) -> None:
    name = table("people")
    spark.sql(f"CREATE TABLE {name} (id INT, name STRING, age SMALLINT)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'Ann', 9), (2, 'Bob', 10), (3, 'Cid', 11)")
    spark.sql(
        f"ALTER TABLE {name} ADD COLUMNS (email STRING COMMENT 'how to reach' AFTER name, first DATE FIRST)"
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN name TO called")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN age TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN age COMMENT 'in years'")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN id AFTER age")
    assert spark.table(name).columns == ["first", "called", "email", "age", "id"]
    spark.sql(f"INSERT INTO {name} VALUES (DATE'2026-01-01', 'Dan', 'd@x', {2**40}, 4)")
    expected = [(None, "Bob", None, 10, 2), (None, "Cid", None, 11, 3)]
    assert rows(spark, f"SELECT * FROM {name} WHERE age > 9 AND age < 100 ORDER BY id") == expected
    assert rows(spark, f"SELECT id FROM {name} WHERE email IS NULL ORDER BY id") == [(1,), (2,), (3,)]
    assert rows(spark, f"SELECT id FROM {name} WHERE age = {2**40}") == [(4,)]
    described = {row["col_name"]: row for row in spark.sql(f"DESCRIBE {name}").collect()}
    assert described["age"]["comment"] == "in years"
    assert described["email"]["comment"] == "how to reach"
    by_python = lake.catalog.load_table(f"{database}.people").read().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in by_python] == rows(spark, f"SELECT * FROM {name} ORDER BY id")
    spark.sql(f"ALTER TABLE {name} DROP COLUMNS (called)")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN IF EXISTS nothing")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN called STRING")
    assert rows(spark, f"SELECT DISTINCT called FROM {name}") == [(None,)]
    assert rows(spark, f"SELECT name, age FROM {name} VERSION AS OF 1 ORDER BY id")[0] == ("Ann", 9)


def test_key_tables_keep_their_rows_under_a_new_key_name(
    spark: SparkSession, table: Callable[[str], str]
) -> None:
    name = table("keyed")
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING, n INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 2)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO number")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra STRING")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'c', 20, 'x'), (3, 'd', 30, 'y')")
    assert rows(spark, f"SELECT * FROM {name} ORDER BY number") == [
        (1, "a", 1, None),
        (2, "c", 20, "x"),
        (3, "d", 30, "y"),
    ]
    spark.sql(f"UPDATE {name} SET v = 'z' WHERE number = 1")
    spark.sql(f"DELETE FROM {name} WHERE number = 3")
    spark.sql(f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}')")
    assert rows(spark, f"SELECT number, v FROM {name} WHERE n >= 1 ORDER BY number") == [(1, "z"), (2, "c")]
    with pytest.raises(AnalysisException, match="part of the primary key"):
        spark.sql(f"ALTER TABLE {name} DROP COLUMN number")


def test_columns_inside_columns_change(
    spark: SparkSession, lake: Lake, database: str, table: Callable[[str], str]
) -> None:
    name = table("nested")
    spark.sql(
        f"CREATE TABLE {name} (id INT, home STRUCT<city: STRING, zip: INT>, "
        "list ARRAY<STRUCT<a: INT, b: STRING>>, map MAP<STRING, STRUCT<a: INT, b: STRING>>)"
    )
    struct = "named_struct('a', 1, 'b', 'x')"
    spark.sql(
        f"INSERT INTO {name} VALUES (1, named_struct('city', 'Rome', 'zip', 5), array({struct}, null), "
        f"map('k', {struct})), (2, null, null, null)"
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN home.city TO town")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN home.zip")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN home.zip STRING FIRST")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN list.element.c INT FIRST")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN list.element.a TO b2")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN map.value.a TYPE BIGINT")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN map.value.b TO text")
    spark.sql(
        f"INSERT INTO {name} SELECT 3, named_struct('zip', 'z', 'town', 'Oslo'), "
        "array(named_struct('c', 9, 'b2', 8, 'b', 'y')), map('l', named_struct('a', 7L, 'text', 'z'))"
    )
    by_python = lake.catalog.load_table(f"{database}.nested").read().sort_by("id").to_pylist()
    found = [row.asDict(recursive=True) for row in spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()]
    assert [{**row, "map": row["map"] and list(row["map"].items())} for row in found] == by_python
    assert found[0]["home"] == {"zip": None, "town": "Rome"}
    assert found[0]["list"] == [{"c": None, "b2": 1, "b": "x"}, None]
    assert found[0]["map"] == {"k": {"a": 1, "text": "x"}}
    assert rows(spark, f"SELECT id FROM {name} WHERE home.town = 'Rome'") == [(1,)]
    assert rows(spark, f"SELECT home.zip, list.b2 FROM {name} ORDER BY id")[0] == (None, [1, None])


def test_an_encrypted_column_stays_encrypted_under_its_new_name(
    spark: SparkSession, lake: Lake, database: str, table: Callable[[str], str]
) -> None:
    name = table("secret")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt'='pii:ssn')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'SECRET-A')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN ssn TO social")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'SECRET-B')")
    assert rows(spark, f"SELECT social FROM {name} ORDER BY id") == [("SECRET-A",), ("SECRET-B",)]
    location = lake.catalog.load_table(f"{database}.secret").location
    for path in Path(location).rglob("*"):
        assert not (path.is_file() and b"SECRET" in path.read_bytes())


def test_properties_and_comments(spark: SparkSession, table: Callable[[str], str]) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT)")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('target-file-size'='64 mb')")
    spark.sql(f"COMMENT ON TABLE {name} IS 'some numbers'")
    shown = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    assert shown["target-file-size"] == "64 mb"
    described = {
        row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()
    }
    assert described["Comment"] == "some numbers"
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('target-file-size')")
    shown = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    assert "target-file-size" not in shown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("SET TBLPROPERTIES ('targetfilesize'='1')", "did you mean 'target-file-size'"),
        ("SET TBLPROPERTIES ('target-file-size'='big')", "128 mb"),
        ("SET TBLPROPERTIES ('orc.encrypt'='pii:nam')", "did you mean 'name'"),
        ("SET TBLPROPERTIES ('bucket'='4')", "bucket"),
        ("DROP COLUMN day", "partition column"),
        ("RENAME COLUMN day TO date", "partition column"),
        ("ADD COLUMN x INT NOT NULL", "NOT NULL"),
        ("ADD COLUMN x INT DEFAULT 5", "DEFAULT"),
        ("ALTER COLUMN name TYPE INT", ""),
    ],
)
def test_what_is_refused_leaves_the_table_as_it_was(
    spark: SparkSession, table: Callable[[str], str], change: str, words: str
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, name STRING, day DATE) PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', DATE'2026-01-01')")
    before = spark.table(name).schema
    with pytest.raises(Exception, match=words or None):
        spark.sql(f"ALTER TABLE {name} {change}")
    assert spark.table(name).schema == before
