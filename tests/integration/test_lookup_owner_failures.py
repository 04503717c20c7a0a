"""A refresh that fails: seen at once in the progress, the gauges, the log and `status()`, and got over."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate import lookup
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


@pytest.fixture(autouse=True)
def lookups_end() -> Iterator[None]:
    """Each test ends its lookups."""
    yield
    lookup.close_all()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def arrive(spark: SparkSession, folder: Path) -> None:
    spark.range(8, 12).coalesce(1).write.mode("append").parquet(str(folder))


@pytest.fixture
def gauges(spark: SparkSession) -> Callable[[str], dict[str, float]]:
    """Gives the gauges of a lookup, from a registry as Spark gives one to the plugin."""
    jvm: Any = spark.sparkContext._jvm
    registry = jvm.com.codahale.metrics.MetricRegistry()
    jvm.io.lockgate.spark.lookup.owner.Gauges.showIn(registry)

    def read(prefix: str) -> dict[str, float]:
        found = registry.getGauges()
        names = [name for name in found.keySet() if name.startswith(f"{prefix}.")]
        return {name.removeprefix(f"{prefix}."): found.get(name).getValue() for name in names}

    return read


@pytest.mark.long
def test_a_failed_refresh_shows_everywhere_and_is_got_over(  # noqa: PLR0915 - one story of failures, step by step
    spark: SparkSession,
    lake: Lake,
    table: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    gauges: Callable[[str], dict[str, float]],
) -> None:
    caplog.set_level(logging.INFO, "lockgate.lookup")
    name = table("dim")
    short = name.removeprefix("lake.")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, n INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    spark.sql(f"INSERT INTO {name} SELECT id, 1 FROM range(10)")
    dimension = lake.catalog.load_table(short)
    options = {
        "lookup.cache-dir": str(tmp_path / "cache"),
        "lookup.strategy": "lookup",
        "lookup.refresh.interval": "50 ms",
    }
    arrive(spark, tmp_path / "in")
    source = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "in"))
    joined = lookup_join(source, name, on="id", snapshot_column="snap", options=options)
    query = joined.writeStream.format("noop").start()

    def progress() -> Any:
        query.processAllAvailable()
        last = [progress for progress in query.recentProgress if progress["numInputRows"]][-1]
        return last["observedMetrics"][f"lookup {short}"]

    try:
        well = progress()
        assert (well["rows"], well["matched"], well["snapshot"], well["failures"]) == (4, 2, 1, 0)
        until(lambda: f"{short}: batch 0 asked for 4 rows, 50.0% matched, snapshot 1" in caplog.text)
        owner = lookup.status(short).owner_pid
        assert owner is not None
        mine = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, owner) > min(mine, 18)  # nobody is nicer than 19
        os.kill(owner, signal.SIGSTOP)
        before = set(Path(dimension.location).glob("bucket-0/*"))
        spark.sql(f"INSERT INTO {name} SELECT id, 2 FROM range(11)")
        (added,) = set(Path(dimension.location).glob("bucket-0/*")) - before
        content = added.read_bytes()
        added.write_bytes(b"broken")
        os.kill(owner, signal.SIGCONT)
        until(lambda: lookup.status(short).failures >= 1)

        status = lookup.status(short)
        assert (status.served_snapshot, status.target_snapshot) == (1, 2)
        assert added.name in str(status.last_error)
        assert f"refreshing the lookup cache of {short} to snapshot 2 failed" in caplog.text
        until(lambda: gauges(f"lookup.{short}.by.id")["failures"] >= 1)
        assert gauges(f"lookup.{short}.by.id")["snapshot"] == 1
        arrive(spark, tmp_path / "in")
        failed = progress()
        assert (failed["matched"], failed["snapshot"]) == (2, 1)
        assert failed["failures"] >= 1
        assert failed["lag_millis"] > 0
        last = lookup.status(short).last_batch
        assert last is not None
        assert f"the last {last.failures} refreshes failed" in str(last)

        added.write_bytes(content)
        assert lookup.wait_for(short, 2) == 2
        arrive(spark, tmp_path / "in")
        healed = progress()
        assert (healed["matched"], healed["snapshot"], healed["failures"]) == (3, 2, 0)
        until(lambda: gauges(f"lookup.{short}.by.id")["failures"] == 0)
        shown = gauges(f"lookup.{short}.by.id")
        assert (shown["snapshot"], shown["cacheRows"], shown["refreshLagMillis"]) == (2, 11, 0)
        until(lambda: gauges(f"lookup.{short}.by.id")["askedRows"] == 12)
        assert gauges(f"lookup.{short}.by.id")["hitRows"] == 7
    finally:
        query.stop()
    lookup.close_all()
    assert gauges(f"lookup.{short}.by.id") == {}
