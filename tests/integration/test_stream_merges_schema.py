"""Streams that bring new columns and types: with `write.merge-schema` the table gets them too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from stream_queries import source_of_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[int, int], DataFrame]:
    return source_of_files(spark, tmp_path / "in")


def run(frame: DataFrame, table: str, checkpoint: Path, merges: str = "true") -> Any:
    query = (
        frame.writeStream.option("checkpointLocation", str(checkpoint))
        .option("write.merge-schema", merges)
        .trigger(availableNow=True)
        .toTable(table)
    )
    query.awaitTermination()
    return query


def test_columns_come_and_types_widen(
    spark: SparkSession, table: Named, source: Callable[[int, int], DataFrame], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, port INT, host STRING)")
    run(source(0, 2).selectExpr("id", "CAST(id AS INT) port", "'a' host"), name, tmp_path / "one")
    # A new version of the program: a wider type, a new column, and no host.
    second = source(2, 4).selectExpr("id + 4294967296 port", "id", "concat('c', id) container")
    run(second, name, tmp_path / "two")
    # And one that still has the old type.
    third = source(4, 5).selectExpr("CAST(id AS SHORT) id", "CAST(7 AS INT) PORT")
    run(third.where("id = 4"), name, tmp_path / "three")
    assert spark.table(name).schema.simpleString() == (
        "struct<id:bigint,port:bigint,host:string,container:string>"
    )
    rows = spark.sql(f"SELECT * FROM {name} WHERE id >= 2 ORDER BY id, port").collect()
    wide = 2**32
    assert [tuple(row) for row in rows] == [
        (2, wide + 2, None, "c2"),
        (3, wide + 3, None, "c3"),
        (4, 7, None, None),
    ]
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE host = 'a'").collect() == [(2,)]


def test_values_of_another_type_become_history(
    spark: SparkSession,
    table: Named,
    source: Callable[[int, int], DataFrame],
    tmp_path: Path,
    lake: Lake,
    database: str,
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, port INT)")
    run(source(0, 1).selectExpr("id", "80 port"), name, tmp_path / "one")
    texts = source(1, 2).selectExpr("id", "'https' port")
    with pytest.raises(StreamingQueryException, match="on_type_change"):
        run(texts, name, tmp_path / "two")
    version = lake.catalog.load_table(f"{database}.t").schema.id
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('schema.on-type-change' = 'history')")
    old = f"port_v{version + 1}"
    run(texts, name, tmp_path / "two")
    assert spark.sql(f"SELECT id, port, {old} FROM {name} ORDER BY id, port").collect() == [
        (0, None, 80),
        (0, "https", None),
        (1, "https", None),
    ]
    # A restart merges no more.
    run(source(2, 3).selectExpr("id", "'ssh' port"), name, tmp_path / "two")
    assert lake.catalog.load_table(f"{database}.t").schema.id == version + 2
    assert spark.sql(f"SELECT count(*) FROM {name} WHERE port = 'ssh'").collect() == [(1,)]


@pytest.mark.parametrize(
    ("columns", "merges", "reason"),
    [
        (("id", "1 more"), "false", "no column 'more'"),
        (("id",), "false", "no column 'port'"),
        (("1 port",), "true", "id"),
        (("CAST(id AS STRING) id", "1 port"), "true", "finds or orders"),
        (("id", "1 port", "2 `POrt2`", "3 port2"), "true", "column 'port2' already"),
    ],
)
def test_what_cannot_be_merged_fails_the_query(
    spark: SparkSession,
    table: Named,
    source: Callable[[int, int], DataFrame],
    tmp_path: Path,
    columns: tuple[str, ...],
    merges: str,
    reason: str,
) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, port INT) "
        "TBLPROPERTIES ('primary-key' = 'id', 'schema.on-type-change' = 'history')"
    )
    with pytest.raises(Exception, match=reason):
        run(source(0, 1).selectExpr(*columns), name, tmp_path / "checkpoint", merges)
    assert spark.table(name).columns == ["id", "port"]


def test_batches_have_no_such_option(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    writer = spark.range(2).writeTo(name).option("write.merge-schema", "true")
    with pytest.raises(Exception, match=r"no option 'write\.merge-schema'"):
        writer.append()
