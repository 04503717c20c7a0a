"""DataFrames, views, caches and streams that live on while their table is dropped and made again.

Each answers the rows that it was made of, or the new table's if it is analysed again, or fails plainly; none
mixes the two, and no row is read by another table's keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import broadcast

from lockgate import lookup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockgate import Lake

Named = Callable[[str], str]
# Spark's own check comes before ours, in versions that have one.
AGAIN = "was dropped and created again|TABLE_ID_MISMATCH"
GONE = f"{AGAIN}|there is no table|SnapshotExpiredError"
KEY = "'primary-key'='id', 'bucket'='1'"
KINDS = {
    "append": "'orc.encrypt' = 'pii:v'",
    "key": f"{KEY}, 'orc.encrypt' = 'pii:v'",
    "partitioned": "'orc.encrypt' = 'pii:v'",
}


def make(spark: SparkSession, name: str, properties: str, word: str, *, parted: bool, rows: int) -> None:
    by = "PARTITIONED BY (p)" if parted else ""
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING, p INT) {by} TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('{word}', id), cast(id % 2 AS INT) FROM range({rows})")


def words(rows: list[Any]) -> set[str]:
    return {row.v.rstrip("0123456789") for row in rows}


def answer(frame: DataFrame) -> set[str] | str:
    """The words of a DataFrame's rows, or the error."""
    try:
        return words(frame.collect())
    except PySparkException as error:
        return str(error)


def failure(action: Callable[[], bool]) -> bool:
    """Whether an action does what it says, or fails plainly."""
    try:
        return action()
    except PySparkException as error:
        return re.search(AGAIN, str(error)) is not None


