#!/usr/bin/env python3
"""The main figures: streams with and without a lookup, scans through the connector, building and decrypting.

Each is one JSON line on standard output. Takes about three minutes on two cores.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import lookup_build
import orc_read_ratio
from harness import describe_machine, emit, note
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from sessions import open_lake
from store.scans import aggregate, compare, make_facts, point

from lockgate import Lake
from lockgate.lookup import close_all

BENCH = "main"
DIMENSION_ROWS = 1_000_000
BATCH_ROWS, BATCHES = 100_000, 10
SCAN_ROWS, SCAN_FILES = 4_000_000, 200
COLUMNS = ("name", "size", "price", "weight")


def main() -> int:
    """Measure everything."""
    describe_machine()
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-"))
    try:
        lake = open_lake(folder)
        scans(lake)
        streams(lake, folder)
        close_all()
        lake.spark.stop()
        lookup_build.main()
        orc_read_ratio.main()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def scans(lake: Lake) -> None:
    """Time queries through the connector and through `spark.read.orc`, on the same files."""
    facts = make_facts(lake, SCAN_ROWS, SCAN_FILES)
    compare(BENCH, facts, {"scan_full_ratio": aggregate, "scan_point_ratio": point(facts.middle)})


def streams(lake: Lake, folder: Path) -> None:
    """Stream batches through a lookup join, through Spark's own join, and through no join, into nothing."""
    note(f"streams: {BATCHES} batches of {BATCH_ROWS:,} rows, a dimension of {DIMENSION_ROWS:,}")
    spark = lake.spark
    dimension = spark.range(0, DIMENSION_ROWS, numPartitions=2).select(
        "id",
        F.sha1(F.col("id").cast("string")).substr(1, 12).alias("name"),
        (F.col("id") % 71).cast("int").alias("size"),
        (F.col("id") % 8999 / 100).cast("decimal(10,2)").alias("price"),
        (F.col("id") % 100 / 7).alias("weight"),
    )
    lake.sql(
        "CREATE TABLE lake.b.dimension (id BIGINT NOT NULL, name STRING, size INT, "
        "price DECIMAL(10,2), weight DOUBLE) TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    )
    dimension.writeTo("lake.b.dimension").append()
    dimension.write.orc(str(folder / "dimension"))
    source = folder / "source"
    keys = F.pmod(F.xxhash64("row"), F.lit(DIMENSION_ROWS)).alias("id")
    numbered = spark.range(0, BATCH_ROWS * BATCHES, numPartitions=BATCHES).withColumnRenamed("id", "row")
    numbered.select("row", keys, (F.col("row") % 97).cast("int").alias("amount")).write.parquet(str(source))

    def read() -> DataFrame:
        reader = spark.readStream.schema("row BIGINT, id BIGINT, amount INT").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(source))

    static = spark.read.orc(str(folder / "dimension")).select("id", *COLUMNS)
    cache = {"lookup.cache-dir": str(folder / "cache")}
    kinds = {
        "lookup": lambda: lake.lookup_join(
            read(), "b.dimension", on="id", select=list(COLUMNS), options=cache
        ),
        "spark": lambda: read().join(static, "id", "left"),
        "none": read,
    }
    rates = {name: batch_rate(spark, make(), folder / f"checkpoint-{name}") for name, make in kinds.items()}
    spark_text = f"Spark's stream-static join: {rates['spark']:.0f} rows/s"
    emit(BENCH, "stream_rows_per_s", rates["lookup"], "rows/s", spark_text)
    emit(BENCH, "stream_no_join_rows_per_s", rates["none"], "rows/s", None)


def batch_rate(spark: SparkSession, stream: DataFrame, checkpoint: Path) -> float:
    """Rows a second of the median batch; the first two, which warm up and build caches, are left out."""
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    while len(done := [one for one in query.recentProgress if one.numInputRows]) < BATCHES:
        time.sleep(0.05)
    rates = [one.numInputRows / one.durationMs["triggerExecution"] * 1000 for one in done[2:]]
    return median(rates)


if __name__ == "__main__":
    sys.exit(main())
