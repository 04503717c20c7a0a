"""The demo checks itself: what the lookup joins wrote against Spark's joins with the recorded snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from flights.data import FlightsData
from flights.lake import AIRPORTS, PLANES, REFITTED, SNAPSHOTS, WEATHER
from flights.peers import plain_join
from flights.story import Batch, Missed, Story
from flights.stream import DIMENSIONS, NEW_MODEL, WEATHER_KEY, enrich
from lockgate import Lake

Print = Mapping[object, tuple[int, int]]


def fingerprint(rows: DataFrame, by: str) -> Print:
    """For each value of `by`: how many rows, and the sum of a hash of every column's value or null.

    Equal for equal bags of rows, whatever their order.
    """
    names = sorted(rows.columns)
    # xxhash64 passes over nulls, so it is told where they are: (null, 'a') and ('a', null) must differ.
    nulls = F.concat(*(F.col(name).isNull().cast("int").cast("string") for name in names))
    total = F.sum(F.xxhash64(*names, nulls).cast("decimal(38,0)"))
    counted = rows.groupBy(by).agg(F.count("*").alias("rows"), total.alias("hashes")).collect()
    return {row[by]: (row["rows"], int(row["hashes"])) for row in counted}


def differences(actual: Print, expected: Print) -> list[object]:
    """The groups that differ or are on one side only, sorted."""
    return sorted(
        (group for group in {*actual, *expected} if actual.get(group) != expected.get(group)), key=str
    )


def as_of(lake: Lake, name: str, columns: Sequence[str], snapshots: Sequence[int]) -> DataFrame:
    """The rows of a dimension at each of `snapshots`, read without Spark, numbered by `<name>_snapshot`."""
    table = lake.catalog.load_table(f"flights.{name}")
    parts = []
    for snapshot in snapshots:
        rows = table.read(columns=list(columns), snapshot_id=snapshot)
        number = pa.repeat(pa.scalar(snapshot, pa.int64()), rows.num_rows)
        parts.append(rows.append_column(f"{name}_snapshot", number))
    return lake.spark.createDataFrame(pa.concat_tables(parts))


def expected_rows(lake: Lake, flights: DataFrame, batches: Sequence[Batch]) -> DataFrame:
    """What each batch must be: Spark's plain join with the dimensions as of the snapshots it recorded."""
    spark = lake.spark
    recorded = spark.createDataFrame(
        [(batch.month, *(batch.snapshots[name] for name in DIMENSIONS)) for batch in batches],
        f"month INT, {', '.join(f'{name} BIGINT' for name in SNAPSHOTS)}",
    )
    used = [sorted({batch.snapshots[name] for batch in batches}) for name in DIMENSIONS]
    planes = as_of(lake, "planes", ("tailnum", *PLANES), used[0])
    airports = as_of(lake, "airports", ("faa", *AIRPORTS), used[1]).withColumnRenamed("faa", "dest")
    weather = as_of(lake, "weather", (*WEATHER_KEY, *WEATHER), used[2])
    return (
        flights.join(F.broadcast(recorded), "month")
        .join(planes, ["tailnum", "planes_snapshot"], "left")
        .join(airports, ["dest", "airports_snapshot"], "left")
        .join(weather, [*WEATHER_KEY, "weather_snapshot"], "left")
    )


def check_batches(lake: Lake, data: FlightsData, staged: Sequence[Path], story: Story) -> None:
    """Check every batch against the snapshots it recorded, and that it recorded one of each dimension."""
    spark = lake.spark
    enriched = lake.table("flights.enriched")
    story.flights = data.flights.num_rows
    recorded = {
        row["month"]: tuple(row[f"{name}_all"] for name in SNAPSHOTS)
        for row in enriched.groupBy("month")
        .agg(*(F.collect_set(name).alias(f"{name}_all") for name in SNAPSHOTS))
        .collect()
    }
    pinned = {batch.month: tuple([batch.snapshots[name]] for name in DIMENSIONS) for batch in story.batches}
    story.check(
        "every batch used one snapshot of each dimension, the pinned one",
        recorded == pinned,
        f"{len(recorded)} months" if recorded == pinned else f"{recorded}, pinned {pinned}",
    )
    flights = spark.read.parquet(*(str(path) for path in staged))
    actual = fingerprint(enriched, "month")
    expected = fingerprint(expected_rows(lake, flights, story.batches).select(*enriched.columns), "month")
    different = differences(actual, expected)
    story.check(
        "every batch equals Spark's plain join AS OF its snapshots (counts and checksums)",
        not different,
        f"{len(actual)} months" if not different else f"different months: {different}",
    )
    written, wanted = sum(count for count, _ in actual.values()), data.flights.num_rows
    story.check_equal("rows written", written, wanted, f"{written:,} rows")
    distinct = enriched.select("flight_id").distinct().count()
    story.check_equal("every flight is there once", distinct, wanted, f"{distinct:,} different flights")