def is_old_or_fails(said: set[str] | str) -> bool:
    """Whether a DataFrame that was made of the old table still answers its rows, or says why it does not."""
    return said == {"old"} or (isinstance(said, str) and re.search(GONE, said) is not None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_action_after_the_table_was_made_again(spark: SparkSession, table: Named, kind: str) -> None:
    name = table("t")
    parted = kind == "partitioned"
    make(spark, name, KINDS[kind], "old", parted=parted, rows=50)
    frames = {
        "unused": spark.table(name),
        "used": spark.table(name),
        "filtered": spark.table(name).where("id > 10"),
        "one key": spark.table(name).where("id = 11"),
        "joined": spark.table(name).alias("a").join(spark.table(name).select("id"), "id"),
        "broadcast": spark.range(100).join(broadcast(spark.table(name)), "id"),
        "limited": spark.table(name).orderBy("id").limit(3),
    }
    for label in ("used", "broadcast"):
        assert words(frames[label].collect()) == {"old"}
    spark.sql(f"DROP TABLE {name}")
    for label, frame in frames.items():
        assert is_old_or_fails(answer(frame)), label
    # The other table's column has another key, or none.
    again = KINDS[kind].replace("pii:v", "other:v") if kind != "append" else "'bucket' = '-1'"
    make(spark, name, again, "new", parted=parted, rows=80)
    for label, frame in frames.items():
        assert is_old_or_fails(answer(frame)), label
    assert words(spark.table(name).collect()) == {"new"}


def test_counts_and_aggregates_from_metadata(spark: SparkSession, table: Named) -> None:
    name = table("t")
    make(spark, name, KINDS["append"], "old", parted=False, rows=50)
    counted = spark.table(name).selectExpr("count(*) AS n", "max(id) AS most")
    assert counted.collect() == [(50, 49)]
    spark.sql(f"DROP TABLE {name}")
    make(spark, name, KINDS["append"], "new", parted=False, rows=80)
    assert failure(lambda: counted.collect() == [(50, 49)])
    grouped = spark.table(name).groupBy("p").count()
    spark.sql(f"DROP TABLE {name}")
    make(spark, name, KINDS["append"], "newer", parted=False, rows=10)
    with pytest.raises(PySparkException, match=AGAIN):
        grouped.collect()


def test_views_and_caches(spark: SparkSession, table: Named) -> None:
    name = table("t")
    make(spark, name, KINDS["append"], "old", parted=False, rows=50)
    frame = spark.table(name)
    frame.createOrReplaceTempView("of_frame")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW of_text AS SELECT * FROM {name}")
    cached = spark.table(name).where("id >= 0").cache()
    try:
        assert words(cached.collect()) == {"old"}
        spark.sql(f"DROP TABLE {name}")
        make(spark, name, KINDS["append"].replace("pii", "other"), "new", parted=False, rows=80)
        for source in (spark.table("of_frame"), spark.table("of_text"), cached, spark.table(name)):
            said = answer(source)
            assert said in ({"old"}, {"new"}) or re.search(GONE, said), said
        assert words(spark.table("of_text").collect()) == {"new"}
        assert words(spark.table(name).collect()) == {"new"}
    finally:
        cached.unpersist()
        for view in ("of_frame", "of_text"):
            spark.catalog.dropTempView(view)


def test_a_cache_of_a_dropped_database_hinders_no_change_of_others(
    lake: Lake, spark: SparkSession, table: Named
) -> None:
    """Of a table without Spark's DROP, as another process drops it; a join is a cache of both its tables."""
    name, other = table("t"), "lake.for_a_while.t"
    make(spark, name, KINDS["append"], "kept", parted=False, rows=5)
    spark.sql("CREATE NAMESPACE lake.for_a_while")
    make(spark, other, KINDS["append"], "gone", parted=False, rows=5)
    frames = [spark.table(other).cache(), spark.table(name).join(spark.table(other), "id").cache()]
    try:
        assert [frame.count() for frame in frames] == [5, 5]
        lake.catalog.drop_namespace("for_a_while", cascade=True)
        spark.sql(f"INSERT INTO {name} VALUES (9, 'kept9', 0)")
        assert not frames[1].storageLevel.useMemory, "its rows are no longer those of both tables"
        spark.sql(f"CALL lake.sys.create_tag('{name.removeprefix('lake.')}', 'one')")
        assert not frames[0].storageLevel.useMemory
        assert spark.table(name).count() == 6
    finally:
        for frame in frames:
            frame.unpersist()


def test_time_travel_and_writes(spark: SparkSession, table: Named) -> None:
    name, target = table("t"), table("target")
    make(spark, name, KINDS["append"], "old", parted=False, rows=50)
    make(spark, target, KINDS["append"], "target", parted=False, rows=1)
    travelled = spark.read.option("versionAsOf", 1).table(name)
    plain = spark.table(name)
    spark.sql(f"DROP TABLE {name}")
    make(spark, name, KINDS["append"].replace("pii", "other"), "new", parted=False, rows=80)
    for frame in (travelled, plain):
        assert re.search(AGAIN, str(answer(frame)))
        # Spark analyses what a statement writes again in some versions, and then all of it.
        assert failure(lambda frame=frame: frame.writeTo(target).append() is None)
    written = [row.v.rstrip("0123456789") for row in spark.table(target).collect()]
    assert set(written) <= {"target", "new"}
    assert written.count("new") in (0, 80, 160), "of each, all of the new table or nothing"


def stream_with_a_drop(joined: DataFrame, name: str, folder: Path, seen: list[set[str]]) -> StreamingQuery:
    """Run a stream that drops the table after its first batch and makes it again with other rows."""

    def note(batch: DataFrame, number: int) -> None:
        seen.append(words(batch.collect()))
        if number == 0:
            spark = joined.sparkSession
            spark.sql(f"DROP TABLE {name}")
            make(spark, name, KINDS["key"].replace("pii", "other"), "new", parted=False, rows=80)

    writer = joined.writeStream.foreachBatch(note).option("checkpointLocation", str(folder / "c"))
    return writer.trigger(processingTime="100 milliseconds").start()


def test_a_stream_with_a_table_next_to_it(spark: SparkSession, table: Named, tmp_path: Path) -> None:
    name = table("t")
    make(spark, name, KINDS["key"], "old", parted=False, rows=50)
    seen: list[set[str]] = []
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    joined = source.withColumnRenamed("value", "id").join(spark.table(name), "id")

    running = stream_with_a_drop(joined, name, tmp_path, seen)
    try:
        assert failure(lambda: not running.awaitTermination(60))
    finally:
        running.stop()
    assert seen[0] == {"old"}
    assert not any("new" in found for found in seen)
    assert running.exception() is not None


def test_a_lookup_next_to_it(
    spark: SparkSession, lake: Lake, table: Named, options: dict[str, str], lookups_end: None
) -> None:
    name = table("t")
    make(spark, name, KINDS["key"], "old", parted=False, rows=50)
    joined = lookup.lookup_join(spark.range(50), name, on="id", options=options).where("v IS NOT NULL")
    assert words(joined.collect()) == {"old"}
    spark.sql(f"DROP TABLE {name}")
    make(spark, name, KINDS["key"].replace("pii", "other"), "new", parted=False, rows=80)
    for _ in range(3):
        said = answer(joined)
        assert said in ({"old"}, {"new"}) or re.search(GONE, said), said


@pytest.mark.long
def test_a_stream_with_a_lookup(
    spark: SparkSession, table: Named, options: dict[str, str], lookups_end: None, tmp_path: Path
) -> None:
    """Each batch has one of the two tables, none the old one after the new one, and the query may fail."""
    name = table("t")
    make(spark, name, KINDS["key"], "old", parted=False, rows=50)
    seen: list[set[str]] = []
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    stream = source.selectExpr("value % 50 AS id")
    joined = lookup.lookup_join(stream, name, on="id", options=options).where("v IS NOT NULL")

    running = stream_with_a_drop(joined, name, tmp_path, seen)
    try:
        with suppress(PySparkException):
            for _ in range(60):
                if len(seen) > 4 or running.awaitTermination(1):
                    break
    finally:
        running.stop()
    assert seen[0] == {"old"}
    assert all(found in ({"old"}, {"new"}) for found in seen), seen
    assert seen == sorted(seen, key=lambda found: found == {"new"}), seen
    assert running.exception() is None or re.search(GONE, first_line(running.exception()))


def first_line(error: object) -> str:
    """The message of a query's error, without the plan and the causes that may follow it."""
    return str(error).partition("\n")[0]


@pytest.mark.parametrize("adaptive", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_a_lookup_says_why_it_ends(
    spark: SparkSession,
    table: Named,
    options: dict[str, str],
    lookups_end: None,
    tmp_path: Path,
    adaptive: str,
) -> None:
    """What the row of `t$pin` meets is asked in a thread of a subquery: Spark wraps what that throws."""
    name = table("t")
    make(spark, name, KINDS["key"], "old", parted=False, rows=50)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    streamed, still = (
        lookup.lookup_join(rows, name, on="id", options=options)
        for rows in (source.selectExpr("value % 50 AS id"), spark.range(50))
    )
    highest = spark.range(50).where(f"id <= (SELECT max(id) FROM {name})")
    spark.sql(f"DROP TABLE {name}")
    make(spark, name, KINDS["key"].replace("pii", "other"), "new", parted=False, rows=80)
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        for frame in (still, highest):
            with pytest.raises(PySparkException) as failed:
                frame.collect()
            assert re.search(AGAIN, first_line(failed.value))
        running = (
            streamed.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
        )
        with pytest.raises(PySparkException) as ended:
            running.awaitTermination(60)
        for error in (ended.value, running.exception()):
            assert re.search(AGAIN, first_line(error))
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
