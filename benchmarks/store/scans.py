"""Scans and inserts through the connector next to Spark's own sources, on the same files and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import REPETITIONS, emit, interleaved, note, ratio
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from pyspark.sql.types import StructType

from lockgate import Lake

BENCH = "store"
COLUMNS = (
    "id BIGINT, part INT, name STRING, price DOUBLE, size INT, day DATE, "
    "amount DECIMAL(12,2), code STRING, at TIMESTAMP, weight DOUBLE"
)

Query = Callable[[DataFrame], object]


@dataclass(frozen=True)
class Facts:
    """A table sorted by `id`, whose files Spark's own source reads too; `middle` is one of the ids."""

    lake: Lake
    name: str
    folder: str
    middle: int
    schema: StructType
    format: str = "orc"

    def ours(self) -> DataFrame:
        """The rows, through the connector."""
        return self.lake.table(self.name)

    def plain(self) -> DataFrame:
        """The rows, by `spark.read.orc` or `spark.read.parquet`."""
        return self.lake.spark.read.schema(self.schema).format(self.format).load(self.folder)


def make_facts(lake: Lake, rows: int, files: int, kind: str = "orc") -> Facts:
    """Write `rows` rows of ten columns as `files` files of a format."""
    note(f"scan: {rows:,} rows in {files} {kind} files")
    name = "facts" if kind == "orc" else f"facts_{kind}"
    lake.sql(f"CREATE TABLE lake.b.{name} ({COLUMNS}) TBLPROPERTIES ('file.format' = '{kind}')")
    id_ = F.col("id")
    data = lake.spark.range(0, rows, numPartitions=files).select(
        "id",
        (id_ % 1000).cast("int").alias("part"),
        F.sha1(id_.cast("string")).substr(1, 12).alias("name"),
        (id_ % 8999 / 100).alias("price"),
        (id_ % 71).cast("int").alias("size"),
        F.date_add(F.lit("2013-01-01").cast("date"), (id_ % 365).cast("int")).alias("day"),
        (id_ % 99_991 / 100).cast("decimal(12,2)").alias("amount"),
        F.concat(F.lit("code-"), (id_ % 200).cast("string")).alias("code"),
        F.timestamp_micros(F.lit(1_400_000_000_000_000) + id_ * 1_000_003).alias("at"),
        (F.pmod(F.xxhash64("id"), F.lit(1_000_003)) / 7).alias("weight"),
    )
    data.writeTo(f"lake.b.{name}").append()
    location = lake.catalog.load_table(f"b.{name}").location.removeprefix("file://")
    schema = lake.table(f"b.{name}").schema
    return Facts(lake, f"b.{name}", f"{location}/bucket-0", int(rows * 0.785), schema, kind)


def aggregate(rows: DataFrame) -> object:
    """Two of ten columns; rounded, for sums of doubles differ in their last digits by the order of files."""
    return rows.agg(F.count("*"), F.round(F.sum("price"), 2), F.sum("size")).collect()


def everything(rows: DataFrame) -> object:
    """All columns of all rows, put nowhere."""
    rows.write.format("noop").mode("overwrite").save()
    return None


def point(at: int) -> Query:
    """One row."""
    return lambda rows: rows.where(f"id = {at}").collect()


def unprunable(rows: DataFrame) -> object:
    """A filter that every file, stripe and row group has rows for."""
    return rows.where("part = 77").agg(F.count("*"), F.sum("id"), F.max("name")).collect()


def compare(bench: str, facts: Facts, queries: Mapping[str, Query], repetitions: int = REPETITIONS) -> None:
    """Print for each query how long it takes through the connector, as a ratio to Spark's own source."""
    for metric, query in queries.items():
        if query(facts.ours()) != query(facts.plain()):
            raise AssertionError(f"{metric}: the two sources answer differently")
        times = interleaved(
            {"ours": lambda q=query: q(facts.ours()), "plain": lambda q=query: q(facts.plain())}, repetitions
        )
        baseline = f"spark.read.{facts.format} of the same files: {median(times['plain']):.3f} s"
        if metric.endswith("_point_ratio"):
            # The time of an empty query, which no source can reduce.
            baseline += f"; a query that reads nothing: {_nothing(facts.lake, repetitions):.3f} s"
        emit(bench, metric, ratio(times["ours"], times["plain"]), "ratio", baseline)


def _nothing(lake: Lake, repetitions: int) -> float:
    query = point(-1)
    return median(interleaved({"nothing": lambda: query(lake.spark.range(1))}, repetitions)["nothing"])


def scan_ratios(facts: Facts, repetitions: int) -> None:
    """Compare the scans that the store is judged by."""
    if aggregate(facts.ours()) != aggregate(facts.plain()):
        raise AssertionError("the two sources hold different rows")
    queries: dict[str, Query] = (
        {
            "scan_full_ratio": everything,
            "scan_2of10_ratio": aggregate,
            "scan_noprune_ratio": unprunable,
            "scan_point_ratio": point(facts.middle),
        }
        if facts.format == "orc"
        else {
            f"{facts.format}_scan_ratio": everything,
            f"{facts.format}_2of10_ratio": aggregate,
            f"{facts.format}_noprune_ratio": unprunable,
            f"{facts.format}_point_ratio": point(facts.middle),
        }
    )
    compare(BENCH, facts, queries, repetitions)


def insert_ratio(facts: Facts, folder: Path, repetitions: int) -> None:
    """Compare how fast rows are written: into a new table, and by `df.write.orc`."""
    lake, rows = facts.lake, facts.plain()

    def ours() -> None:
        lake.sql("DROP TABLE IF EXISTS lake.b.copy")
        lake.sql(f"CREATE TABLE lake.b.copy ({COLUMNS})")
        rows.writeTo("lake.b.copy").append()

    def plain() -> None:
        # The codec is the table's.
        rows.write.mode("overwrite").option("compression", "zstd").orc(str(folder / "copy"))

    times = interleaved({"ours": ours, "plain": plain}, repetitions)
    if aggregate(lake.table("b.copy")) != aggregate(rows):
        raise AssertionError("the copy holds other rows")
    lake.sql("DROP TABLE lake.b.copy")
    baseline = f"df.write.orc of the same rows: {median(times['plain']):.3f} s"
    emit(BENCH, "insert_ratio", ratio(times["plain"], times["ours"]), "speed", baseline)
