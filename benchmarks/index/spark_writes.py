"""Writes by Spark's tasks into a table with two indexed columns, next to one without an index."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
from harness import emit, interleaved, note, ratio
from sessions import open_lake

from index.events import Events
from lockgate import Lake
from lockgate.framework.store.write import write_session

BENCH = "index"
INDEXED = "TBLPROPERTIES ('index.values.columns' = 'host,md5')"


def measure(folder: Path, rows: int, rows_a_file: int, repetitions: int) -> None:
    """Print what two indexed columns add to an INSERT, and the driver's time for them, of 250,000 rows each.

    The driver's time is that of Python's processor; with `read`, tasks send no keys, and the commit reads the
    columns of each file again.
    """
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(Events().files(rows, rows_a_file)):
        pq.write_table(each, source / f"{number:04d}.parquet")
    note(f"{rows:,} events")
    lake = open_lake(folder, memory="3g")
    try:
        _measure(lake, source, rows, repetitions)
    finally:
        lake.spark.stop()


def _measure(lake: Lake, source: Path, rows: int, repetitions: int) -> None:
    spark = lake.spark
    spark.sql("CREATE DATABASE IF NOT EXISTS lake.w")
    spark.read.parquet(str(source)).createOrReplaceTempView("events")
    names = {"plain": "", "two": INDEXED, "read": INDEXED}
    for name, properties in names.items():
        spark.sql(f"CREATE TABLE lake.w.{name} {properties} AS SELECT * FROM events WHERE false")
    driver: dict[str, list[float]] = {name: [] for name in names}

    def insert(name: str) -> Callable[[], None]:
        def run() -> None:
            asked = write_session.asked_of_tasks
            if name == "read":
                write_session.asked_of_tasks = lambda table: None
            started = time.process_time()
            try:
                spark.sql(f"INSERT OVERWRITE lake.w.{name} SELECT * FROM events")
            finally:
                write_session.asked_of_tasks = asked
            driver[name].append(time.process_time() - started)

        return run

    took = interleaved({name: insert(name) for name in names}, repetitions)
    emit(BENCH, "write_ratio_spark", ratio(took["two"], took["plain"]), "ratio", 1.1)
    emit(BENCH, "write_ratio_spark_read", ratio(took["read"], took["plain"]), "ratio")
    for name, seconds in took.items():
        emit(BENCH, f"spark_insert_s_{name}", median(seconds), "s")
    base = median(driver["plain"][1:])
    for name in ("two", "read"):
        cpu = (median(driver[name][1:]) - base) / rows * 250_000
        emit(BENCH, f"spark_commit_cpu_ms_{name}", 1000 * cpu, "ms")
