"""What recording lineage costs statements and streams: times with it over times without it, taken in turn."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from harness import emit, note, ratio, timed
from sessions import open_lake

from lockgate import Lake
from lockgate.framework.lineage.pending_statements import wait_for_records

MODE = "spark.lockgate.lineage"


def measure(rounds: int, statements: int, batches: int) -> None:
    """Measure `statements` small ones and a stream of `batches`, with and without, in `rounds` of pairs."""
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-capture-"))
    lake = open_lake(folder)
    try:
        lake.sql(
            "CREATE TABLE lake.b.t AS SELECT CAST(id AS INT) AS id, id % 5 AS g, id AS v FROM range(100)"
        )
        _statements(lake, rounds, statements)
        _writes(lake, rounds, statements)
        _stream(lake, folder, rounds, batches)
    finally:
        lake.spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _statements(lake: Lake, rounds: int, count: int) -> None:
    """Queries, each of which is recorded: an application that records `writes` records none of them."""

    def query() -> None:
        for _ in range(count):
            lake.sql("SELECT g, sum(v) AS s FROM lake.b.t WHERE id > 3 GROUP BY g").collect()

    _compare(lake, "capture_overhead_ratio", query, rounds, "all", count, 1.02)


def _writes(lake: Lake, rounds: int, count: int) -> None:
    name = "lake.b.copy"
    lake.sql(f"CREATE TABLE {name} (g BIGINT, v BIGINT)")

    def write() -> None:
        for _ in range(max(1, count // 4)):
            lake.sql(f"INSERT OVERWRITE {name} SELECT g, v FROM lake.b.t")

    _compare(lake, "capture_writes_overhead_ratio", write, rounds, "writes", max(1, count // 4), 1.02)


def _stream(lake: Lake, folder: Path, rounds: int, batches: int) -> None:
    source = folder / "in"
    lake.spark.range(batches).selectExpr("id").repartition(batches).write.json(str(source))

    def run() -> None:
        stream = lake.spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).json(str(source))
        checkpoint = folder / uuid.uuid4().hex
        started = stream.selectExpr("id + 1 AS v").writeStream.format("noop").trigger(availableNow=True)
        started.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
        shutil.rmtree(checkpoint)

    _compare(lake, "stream_overhead_ratio", run, rounds, "writes", batches, 1.01)


def _compare(
    lake: Lake, metric: str, act: Callable[[], None], rounds: int, mode: str, count: int, aim: float
) -> None:
    times: dict[str, list[float]] = {mode: [], "off": []}
    spent: list[float] = []
    for number in range(-1, rounds):  # the first warms up
        for each in (mode, "off") if number % 2 else ("off", mode):
            # The time of earlier records does not count for this run.
            before = _micros(lake)
            with _conf(lake, each):
                took = timed(act)
            if number >= 0:
                times[each].append(took)
                if each == mode:
                    spent.append((_micros(lake) - before) / count)
    note(f"{metric}: {count} a round, {median(times['off']) / count * 1000:.1f} ms each without lineage")
    emit("lineage", metric, ratio(times[mode], times["off"]), "ratio", aim)
    emit("lineage", metric.replace("_ratio", "_us"), median(spent), "us")


def _micros(lake: Lake) -> float:
    """Microseconds that the listener and its own thread have spent, none of them on the thread of a query."""
    wait_for_records(lake.spark)
    jvm = lake.spark.sparkContext._jvm
    status = json.loads(jvm.io.lockgate.spark.lineage.LineageListener.status())
    return float(status["bus_micros"] + status["own_micros"])


@contextmanager
def _conf(lake: Lake, mode: str) -> Iterator[None]:
    lake.spark.conf.set(MODE, mode)
    try:
        yield
    finally:
        lake.spark.conf.unset(MODE)
