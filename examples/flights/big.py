"""The comparison with a dimension of millions of rows: the same flights, each with a bag to look up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from pyspark.sql.streaming import DataStreamWriter

from flights.data import release
from flights.story import Big, Story
from flights.stream import Watch, read_months, seconds_of
from lockgate import Lake
from lockgate.lookup import status

ROWS = 5_000_000
COLUMNS = ("owner", "weight", "pieces", "checked_in", "fee", "priority")


def make_bags(lake: Lake, rows: int, folder: Path) -> None:
    """Make the dimension twice: as a table of the lake with a primary key and as plain Parquet for Spark."""
    bags = lake.spark.range(0, rows, numPartitions=2).select(
        F.col("id").alias("bag_id"),
        F.concat(F.lit("owner "), F.sha1(F.col("id").cast("string")).substr(1, 12)).alias("owner"),
        (F.col("id") % 230 / 10 + 1).alias("weight"),
        (F.col("id") % 3 + 1).cast("int").alias("pieces"),
        F.timestamp_seconds(F.lit(1_356_998_400) + F.col("id") % 31_536_000).alias("checked_in"),
        (F.col("id") % 9000 / 100).cast("decimal(10,2)").alias("fee"),
        (F.col("id") % 17 == 0).alias("priority"),
    )
    lake.sql(
        """CREATE TABLE lake.flights.bags (bag_id BIGINT NOT NULL, owner STRING, weight DOUBLE, pieces INT,
        checked_in TIMESTAMP, fee DECIMAL(10,2), priority BOOLEAN)
        TBLPROPERTIES ('primary-key'='bag_id', 'bucket'='4')"""
    )
    bags.writeTo("lake.flights.bags").append()
    bags.write.parquet(str(folder / "bags"))


def with_bags(flights: DataFrame, rows: int) -> DataFrame:
    """Give each flight the number of a bag, spread evenly over all of them."""
    return flights.select("flight_id", "month", F.pmod(F.xxhash64("flight_id"), F.lit(rows)).alias("bag_id"))


def run(lake: Lake, staged: Sequence[Path], folder: Path, story: Story, rows: int = ROWS) -> None:
    """Stream the year against the large dimension through both joins, and check that they agree."""
    print(f"  making a dimension of {rows:,} rows, twice")
    make_bags(lake, rows, folder)
    spark = lake.spark
    ours = lake.lookup_join(
        with_bags(read_months(spark, staged, folder / "in-lookup"), rows),
        "flights.bags",
        on="bag_id",
        select=list(COLUMNS),
        options={"lookup.cache-dir": str(folder / "cache")},
    )
    lookup_seconds = time_batches(ours, staged, folder, "lookup")
    build = status("lake.flights.bags").build_seconds
    static = spark.read.parquet(str(folder / "bags")).select("bag_id", *COLUMNS)
    theirs = with_bags(read_months(spark, staged, folder / "in-spark"), rows).join(static, "bag_id", "left")
    spark_seconds = time_batches(theirs, staged, folder, "spark")
    # The first batch also waits for the cache to be built, which is told apart.
    story.big = Big(rows, story.flights // len(staged), build, lookup_seconds[1:], spark_seconds[1:])
    written = [spark.read.parquet(str(folder / f"out-{name}")) for name in ("lookup", "spark")]
    left, right = (frame.select("flight_id", "month", "bag_id", *COLUMNS) for frame in written)
    same = left.exceptAll(right).isEmpty() and left.count() == right.count() == story.flights
    story.check("both joins with the large dimension agree", same, f"{story.flights:,} rows")
    print(f"  median batch {story.big.speed_up:.1f} times faster; the cache was built in {build:.1f} s")


def time_batches(joined: DataFrame, staged: Sequence[Path], folder: Path, name: str) -> list[float]:
    """Stream all months into Parquet and return the seconds of each batch."""
    seconds: list[float] = []
    writer: DataStreamWriter = joined.writeStream.queryName(f"bags_{name}").format("parquet")
    query = (
        writer.option("path", str(folder / f"out-{name}"))
        .option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    watch = Watch(query, lambda _, progress: seconds.append(seconds_of(progress)))
    try:
        for count, path in enumerate(staged):
            release(path, folder / f"in-{name}")
            watch.until(count + 1)
    finally:
        query.stop()
    return seconds
