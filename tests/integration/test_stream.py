"""Streams written into tables: exactly once over restarts, upserts, and rows that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f
from stream_queries import source_of_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[int, int], DataFrame]:
    return source_of_files(spark, tmp_path / "in")


def run(frame: DataFrame, table: str, checkpoint: Path, mode: str = "append") -> Any:
    query = (
        frame.writeStream.outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .toTable(table)
    )
    query.awaitTermination()
    return query


def test_restarts_write_each_row_once(
    spark: SparkSession,
    table: Named,
    source: Callable[[int, int], DataFrame],
    tmp_path: Path,
    lake: Lake,
    database: str,
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, twice BIGINT)")
    source(0, 10)
    stream = source(10, 20).withColumn("twice", f.col("id") * 2)
    query = run(stream, name, tmp_path / "checkpoint")
    again = run(source(20, 30).withColumn("twice", f.col("id") * 2), name, tmp_path / "checkpoint")
    assert again.id == query.id
    assert spark.sql(f"SELECT count(*), count(DISTINCT id), sum(twice) FROM {name}").collect() == [
        (30, 30, 870)
    ]
    snapshots = lake.catalog.load_table(f"{database}.t").snapshots()
    assert [snapshot.commit_identifier for snapshot in snapshots] == [0, 1, 2]
    assert {snapshot.commit_user for snapshot in snapshots} == {query.id}


def test_an_epoch_that_was_committed_is_not_committed_again(
    spark: SparkSession,
    table: Named,
    source: Callable[[int, int], DataFrame],
    tmp_path: Path,
    lake: Lake,
    database: str,
) -> None:
    """A driver that dies between our commit and Spark's runs the epoch again."""
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    checkpoint = tmp_path / "checkpoint"
    run(source(0, 10), name, checkpoint)
    for entry in (checkpoint / "commits").iterdir():
        entry.unlink()
    run(source(10, 15), name, checkpoint)
    assert spark.sql(f"SELECT count(*), count(DISTINCT id) FROM {name}").collect() == [(15, 15)]
    stored = lake.catalog.load_table(f"{database}.t")
    live = {file.file_name for split in stored.scan().splits for file in split.files}
    assert {path.name for path in Path(stored.location).rglob("data-*")} == live


def test_columns_in_another_order(
    spark: SparkSession, table: Named, source: Callable[[int, int], DataFrame], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, text STRING)")
    stream = source(0, 3).select(f.concat(f.lit("t"), "id").alias("TEXT"), "id")
    run(stream, name, tmp_path / "checkpoint")
    assert sorted(map(tuple, spark.table(name).collect())) == [(0, "t0"), (1, "t1"), (2, "t2")]


def test_a_stream_upserts_rows_by_key(
    spark: SparkSession, table: Named, source: Callable[[int, int], DataFrame], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (k BIGINT, id BIGINT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '2')"
    )
    source(0, 10)
    stream = source(10, 20).select((f.col("id") % 5).alias("k"), "id")
    run(stream, name, tmp_path / "checkpoint")
    assert spark.sql(f"SELECT count(*), min(id) >= 10 FROM {name}").collect() == [(5, True)]
    counted = source(20, 25).groupBy((f.col("id") % 3).alias("k")).agg(f.count("*").alias("id"))
    other = table("counts")
    spark.sql(
        f"CREATE TABLE {other} (k BIGINT, id BIGINT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')"
    )
    run(counted, other, tmp_path / "counts", mode="update")
    assert sorted(map(tuple, spark.table(other).collect())) == [(0, 9), (1, 8), (2, 8)]


def test_complete_mode_replaces(
    spark: SparkSession, table: Named, source: Callable[[int, int], DataFrame], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (k BIGINT, n BIGINT)")
    source(0, 6)
    counted = source(6, 12).groupBy((f.col("id") % 3).alias("k")).agg(f.count("*").alias("n"))
    run(counted, name, tmp_path / "checkpoint", mode="complete")
    assert sorted(map(tuple, spark.table(name).collect())) == [(0, 4), (1, 4), (2, 4)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["id", "id AS extra"], "no column 'extra'"),
        (["CAST(id AS INT) AS id"], "cast it"),
        (["id AS idd"], "did you mean 'id'"),
    ],
)
def test_rows_that_do_not_fit(
    spark: SparkSession,
    table: Named,
    source: Callable[[int, int], DataFrame],
    tmp_path: Path,
    columns: list[str],
    message: str,
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT)")
    with pytest.raises(StreamingQueryException, match=message):
        run(source(0, 3).selectExpr(*columns), name, tmp_path / "checkpoint")
    assert spark.table(name).count() == 0


def test_null_in_a_key_stops_the_stream(
    spark: SparkSession, table: Named, source: Callable[[int, int], DataFrame], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    stream = source(0, 3).selectExpr("nullif(id, 1) AS id")
    with pytest.raises(StreamingQueryException, match="NOT NULL"):
        run(stream, name, tmp_path / "checkpoint")
    assert spark.table(name).count() == 0
