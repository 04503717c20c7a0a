"""Lookup joins with chosen partitions, shuffled by bucket, and asking again for what they missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate import lookup
from lockgate.errors import InputError, OptionError, UnsupportedError
from lockgate.lookup import lookup_join
from lockgate.lookup.join.pin_table import PinTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

MakeName = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def partitioned(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (year INT, month INT, k BIGINT, v STRING) PARTITIONED BY (year, month)")
    spark.sql(
        f"INSERT INTO {name} VALUES (2023, 12, 1, 'a'), (2024, 1, 1, 'b'), (2024, 2, 1, 'c'), "
        "(2024, 2, 2, 'd')"
    )


CHOICES = {
    "max_pt()": "year = 2024 AND month = 2",
    "max_two_pt()": "year = 2024 AND month IN (1, 2)",
    "year=max_pt()": "year = 2024",
    "year=max_pt(),month=max_pt()": "year = 2024 AND month = 2",
    "year=2023,month=12; year=2024,month=1": "(year = 2023 AND month = 12) OR (year = 2024 AND month = 1)",
    "month=2": "month = 2",
}


@pytest.mark.long
def test_partitions_are_chosen_by_the_cache_and_by_spark(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name = table("p")
    partitioned(spark, name)
    stream = spark.range(1, 4).withColumnRenamed("id", "k")
    for n, (choice, condition) in enumerate(CHOICES.items()):
        dim = spark.table(name).where(condition).select("k", "v", "month")
        plain = rows_of(stream.join(dim, "k", "left").select("k", "v", "month"))
        # Each cache costs a process: two show that what Spark reads is what a cache holds.
        for who in ("lookup", "spark") if n in (1, 4) else ("spark",):
            given = {**options, "scan.partitions": choice, "lookup.strategy": who}
            assert rows_of(lookup_join(stream, name, "k", select=["v", "month"], options=given)) == plain, (
                choice
            )


def test_a_new_partition_is_loaded_aside_and_swapped_in(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name = table("p")
    partitioned(spark, name)
    stream = spark.range(1, 4).withColumnRenamed("id", "k")
    given = {**options, "lookup.dynamic-partition": "max_pt()"}

    def found() -> list[tuple[Any, ...]]:
        return rows_of(lookup_join(stream, name, "k", select=["v"], how="inner", options=given))

    assert found() == [(1, "c"), (2, "d")]
    spark.sql(f"INSERT INTO {name} VALUES (2024, 2, 3, 'e'), (2023, 1, 3, 'old')")
    lookup.wait_for(name, 2)
    assert found() == [(1, "c"), (2, "d"), (3, "e")]
    assert not lookup.status(name).full_load, "the same partition: its changes are followed"
    spark.sql(f"INSERT INTO {name} VALUES (2024, 3, 1, 'f')")
    lookup.wait_for(name, 3)
    assert found() == [(1, "f")]
    assert lookup.status(name).full_load
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (year = 2024, month = 3)")
    lookup.wait_for(name, 4)
    assert found() == [(1, "c"), (2, "d"), (3, "e")]


def test_bad_choices_are_refused(spark: SparkSession, table: MakeName, options: dict[str, str]) -> None:
    name, plain = table("p"), table("plain")
    partitioned(spark, name)
    spark.sql(f"CREATE TABLE {plain} (k BIGINT, v STRING)")
    stream = spark.range(1).withColumnRenamed("id", "k")

    def refused(error: type[Exception], message: str, name: str, **given: str) -> None:
        keys = {key.replace("__", ".").replace("_", "-"): value for key, value in given.items()}
        with pytest.raises(error, match=message):
            lookup_join(stream, name, "k", options={**options, **keys})

    refused(InputError, "is for partitioned tables, which", plain, scan__partitions="max_pt()")
    refused(InputError, "names 'yeer'; did you mean 'year'", name, scan__partitions="yeer=2024")
    refused(InputError, "'soon' is not a value of column 'year', a int32", name, scan__partitions="year=soon")
    refused(InputError, "not to an earlier column", name, scan__partitions="month=max_pt()")
    refused(OptionError, "expected 'max_pt\\(\\)', 'max_two_pt\\(\\)'", name, scan__partitions="newest")
    refused(OptionError, "max_pt\\(\\) for each column named", name, scan__partitions="year=max_pt(),month=1")
    refused(InputError, "a fixed number of buckets", plain, lookup__shuffle="true")
    streaming = spark.readStream.format("rate").load().selectExpr("value AS k")
    given = {**options, "scan.partitions": "max_pt()", "lookup.strategy": "spark"}
    with pytest.raises(UnsupportedError, match="use foreachBatch, name the partitions"):
        lookup_join(streaming, name, "k", options=given)


@pytest.mark.long
def test_a_shuffled_lookup_asks_each_cache_for_its_buckets_only(
    spark: SparkSession, lake: Lake, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    name = table("b")
    spark.sql(
        f"CREATE TABLE {name} (a BIGINT, b STRING, v DOUBLE) "
        "TBLPROPERTIES ('primary-key'='a,b', 'bucket'='5', 'bucket-key'='b')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('k', id % 50), id / 3 FROM range(300)")
    stream = spark.sql(
        "SELECT cast(id AS INT) AS a, if(id % 9 = 0, null, concat('k', id % 50)) AS b FROM range(400)"
    )
    given = {**options, "lookup.shuffle": "true"}
    dim = spark.table(name)

    def check(snapshot: int) -> None:
        joined = lookup_join(stream, name, ["a", "b"], snapshot_column="snap", options=given)
        plain = stream.join(dim, ["a", "b"], "left").selectExpr("a", "b", "v", f"{snapshot}L AS snap")
        assert rows_of(joined) == rows_of(plain)

    check(1)
    held = [status.rows for status in lookup.statuses()]
    assert len(held) == 2
    assert sum(held) == 300
    assert min(held) > 0
    spark.sql(f"INSERT INTO {name} SELECT id, concat('k', id % 50), -1 FROM range(0, 300, 7)")
    spark.sql(f"DELETE FROM {name} WHERE a % 10 = 3")
    dim = spark.table(name)
    for status in lookup.statuses():
        assert status.keys == ("a", "b")
    deadline = time.monotonic() + 30
    while any(status.served_snapshot != 3 for status in lookup.statuses()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    check(3)
    with pytest.raises(InputError, match=r"whole bucket key .* on= lacks b"):
        lookup_join(stream, name, "a", select=["v"], options=given)


@pytest.mark.long
def test_a_shuffled_stream_has_one_snapshot_a_batch_in_all_groups(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    name = table("b")
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v BIGINT) TBLPROPERTIES ('primary-key'='k', 'bucket'='4')")
    spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(200)")
    source, out = str(tmp_path / "in"), str(tmp_path / "out")
    spark.range(0, 100).coalesce(1).write.parquet(source)
    stream = spark.readStream.schema("id BIGINT").parquet(source)
    given = {**options, "lookup.shuffle": "true", "lookup.refresh.async": "false"}
    joined = lookup_join(stream, name, {"id": "k"}, snapshot_column="snap", options=given)

    def run() -> None:
        writer = joined.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "ck"))
        writer.option("path", out).trigger(availableNow=True).start().awaitTermination()

    run()
    spark.sql(f"INSERT INTO {name} SELECT id, 2 FROM range(0, 200, 2)")
    spark.range(100, 250).coalesce(1).write.mode("append").parquet(source)
    run()
    expected = [(n, 1, 1) for n in range(100)]
    expected += [(n, 2 - n % 2, 2) if n < 200 else (n, None, 2) for n in range(100, 250)]
    assert sorted(tuple(row) for row in spark.read.parquet(out).collect()) == expected
    assert sum(status.rows for status in lookup.statuses()) == 200
    batches = {status.last_batch.snapshot_id for status in lookup.statuses() if status.last_batch is not None}
    assert batches == {2}


@pytest.mark.long
def test_missed_keys_are_asked_again_of_newer_states(
    spark: SparkSession, table: MakeName, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = threading.Event()
    rows = PinTable.rows

    def noted(*arguments: Any) -> Any:
        found = rows(*arguments)
        pinned.set()
        return found

    monkeypatch.setattr(PinTable, "rows", noted)
    one, many = table("one"), table("many")
    spark.sql(f"CREATE TABLE {one} (k BIGINT, v STRING) TBLPROPERTIES ('primary-key'='k', 'bucket'='1')")
    spark.sql(f"CREATE TABLE {many} (k BIGINT, v STRING)")
    stream = spark.sql("SELECT nullif(id, 0) AS k FROM range(4)").coalesce(1)
    hints = {"retry-predicate": "lookup_miss", "fixed-delay": "200 ms", "max-attempts": "100"}
    for name in (one, many):
        spark.sql(f"INSERT INTO {name} VALUES (1, 'first'), (9, 'x')")
        joined = lookup_join(stream, name, "k", snapshot_column="snap", options={**options, **hints})
        inner = lookup_join(stream, name, "k", how="inner", snapshot_column="s", options={**options, **hints})

        def later(name: str = name) -> None:
            assert pinned.wait(60), "the batch has pinned the snapshot before the change"
            spark.sql(f"INSERT INTO {name} VALUES (1, 'changed'), (2, 'second'), (3, 'third')")

        writer = threading.Thread(target=later)
        # Built before, so that what waits is the retry.
        assert rows_of(lookup_join(stream.where("k = 1"), name, "k", options={**options, **hints})) == [
            (1, "first")
        ]
        pinned.clear()
        writer.start()
        found = rows_of(joined)
        writer.join()
        assert found == [(1, "first", 1), (2, "second", 2), (3, "third", 2), (None, None, 1)]
        status = lookup.status(name)
        assert status.last_batch is not None
        assert (status.last_batch.rows, status.last_batch.matched, status.last_batch.retried) == (4, 3, 2)
        expected = [(1, "changed", 2), (2, "second", 2), (3, "third", 2)]
        if name == many:
            expected = [(1, "changed", 2), (1, "first", 2), *expected[1:]]
        lookup.wait_for(name, 2)
        assert rows_of(inner) == expected


def test_a_retry_ends_and_the_row_goes_out_unmatched(
    spark: SparkSession, table: MakeName, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "lockgate.lookup")
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (k BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    hints = {
        "lookup.retry-predicate": "lookup_miss",
        "lookup.fixed-delay": "10 ms",
        "lookup.max-attempts": "2",
    }
    joined = lookup_join(
        spark.range(3), name, {"id": "k"}, snapshot_column="snap", options={**options, **hints}
    )
    assert rows_of(joined) == [(0, None, 1), (1, "a", 1), (2, None, 1)]
    assert lookup.status(name).hit_rate == pytest.approx(1 / 3)
    said = f"{name.removeprefix('lake.')}: a batch asked for 3 rows, 33.3% matched, snapshot 1 ("
    deadline = time.monotonic() + 20
    while said not in caplog.text:
        assert time.monotonic() < deadline, "a line of the log says that a batch has ended"
        time.sleep(0.05)
    with pytest.raises(OptionError, match="expected one of: fixed_delay"):
        lookup_join(spark.range(3), name, {"id": "k"}, options={"retry-strategy": "exponential"})
