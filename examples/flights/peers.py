"""The same stream on Spark's own stream-static join, over plain copies of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from flights.data import FlightsData, release
from flights.lake import AIRPORTS, PLANES, REFITTED, SECRET, SNAPSHOTS, WEATHER
from flights.story import PeerBatch, Story
from flights.stream import NEW_MODEL, NEW_SEATS, WEATHER_KEY, Watch, read_months, seconds_of
from lockgate import Lake


def run(
    lake: Lake, data: FlightsData, staged: Sequence[Path], folder: Path, changed: Sequence[str], story: Story
) -> None:
    """Stream the year through Spark's joins into a table like `enriched`, with the same change after June."""
    spark = lake.spark
    write_copies(spark, data, folder)
    incoming = folder / "incoming"
    columns = [name for name in lake.table("flights.enriched").columns if name not in SNAPSHOTS]
    lake.sql(
        f"CREATE TABLE lake.flights.enriched_by_spark PARTITIONED BY (month) TBLPROPERTIES ({SECRET}) "
        f"AS SELECT {', '.join(columns)} FROM lake.flights.enriched LIMIT 0"
    )
    joined = enrich(spark, read_months(spark, staged, incoming), folder)
    query = (
        joined.select(*columns)
        .writeStream.queryName("enriched_by_spark")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .toTable("lake.flights.enriched_by_spark")
    )
    watch = Watch(
        query,
        lambda _, progress: story.peer.append(
            PeerBatch(progress.batchId, progress.numInputRows, seconds_of(progress))
        ),
    )
    half = story.updated_before_month - 1
    try:
        for path in staged[:half]:
            release(path, incoming)
        watch.until(half)
        append_changes(spark, data, changed, folder)
        for path in staged[half:]:
            release(path, incoming)
        watch.until(len(staged))
    finally:
        query.stop()


def write_copies(spark: SparkSession, data: FlightsData, folder: Path) -> None:
    """Write the dimensions as plain ORC, once, as they are before the change."""
    for name, table in (("planes", data.planes), ("airports", data.airports), ("weather", data.weather)):
        spark.createDataFrame(table).coalesce(1).write.orc(str(folder / name))


def enrich(spark: SparkSession, flights: DataFrame, folder: Path) -> DataFrame:
    """Join a stream or batch of flights with the plain copies; Spark chooses how."""
    planes, airports, weather = (
        spark.read.orc(str(folder / name)) for name in ("planes", "airports", "weather")
    )
    return plain_join(
        flights,
        planes.select("tailnum", *PLANES),
        airports.select("faa", *AIRPORTS),
        weather.select(*WEATHER_KEY, *WEATHER),
    )


def plain_join(flights: DataFrame, planes: DataFrame, airports: DataFrame, weather: DataFrame) -> DataFrame:
    """Spark's own left joins of flights with the three dimensions."""
    return (
        flights.join(planes, "tailnum", "left")
        .join(airports.withColumnRenamed("faa", "dest"), "dest", "left")
        .join(weather, list(WEATHER_KEY), "left")
    )


def append_changes(spark: SparkSession, data: FlightsData, changed: Sequence[str], folder: Path) -> None:
    """Append the new rows of the updated planes to the plain copy: all that a folder of files can take.

    To overwrite the folder would fail the running query, and a row in it cannot be deleted.
    """
    updated = data.planes.filter(pc.is_in(data.planes["tailnum"], pa.array(changed[:REFITTED])))
    for name, value in (("model", pa.scalar(NEW_MODEL)), ("seats", pa.scalar(NEW_SEATS, pa.int32()))):
        place = updated.column_names.index(name)
        updated = updated.set_column(place, updated.schema.field(name), pa.repeat(value, updated.num_rows))
    spark.createDataFrame(updated).coalesce(1).write.mode("append").orc(str(folder / "planes"))
