"""Who does a lookup join, the cache or Spark itself: the same rows, columns and snapshots either way."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate import lookup
from lockgate.errors import MaskedDataWarning
from lockgate.lookup import lookup_join
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.join import strategy
from lockgate.lookup.join.metrics import TOO_LARGE, TOO_SMALL
from lockgate.lookup.join.strategy import batch_rows, choose
from lockgate.pushdown import Predicate, col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

MakeName = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """A cache folder of the test's own, and quick refreshes."""
    return {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.refresh.interval": "100 ms"}


def shape(frame: DataFrame) -> list[Any]:
    """Names, types, nulls and marks of columns; that the cache answered them is said for lineage only."""
    return [
        (field.name, field.dataType, field.nullable, {**(field.metadata or {}), "lockgate.lineage": None})
        for field in frame.schema
    ]


def both(stream: DataFrame, name: str, options: dict[str, str], **arguments: Any) -> None:
    """Require that cache and Spark answer a batch with the same columns, types and rows."""
    frames = [
        lookup_join(stream, name, options={**options, "lookup.strategy": who}, **arguments)
        for who in ("lookup", "spark")
    ]
    assert shape(frames[0]) == shape(frames[1])
    mine, theirs = (sorted((tuple(row) for row in frame.collect()), key=repr) for frame in frames)
    assert repr(mine) == repr(theirs)
    assert mine, "nothing was compared"


CONDITIONS = [
    (col("n") >= 2) & (col("n") <= 9),
    ~(col("f") > 1.5) | col("s").is_null(),
    col("s").isin(["s1", "s4", "s'5"]) & (col("day") != dt.date(2024, 1, 3)),
    (col("local") < dt.datetime(2024, 1, 1, 5)) & (col("at") >= dt.datetime(2024, 1, 1, 2, tzinfo=dt.UTC)),
    (col("b") == b"\x01") | col("dec").isin([1]) | col("s").starts_with("s'"),
]


def typed(spark: SparkSession, name: str, properties: str = "") -> None:
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, n INT, f DOUBLE, s STRING, day DATE, at TIMESTAMP, "
        f"local TIMESTAMP_NTZ, b BINARY, dec DECIMAL(9,2)) {properties}"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, cast(nullif(id % 12, 0) AS INT), "
        "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D "
        "WHEN 3 THEN null ELSE id / 4 END, "
        "CASE id % 6 WHEN 2 THEN null WHEN 5 THEN 's\\'5' ELSE concat('s', id % 6) END, "
        "date_add(DATE'2024-01-01', cast(id % 7 AS INT)), timestamp_seconds(1704067200 + id * 600), "
        "timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(0, cast(id % 12 AS INT)), "
        "unhex(lpad(hex(id % 3), 2, '0')), cast(id % 4 AS DECIMAL(9,2)) FROM range(60)"
    )


@pytest.mark.long
def test_both_answer_alike(spark: SparkSession, table: MakeName, options: dict[str, str]) -> None:
    by_key, plain = table("by_key"), table("plain")
    typed(spark, by_key, "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')")
    typed(spark, plain)
    stream = spark.sql(
        "SELECT id AS x, cast(if(id % 7 = 0, null, id) AS INT) AS small, cast(id % 12 AS TINYINT) AS tiny, "
        "CASE id % 4 WHEN 0 THEN float('NaN') WHEN 1 THEN float(-0.0) "
        "WHEN 2 THEN null ELSE float(id / 4) END AS narrow FROM range(0, 90)"
    )
    for how in ("left", "inner"):
        both(stream, by_key, options, on={"small": "id"}, how=how, snapshot_column="snap")
        both(stream, plain, options, on={"tiny": "n"}, how=how, select={"new": "s", "number": "id"})
    both(stream, plain, options, on={"narrow": "f"}, select=["id"])
    both(stream, plain, options, on={"narrow": "f", "tiny": "n"}, select=["id"], how="inner")
    empty = table("empty")
    spark.sql(f"CREATE TABLE {empty} (id BIGINT, v STRING)")
    both(stream, empty, options, on={"x": "id"}, snapshot_column="snap")


@pytest.mark.parametrize("where", CONDITIONS, ids=range(len(CONDITIONS)))
def test_conditions_mean_the_same(
    spark: SparkSession, table: MakeName, options: dict[str, str], where: Predicate
) -> None:
    name = table("t")
    typed(spark, name)
    both(spark.range(60), name, options, on="id", where=where, select=["s", "n"], how="inner")


