"""Tables with all kinds of the index database, and events for them whose keys Spark's tasks collect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from lockgate.framework.index.database.maintenance import collected
from lockgate.framework.index.database.segment_collector import SegmentCollector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

ALL = (
    "id BIGINT, host STRING, text STRING, day INT, flag BOOLEAN, tiny TINYINT, small SMALLINT, "
    "ratio FLOAT, size DOUBLE, price DECIMAL(12, 3), raw BINARY, born DATE, at TIMESTAMP, wall TIMESTAMP_NTZ"
)
VALUES = "id,host,flag,tiny,small,ratio,size,price,raw,born,at,wall"
RATIOS = (
    "CASE id % 5 WHEN 0 THEN float('NaN') WHEN 1 THEN float('-0.0') "
    "WHEN 2 THEN float(0) ELSE float(id / 7) END"
)
SIZES = (
    "CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-0.0') "
    "WHEN 2 THEN double('-Infinity') ELSE id / 3 END"
)
TEXTS = ("Run Tool7.exe /Quiet", "İstanbul ſet K", "", "投标 文件 10", "Ünï çødé", "deadbeef01 42", "x" * 70)
OPTIONS = {
    "index.values.columns": VALUES,
    "index.bloom.columns": "day,ratio,host,price,at",
    "index.ngrams.columns": "text,host",
    "index.words.columns": "text",
    "index.block-rows": "300",
}


def create(spark: SparkSession, name: str, columns: str, options: dict[str, str], more: str = "") -> None:
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    spark.sql(f"CREATE TABLE {name} ({columns}) {more} TBLPROPERTIES ({texts})")


def events(spark: SparkSession, first: int, count: int, tasks: int) -> Any:
    """Rows with nulls, zeros of both signs, NaN, old times, and texts of many scripts."""
    chosen = f.element_at(f.array(*map(f.lit, TEXTS)), (f.col("id") % len(TEXTS) + 1).cast("int"))
    return spark.range(first, first + count, 1, tasks).select(
        "id",
        f.when(f.col("id") % 11 != 0, f.concat(f.lit("host-"), f.col("id") % 97)).alias("host"),
        f.when(f.col("id") % 13 != 0, f.concat_ws(" ", chosen, f.col("id") % 50)).alias("text"),
        (f.col("id") % 3).cast("int").alias("day"),
        (f.col("id") % 2 == 0).alias("flag"),
        (f.col("id") % 256 - 128).cast("tinyint").alias("tiny"),
        (f.col("id") * 7 % 65536 - 32768).cast("smallint").alias("small"),
        f.expr(RATIOS).alias("ratio"),
        f.expr(SIZES).alias("size"),
        (f.col("id") * 1.125 - 200).cast("decimal(12, 3)").alias("price"),
        f.when(f.col("id") % 7 != 0, f.unhex(f.md5(f.col("id").cast("string")))).alias("raw"),
        f.expr("date_add(DATE'1960-01-01', CAST(id % 9000 AS INT))").alias("born"),
        f.expr("timestamp_micros(-9000000000 + id * 1000000)").alias("at"),
        f.expr("CAST(timestamp_micros(1700000000123456 + id * 1001) AS TIMESTAMP_NTZ)").alias("wall"),
    )


def check_segments(lake: Lake, name: str, made: dict[str, bytes]) -> None:
    """What tasks told is what reading the files again makes, byte for byte."""
    table = lake.catalog.load_table(name.removeprefix("lake."))
    live = table.manifests.live_files(table.latest_snapshot())
    assert live
    for entry in live:
        assert made[entry.file.file_name] == collected(table, entry, SegmentCollector(table))
    there = {path.name for path in Path(table.location, "index").iterdir()}
    assert not {name for name in there if name.startswith("keys-")}
