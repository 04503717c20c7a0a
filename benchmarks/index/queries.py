"""Hunts in Spark, next to what somebody would use instead: Spark on ORC and Parquet, and DuckDB."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
from harness import emit, interleaved, note, ratio
from sessions import open_lake

from lockgate import Lake

if TYPE_CHECKING:
    from lockgate.framework.store import Table

BENCH = "index"
INDICATORS, PRESENT = 1_000, 10
SWITCH = "spark.lockgate.result.cache"
ABSENT_TEXT = "no such tool"


def measure(folder: Path, table: Table, rare: list[str], repetitions: int) -> None:
    """Print how long a point, a text and a list of indicators take; `folder/lake` is the warehouse."""
    lake = open_lake(folder, memory="3g")
    try:
        _measure(lake, folder, table, rare, repetitions)
    finally:
        lake.spark.stop()


def _measure(lake: Lake, folder: Path, table: Table, rare: list[str], repetitions: int) -> None:
    spark = lake.spark
    paths = [str(path) for path in Path(table.location).rglob("data-*.orc")]
    spark.read.orc(paths).createOrReplaceTempView("orc_events")
    parquet = folder / "parquet"
    note("Parquet with Blooms, sorted by hash in each file")
    sorted_rows = spark.table("orc_events").repartition(len(paths)).sortWithinPartitions("md5")
    blooms = sorted_rows.write.option("parquet.bloom.filter.enabled#md5", "true")
    blooms.option("parquet.bloom.filter.expected.ndv#md5", "60000").parquet(str(parquet))
    spark.read.parquet(str(parquet)).createOrReplaceTempView("parquet_events")
    absent = [f"{number:032x}" for number in range(INDICATORS - PRESENT)]
    indicators = [(each,) for each in [*absent, *rare[:PRESENT]]]
    # Arrow's tables are local data, whose size Spark knows.
    listed = pa.table({"md5": [each for (each,) in indicators]})
    spark.createDataFrame(listed).createOrReplaceTempView("indicators")
    sources = {"lockgate": "lake.b.events", "orc": "orc_events", "parquet": "parquet_events"}
    questions = {
        "point": f"SELECT * FROM {{0}} WHERE md5 = '{rare[0]}'",
        "like": f"SELECT * FROM {{0}} WHERE command LIKE '%{ABSENT_TEXT}%'",
        "join": "SELECT e.* FROM {0} e JOIN indicators i ON e.md5 = i.md5",
    }
    ratios = {"point": ("point_query_no_job_ratio", 0.05), "join": ("ioc_join_ratio", 0.1)}
    for name, sql in questions.items():
        runs = {engine: _collect(lake, sql.format(source)) for engine, source in sources.items()}
        runs["duckdb"] = _duckdb(sql, parquet, indicators)
        answers = {engine: run() for engine, run in runs.items()}
        assert len(set(answers.values())) == 1, (name, answers)
        took = interleaved(runs, repetitions)
        for engine, seconds in took.items():
            emit(BENCH, f"{name}_ms_{engine}", 1000 * median(seconds), "ms")
        if name in ratios:
            metric, goal = ratios[name]
            emit(BENCH, metric, ratio(took["lockgate"], took["orc"]), "ratio", goal)
    _kept(lake, repetitions)


def _collect(lake: Lake, sql: str) -> Callable[[], int]:
    return lambda: len(lake.spark.sql(sql).collect())


def _duckdb(sql: str, parquet: Path, indicators: list[tuple[str]]) -> Callable[[], int]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute("CREATE TABLE indicators (md5 VARCHAR)")
    connection.executemany("INSERT INTO indicators VALUES (?)", indicators)
    text = sql.format(f"read_parquet('{parquet}/*.parquet')")
    return lambda: len(connection.execute(text).fetchall())


def _kept(lake: Lake, repetitions: int) -> None:
    """Compare a report with itself, answered by kept rows; each pair is of another report."""
    conf = lake.spark.conf
    kept, plain = [], []
    for number in range(repetitions):
        sql = f"SELECT host, count(*), sum(bytes + {number}) FROM lake.b.events GROUP BY host LIMIT 100"
        run = _collect(lake, sql)
        conf.set(SWITCH, "true")
        run()
        started = time.perf_counter()
        run()
        kept.append(time.perf_counter() - started)
        conf.set(SWITCH, "false")
        started = time.perf_counter()
        run()
        plain.append(time.perf_counter() - started)
    emit(BENCH, "result_cache_hit_ms", 1000 * median(kept), "ms")
    emit(BENCH, "result_cache_hit_ratio", ratio(kept, plain), "ratio", 0.1)
