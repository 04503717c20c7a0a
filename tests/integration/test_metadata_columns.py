"""Columns that no schema names: where a row lies and when it was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Named = Callable[[str], str]
WHERE = "_FILE_PATH, _ROW_INDEX, _PARTITION, _BUCKET"


@pytest.fixture
def appended(spark: SparkSession, table: Named) -> str:
    """Two partitions of one file each."""
    name = table("a")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING, day DATE, part STRING) PARTITIONED BY (day, part)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'x', DATE '2024-02-29', 'a/b' FROM range(5)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'y', NULL, 'ü' FROM range(5, 8)")
    return name


def test_append_tables(spark: SparkSession, appended: str) -> None:
    rows = spark.sql(f"SELECT id, {WHERE} FROM {appended} ORDER BY id").collect()
    assert [row._PARTITION for row in rows] == ["day=2024-02-29/part=a%2Fb"] * 5 + ["day=null/part=ü"] * 3
    assert [row._ROW_INDEX for row in rows] == [0, 1, 2, 3, 4, 0, 1, 2]
    assert {row._BUCKET for row in rows} == {0}
    assert len({row._FILE_PATH for row in rows}) == 2
    path = rows[0]._FILE_PATH
    found = spark.sql(
        f"SELECT id FROM {appended} WHERE _FILE_PATH = '{path}' AND _ROW_INDEX >= 3 ORDER BY id"
    )
    assert [row.id for row in found.collect()] == [3, 4]
    counted = spark.sql(f"SELECT _PARTITION, max(_ROW_INDEX), count(*) FROM {appended} GROUP BY _PARTITION")
    assert sorted(tuple(row)[1:] for row in counted.collect()) == [(2, 3), (4, 5)]
    last = spark.sql(f"SELECT id FROM {appended} ORDER BY _ROW_INDEX DESC LIMIT 1")
    assert last.collect()[0].id == 4
    assert "_FILE_PATH" not in spark.table(appended).columns


def test_changes_chosen_by_them(spark: SparkSession, appended: str) -> None:
    spark.sql(f"DELETE FROM {appended} WHERE _ROW_INDEX = 1 AND _PARTITION = 'day=null/part=ü'")
    spark.sql(f"UPDATE {appended} SET v = 'changed' WHERE _ROW_INDEX = 0 AND day IS NOT NULL")
    rows = spark.sql(f"SELECT id, v FROM {appended} ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [
        (0, "changed"), (1, "x"), (2, "x"), (3, "x"), (4, "x"), (5, "y"), (7, "y")
    ]  # fmt: skip


def test_key_tables(spark: SparkSession, table: Named) -> None:
    name = table("k")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')")
    spark.sql(f"INSERT INTO {name} SELECT id, 'old' FROM range(10)")
    before = {
        row.id: tuple(row)
        for row in spark.sql(
            f"SELECT id, _FILE_PATH, _ROW_INDEX, _BUCKET, _SEQUENCE_NUMBER FROM {name}"
        ).collect()
    }
    assert {row[3] for row in before.values()} == {0, 1}
    spark.sql(f"INSERT INTO {name} SELECT id, 'new' FROM range(3)")
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    after = {
        row.id: tuple(row)
        for row in spark.sql(
            f"SELECT id, _FILE_PATH, _ROW_INDEX, _BUCKET, _SEQUENCE_NUMBER FROM {name}"
        ).collect()
    }
    assert sorted(after) == list(range(9))
    for key, row in after.items():
        newer = key < 3
        assert (row[1] != before[key][1]) is newer
        assert (row[4] > before[key][4]) is newer
        assert row[3] == before[key][3]
    assert all(after[key] == before[key] for key in range(3, 9))
    limit = max(row[4] for row in before.values())
    wanted = f"_SEQUENCE_NUMBER > {limit} OR _ROW_INDEX = {after[8][2]} AND _FILE_PATH = '{after[8][1]}'"
    found = {row.id for row in spark.sql(f"SELECT id FROM {name} WHERE {wanted}").collect()}
    assert found == {8, *(key for key, row in after.items() if row[4] > limit)}
    spark.sql(
        f"UPDATE {name} SET v = 'last' WHERE _ROW_INDEX = {after[8][2]} AND _FILE_PATH = '{after[8][1]}'"
    )
    spark.sql(f"DELETE FROM {name} WHERE _BUCKET = {after[4][3]} AND v <> 'last'")
    rows = {row.id: row.v for row in spark.table(name).collect()}
    kept = {key for key, row in after.items() if row[3] != after[4][3] or key == 8}
    assert rows == {key: "last" if key == 8 else "new" if key < 3 else "old" for key in kept}


def test_a_column_of_that_name_comes_first(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, _BUCKET STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'own')")
    assert [tuple(row) for row in spark.sql(f"SELECT _BUCKET, _PARTITION FROM {name}").collect()] == [
        ("own", "")
    ]


def test_row_numbers_choose_what_a_key_table_deletes(spark: SparkSession, table: Named) -> None:
    name = table("k")
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING, p INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '1')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'first', id % 2 FROM range(40)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'second', id % 2 FROM range(10, 20)")
    rows = {row.id: row for row in spark.sql(f"SELECT id, v, {WHERE} FROM {name}").collect()}
    assert {rows[key]._ROW_INDEX for key in range(10, 20)} == set(range(5))
    spark.sql(f"DELETE FROM {name} WHERE _ROW_INDEX = 3 AND v = 'second'")
    gone = {key for key, row in rows.items() if row._ROW_INDEX == 3 and row.v == "second"}
    path = rows[30]._FILE_PATH
    spark.sql(f"DELETE FROM {name} WHERE _ROW_INDEX >= 18 AND _FILE_PATH = '{path}'")
    gone |= {key for key, row in rows.items() if row._ROW_INDEX >= 18 and path == row._FILE_PATH}
    assert len(gone) == 4
    assert {row.id for row in spark.table(name).collect()} == rows.keys() - gone
    spark.sql(f"UPDATE {name} SET v = 'changed' WHERE _ROW_INDEX = 0 AND v = 'first'")
    changed = {row.id for row in spark.table(name).where("v = 'changed'").collect()}
    assert changed == {0, 1}


def test_row_numbers_where_filters_skip_rows(spark: SparkSession, table: Named) -> None:
    """Several stripes of several row groups each, of which filters leave single ones."""
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, even INT)")
    spark.conf.set("orc.stripe.row.count", "5000")
    spark.conf.set("orc.row.index.stride", "1000")
    try:
        spark.sql(f"INSERT INTO {name} SELECT id, id DIV 1000 % 2 FROM range(0, 20000, 1, 1)")
    finally:
        spark.conf.unset("orc.stripe.row.count")
        spark.conf.unset("orc.row.index.stride")
    for condition in (
        "id = 7",
        "id IN (999, 1000, 4999, 5000, 12345, 19999)",
        "id BETWEEN 4990 AND 5010 OR id > 19990",
        "even = 1",
        "even = 1 AND id > 6000",
        "_ROW_INDEX BETWEEN 4999 AND 5001",
        "id < 0",
    ):
        wanted = spark.sql(f"SELECT count(*) FROM {name} WHERE {condition.replace('_ROW_INDEX', 'id')}")
        found = spark.sql(f"SELECT count(*), count_if(_ROW_INDEX = id) FROM {name} WHERE {condition}")
        assert found.collect() == [(wanted.collect()[0][0],) * 2], condition
    by_task = f"{name} WITH (`source.split.driver-max-size` = '0')"
    frame = spark.sql(f"SELECT id, _ROW_INDEX FROM {by_task} WHERE id = 12345")
    assert [tuple(row) for row in frame.collect()] == [(12345, 12345)]
    plan: Any = frame._jdf.queryExecution().executedPlan()
    assert plan.collectLeaves().head().metrics().apply("numOutputRows").value() == 1000