def check_change(lake: Lake, changed: Sequence[str], before: int, after: int, story: Story) -> None:
    """Check which flights show the change: none up to June, all later ones; and none in Spark's own join.

    `before` and `after` are the snapshots of planes around the change.
    """
    middle = story.updated_before_month
    used = [(batch.month, batch.snapshots["planes"]) for batch in story.batches]
    early = {snapshot for month, snapshot in used if month < middle}
    late = {snapshot for month, snapshot in used if month >= middle}
    found = f"snapshot {before} of planes"
    story.check_equal("batches up to June used the planes from before the change", early, {before}, found)
    story.check(
        "later batches used the changed planes",
        all(one >= after for one in late),
        f"snapshots {', '.join(map(str, sorted(late)))} of planes",
    )
    ours = _seen(lake.table("flights.enriched"), changed, middle)
    theirs = _seen(lake.table("flights.enriched_by_spark"), changed, middle)
    story.missed = Missed(ours["flights"], ours["shown"], theirs["shown"])
    story.check_equal("no earlier flight shows the change", ours["early"], 0, "no flight")
    shown, later = ours["shown"], ours["flights"]
    story.check_equal("later flights of changed planes that show it", shown, later, f"all {later:,}")


def _seen(enriched: DataFrame, changed: Sequence[str], middle: int) -> Mapping[str, int]:
    """Of the changed planes' flights, count the later, those that show the change, the earlier that do."""
    updated = F.col("tailnum").isin(list(changed[:REFITTED]))
    shows = F.when(updated, F.col("model").eqNullSafe(NEW_MODEL)).otherwise(F.col("seats").isNull())
    late = F.col("month") >= middle
    row = (
        enriched.where(F.col("tailnum").isin(list(changed)))
        .agg(
            F.count_if(late).alias("flights"),
            F.count_if(late & shows).alias("shown"),
            F.count_if(~late & shows).alias("early"),
        )
        .first()
    )
    assert row is not None
    return row.asDict()


def check_peer(lake: Lake, data: FlightsData, staged: Sequence[Path], story: Story) -> None:
    """Check that the comparison is fair: Spark's stream equals its own batch join with the original data."""
    spark = lake.spark
    written = lake.table("flights.enriched_by_spark")
    joined = plain_join(
        spark.read.parquet(*(str(path) for path in staged)),
        spark.createDataFrame(data.planes.select(["tailnum", *PLANES])),
        spark.createDataFrame(data.airports.select(["faa", *AIRPORTS])),
        spark.createDataFrame(data.weather.select([*WEATHER_KEY, *WEATHER])),
    )
    different = differences(
        fingerprint(written, "month"), fingerprint(joined.select(*written.columns), "month")
    )
    story.check(
        "Spark's own stream equals a join with the planes as they were when it started",
        not different,
        "12 months: it missed the change" if not different else f"different months: {different}",
    )


def check_several_matches(lake: Lake, data: FlightsData, cache: Path, story: Story) -> None:
    """Look up the doubled hours of the end of summer time: each has two rows of weather."""
    weather = data.weather.select(list(WEATHER_KEY))
    counts = weather.group_by(list(WEATHER_KEY)).aggregate([("hour", "count")])
    doubled = counts.filter(pc.greater(counts["hour_count"], 1)).select(list(WEATHER_KEY))
    probes = lake.spark.createDataFrame(doubled)
    found = lake.lookup_join(
        probes,
        "flights.weather",
        on=list(WEATHER_KEY),
        select=list(WEATHER),
        options={"lookup.cache-dir": str(cache)},
    )
    expected = data.weather.join(doubled, list(WEATHER_KEY), join_type="inner")
    names = (*WEATHER_KEY, *WEATHER)
    got = sorted(str(tuple(row)) for row in found.select(*names).collect())
    wanted = sorted(str(tuple(row.values())) for row in expected.select(list(names)).to_pylist())
    story.check(
        "a lookup with several matches gives every row",
        got == wanted and len(got) > doubled.num_rows,
        f"{doubled.num_rows} keys, {len(got)} rows" if got == wanted else f"{got}, expected {wanted}",
    )


