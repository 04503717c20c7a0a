"""How fast Spark reads a key table whose files overlap."""

from __future__ import annotations

from statistics import median

from harness import emit, note, timed
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from lockgate import Lake
from store.scans import BENCH

ENGINES = {
    "partial_update": {"merge-engine": "partial-update"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.name.aggregate-function": "last_non_null_value",
        "fields.price.aggregate-function": "sum",
        "fields.size.aggregate-function": "max",
    },
}


def engine_reads(lake: Lake, rows: int, repetitions: int) -> None:
    """Print how many rows a second go into the merge of two runs of the same keys, by engine."""
    keys = rows // 4
    note(f"engines: {keys:,} keys, written twice, in 2 buckets")
    for engine, options in ENGINES.items():
        _written_twice(lake, f"lake.b.{engine}", keys, options)
    seconds: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _ in range(repetitions):
        for engine, taken in seconds.items():
            taken.append(timed(lambda engine=engine: _sums(lake, engine)))
    for engine, taken in seconds.items():
        emit(BENCH, f"{engine}_merge_rows_per_s", 2 * keys / median(taken), "rows/s", "the goal: 2,000,000")


def _written_twice(lake: Lake, table: str, keys: int, options: dict[str, str]) -> None:
    """Write each key twice: a name only, then a price and a size."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    lake.sql(
        f"CREATE TABLE {table} (id BIGINT NOT NULL, name STRING, price DOUBLE, size INT) "
        f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2', {listed})"
    )
    name = F.sha1(F.col("id").cast("string")).substr(1, 12)
    price, size = (F.col("id") % 8999).cast("double"), (F.col("id") % 71).cast("int")
    for values in ((name, F.lit(None).cast("double"), F.lit(None).cast("int")), (F.lit(None), price, size)):
        columns = [
            value.cast(kind).alias(column)
            for value, column, kind in zip(
                values, ("name", "price", "size"), ("string", "double", "int"), strict=True
            )
        ]
        lake.spark.range(0, keys).select("id", *columns).writeTo(table).append()
    plan = lake.catalog.load_table(table.removeprefix("lake.")).scan()
    if not all(split.merge for split in plan.splits) or plan.row_count != 2 * keys:
        raise AssertionError("there is nothing to merge")
    if _sums(lake, table.removeprefix("lake.b."))[:2] != [
        keys,
        float(sum(key % 8999 for key in range(keys))),
    ]:
        raise AssertionError("the merge answers wrongly")


def _sums(lake: Lake, engine: str) -> list[object]:
    aggregates = F.count("*"), F.sum("price"), F.sum("size"), F.max("name")
    return list(lake.table(f"b.{engine}").agg(*aggregates).collect()[0])


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
