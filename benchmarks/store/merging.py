"""How fast Spark reads a key table whose files overlap."""

from __future__ import annotations

from statistics import median

from harness import emit, note, timed
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from lockgate import Lake
from store.scans import BENCH


def merge_read(lake: Lake, rows: int, repetitions: int) -> None:
    """Print how many rows a second go into the merge of two runs; the second replaces every other row."""
    keys = rows // 4
    note(f"merge: {keys:,} keys, written and every other one written again, in 2 buckets")
    lake.sql(
        "CREATE TABLE lake.b.merged (id BIGINT NOT NULL, name STRING, price DOUBLE, size INT) "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    )
    for run, step in enumerate((1, 2)):
        data = lake.spark.range(0, keys, step).select(
            "id",
            F.sha1(F.col("id").cast("string")).substr(1, 12).alias("name"),
            (F.col("id") % 8999 + run).cast("double").alias("price"),
            (F.col("id") % 71).cast("int").alias("size"),
        )
        data.writeTo("lake.b.merged").append()
    plan = lake.catalog.load_table("b.merged").scan()
    if not all(split.merge for split in plan.splits):
        raise AssertionError("there is nothing to merge")

    def read() -> list[object]:
        aggregates = F.count("*"), F.sum("price"), F.sum("size"), F.max("name")
        return list(lake.table("b.merged").agg(*aggregates).collect()[0])

    replaced = (keys + 1) // 2
    prices = sum(key % 8999 for key in range(keys)) + replaced
    if read()[:2] != [keys, float(prices)]:
        raise AssertionError("the merge answers wrongly")
    seconds = [timed(read) for _ in range(repetitions)]
    emit(BENCH, "merge_read_rows_per_s", plan.row_count / median(seconds), "rows/s", "the goal: 1,500,000")