def check_followed(lake: Lake, folder: Path, story: Story) -> None:
    """Check that a stream of the enriched table gives what each of its commits added, once."""
    enriched = lake.table("flights.enriched")
    batches: list[tuple[int, int]] = []

    def note(batch: DataFrame, number: int) -> None:
        found = batch.agg(F.count("*"), F.sum("flight_id")).first()
        if found is not None and found[0]:
            batches.append((found[0], found[1]))

    reader = lake.spark.readStream.option("scan.snapshot-id", "1")
    query = (
        reader.option("read.stream.maxSnapshotsPerTrigger", "1")
        .table("lake.flights.enriched")
        .writeStream.foreachBatch(note)
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    months = [
        (row[1], row[2])
        for row in enriched.groupBy("month").agg(F.count("*"), F.sum("flight_id")).sort("month").collect()
    ]
    story.check_equal(
        "a stream of the enriched flights reads each commit once", batches, months, f"{len(batches)} commits"
    )


def check_sql(lake: Lake, staged: Sequence[Path], cache: Path, story: Story) -> None:
    """Enrich the first month by a statement, and compare it with what the method of the lake gives."""
    lake.spark.read.parquet(str(staged[0])).createOrReplaceTempView("first_month")
    weather = " AND ".join(f"f.{column} = w.{column}" for column in WEATHER_KEY)
    clause = f"/*+ OPTIONS('lookup.cache-dir'='{cache}') */ FOR SYSTEM_TIME AS OF PROCTIME()"
    chosen = [
        f"{alias}.{name}"
        for alias, names in (("p", PLANES), ("a", AIRPORTS), ("w", WEATHER))
        for name in names
    ]
    by_statement = lake.sql(
        f"SELECT f.*, {', '.join(chosen)} FROM first_month AS f "
        f"LEFT JOIN lake.flights.planes {clause} AS p ON f.tailnum = p.tailnum "
        f"LEFT JOIN lake.flights.airports {clause} AS a ON f.dest = a.faa "
        f"LEFT JOIN lake.flights.weather {clause} AS w ON {weather}"
    )
    by_method = enrich(lake, lake.spark.table("first_month"), cache)
    prints = [fingerprint(rows.drop(*SNAPSHOTS), "month") for rows in (by_statement, by_method)]
    story.check(
        "lookup joins in SQL give what lake.lookup_join gives",
        prints[0] == prints[1] and bool(prints[0]),
        f"{sum(rows for rows, _ in prints[0].values()):,} flights" if prints[0] == prints[1] else str(prints),
    )


def sha256_of(text: str) -> str:
    """What the mask `sha256` shows of a text, as Apache ORC writes it: in hexadecimal capitals."""
    return hashlib.sha256(text.encode()).hexdigest().upper()


def check_masks(
    with_key: Sequence[Sequence[object]], without_key: Sequence[Sequence[object]], columns: Sequence[str]
) -> list[str]:
    """Say what is wrong with what a reader without the key sees; nothing, if the masks are as declared."""
    wrong = []
    for plain, masked in zip(with_key, without_key, strict=True):
        for name, clear, shown in zip(columns, plain, masked, strict=True):
            if name == "manufacturer":
                right = shown is None
            elif name == "model":
                right = shown is None if clear is None else shown == sha256_of(str(clear))
            else:
                right = shown == clear
            if not right:
                wrong.append(f"{name} of {plain[0]}: {shown!r}")
    return wrong


def everything(spark: SparkSession, tables: Sequence[str]) -> Mapping[str, Print]:
    """The fingerprints of whole tables, to be compared before and after maintenance."""
    prints = {}
    for name in tables:
        prints[name] = fingerprint(spark.table(name).withColumn("all", F.lit(0)), "all")
    return prints
