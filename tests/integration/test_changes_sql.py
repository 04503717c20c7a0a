"""`SELECT ... CHANGES FROM VERSION ...`: Spark's own feed of changes, of every kind of table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from spark_version import SPARK
from stream_queries import view_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

pytestmark = pytest.mark.skipif(SPARK < (4, 2), reason="CHANGES is SQL of Spark 4.2 and newer")

Named = Callable[[str], str]
META = "_change_type, _commit_version"


def changes(spark: SparkSession, name: str, ends: str, more: str = "") -> list[tuple[Any, ...]]:
    found = spark.sql(f"SELECT {META}, id, v FROM {name} CHANGES FROM {ends} {more}").collect()
    return sorted(tuple(row) for row in found)


def test_an_append_table(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    for number in range(1, 4):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'a')")
    assert changes(spark, name, "VERSION 2 TO VERSION 3") == [("insert", 2, 2, "a"), ("insert", 3, 3, "a")]
    assert changes(spark, name, "VERSION 3") == [("insert", 3, 3, "a")]
    seconds = spark.sql(
        f"SELECT count(*) FROM {name} CHANGES FROM VERSION 1 WHERE _commit_timestamp > current_timestamp() - "
        "INTERVAL 1 HOUR AND _commit_timestamp <= current_timestamp()"
    )
    assert seconds.collect() == [(3,)]
    read = spark.read.option("startingVersion", 1).option("endingVersion", 1).changes(name)
    assert read.select("id").collect() == [(1,)]
    with pytest.raises(Exception, match="has no snapshot 9 yet"):
        changes(spark, name, "VERSION 1 TO VERSION 9")
    spark.sql(f"UPDATE {name} SET v = 'b' WHERE id = 1")
    with pytest.raises(Exception, match=r"snapshot 4 of table .* replaced rows that have no key"):
        changes(spark, name, "VERSION 1 TO VERSION 4")


def test_updates_and_deletes_of_a_key_table_are_paired(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    spark.sql(f"INSERT OVERWRITE {name} VALUES (3, 'd')")
    inserted = [("insert", 1, number, v) for number, v in ((1, "a"), (2, "b"), (3, "c"))]
    assert changes(spark, name, "VERSION 1 TO VERSION 3") == sorted(
        [*inserted, ("delete", 2, 1, "a"), ("insert", 2, 1, "x"), ("delete", 3, 2, "b")]
    )
    updates = "WITH (deduplicationMode = 'dropCarryovers', computeUpdates = 'true')"
    assert changes(spark, name, "VERSION 2 TO VERSION 4", updates) == sorted(
        [
            *[("update_preimage", 2, 1, "a"), ("update_postimage", 2, 1, "x"), ("delete", 3, 2, "b")],
            *[("delete", 4, 1, "x"), ("update_preimage", 4, 3, "c"), ("update_postimage", 4, 3, "d")],
        ]
    )


def test_a_changelog_is_read_as_it_is(spark: SparkSession, table: Named, lake: Lake) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', "
        "'bucket' = '2', 'changelog-producer' = 'lookup', 'orc.encrypt' = 'pii:v')"
    )
    for values in ("(1, 'a'), (2, 'b')", "(1, 'c'), (3, 'd')"):
        spark.sql(f"INSERT INTO {name} VALUES {values}")
        lake.call("compact", table=name.removeprefix("lake."))
    assert changes(spark, name, "VERSION 3 TO VERSION 4") == [
        ("insert", 4, 3, "d"),
        ("update_postimage", 4, 1, "c"),
        ("update_preimage", 4, 1, "a"),
    ]
    with pytest.raises(AnalysisException, match="system table"):
        spark.sql(f"SELECT * FROM {view_of(name, 'audit_log')} CHANGES FROM VERSION 1").collect()