def test_masks_are_masks_and_values_values(
    spark: SparkSession, public: Lake, table: MakeName, options: dict[str, str]
) -> None:
    name = table("people")
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt'='pii:ssn')")
    spark.sql(f"INSERT INTO {name} VALUES (1, '123'), (2, '456')")
    stream = spark.sql("SELECT cast(id AS INT) AS id FROM range(3)")
    both(stream, name, options, on="id")
    with pytest.warns(MaskedDataWarning, match="ssn"):
        both(stream, name.replace("lake.", "public.", 1), options, on="id")


@pytest.mark.parametrize(("in_jvm", "share"), [("true", 1.5), ("false", 0.5)])
def test_auto_compares_the_batch_with_the_table(
    spark: SparkSession, lake: Lake, table: MakeName, options: dict[str, str], in_jvm: str, share: float
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'v' FROM range(1000)")
    dimension = lake.catalog.load_table(name.removeprefix("lake."))
    options["lookup.in-jvm"] = in_jvm
    spec = make_spec(dimension, "id", options=options)
    large, small = round(1000 * share), round(1000 * share) - 1
    assert choose(spark.range(large), dimension, spec).by_spark
    assert choose(spark.range(small), dimension, spec) == strategy.Choice(False, small, 1000)
    assert not choose(spark.range(0), dimension, spec).by_spark
    cached = spark.range(5000).where("id % 2 = 0").cache()
    cached.count()
    assert batch_rows(cached) == 2500
    cached.unpersist()
    plans = []
    for rows in (small, large):
        joined = lookup_join(spark.range(rows), name, on="id", options=options)
        plan = joined._jdf.queryExecution().optimizedPlan().toString()
        plans.append("lockgate.lookup" in plan or "ArrowEvalPython" in plan)
        assert joined.where("v = 'v'").count() == min(rows, 1000)
    assert plans == [True, False]


def stream_of(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    spark.range(rows).coalesce(1).write.mode("append").parquet(str(folder))
    return spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(folder))


@pytest.mark.parametrize("who", ["auto", "spark"])
def test_a_stream_says_when_the_other_would_be_faster(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path, who: str
) -> None:
    name, out = table("t"), f"out_{who}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    spark.sql(f"INSERT INTO {name} SELECT id, 'old' FROM range(100)")
    source = stream_of(spark, tmp_path / "in", 400)
    joined = lookup_join(
        source, name, on="id", snapshot_column="snap", options={**options, "lookup.strategy": who}
    )
    query = joined.writeStream.format("memory").queryName(out).start()
    try:
        query.processAllAvailable()
        spark.sql(f"INSERT INTO {name} SELECT id, 'new' FROM range(0, 100, 2)")
        if who == "auto":
            lookup.wait_for(name, 2)
        stream_of(spark, tmp_path / "in", 4)
        query.processAllAvailable()
        seen = [
            progress["observedMetrics"][f"lookup {name.removeprefix('lake.')}"]
            for progress in query.recentProgress
            if progress["numInputRows"]
        ]
    finally:
        query.stop()
    assert [(each["rows"], each["matched"], each["snapshot"]) for each in seen] == [(400, 100, 1), (4, 4, 2)]
    assert [each["warning"] for each in seen] == ([TOO_LARGE, None] if who == "auto" else [None, TOO_SMALL])
    assert [each["hit_rate"] for each in seen] == [0.25, 1.0]
    rows = spark.table(out).where("snap = 2").orderBy("id").collect()
    assert [(row.id, row.v) for row in rows] == [(0, "new"), (1, "old"), (2, "new"), (3, "old")]


@pytest.mark.long
def test_a_batch_of_a_stream_that_is_retried_keeps_its_snapshot_in_any_process(
    spark: SparkSession, lake: Lake, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    source = stream_of(spark, tmp_path / "in", 3)
    seen: list[tuple[int, str, set[int]]] = []
    fail = True

    def sink(frame: DataFrame, number: int) -> None:
        for who in ("spark", "lookup"):
            given = {**options, "lookup.strategy": who}
            rows = lookup_join(frame, name, on="id", snapshot_column="snap", options=given).collect()
            seen.append((number, who, {row.snap for row in rows}))
            spark.sql(f"INSERT INTO {name} VALUES (2, 'b')")
        if fail:
            raise RuntimeError("the sink is down")

    def run() -> None:
        nonlocal fail
        query = (
            source.writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(tmp_path / "ck"))
            .trigger(availableNow=True)
            .start()
        )
        if fail:
            with pytest.raises(Exception, match="the sink is down"):
                query.awaitTermination()
        else:
            query.awaitTermination()

    run()
    plain = lake.catalog.load_table(name.removeprefix("lake."))
    lake.call("expire_snapshots", table=name.removeprefix("lake."), retain_max=1, retain_min=1)
    assert next(iter(plain.snapshots())).id == 1, "the pin protects what the batch will ask again"
    fail = False
    run()
    assert seen == [(0, who, {1}) for who in ("spark", "lookup", "spark", "lookup")]
