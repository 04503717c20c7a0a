"""Streams joined with a dimension from end to end: by lookups, and by Spark's own stream-static joins.

All queries of a comparison run at the same time and get the same files, one query at a time, so that what
else the machine does falls on all alike. What is compared is a micro-batch's `queryPlanning` and `addBatch`:
to plan it, read it, join it and write it. Next to it stands its `triggerExecution`, which has the log of a
stream's progress too, the same 0.1 s for whatever a stream does.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import emit, note
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from lockgate import Lake
from lookups.dimension import VALUES, Keys, keys, rows

BENCH = "lookup"
STREAM_SCHEMA = "row BIGINT, id BIGINT, amount INT"
# A join of Spark's that is many times slower need not be repeated as often as ours.
_BUDGET_SECONDS = 40.0
_LEAST_BATCHES = 2
# Batches, or what takes so long, before anything is measured: caches are built, and the JVM compiles for as
# long as half a minute what it then runs for days.
_WARM_UP_BATCHES = 60
_WARM_UP_SECONDS = 20.0
OURS = ("lookup", "auto")
AIMS: dict[tuple[str, int], tuple[str, int | None]] = {
    ("1m", 100_000): ("vs_spark_1m_1e5", 4),
    ("10m", 10_000): ("vs_spark_10m_1e4", 50),
    ("10m", 1_000_000): ("vs_spark_10m_1e6", 3),
}

Join = Callable[[DataFrame], DataFrame]


class Took(NamedTuple):
    """Seconds of a micro-batch: of its work, and with the keeping of the stream's log."""

    work: float
    whole: float


class Stream:
    """A running query whose micro-batches are handed to it one by one."""

    def __init__(
        self,
        lake: Lake,
        folder: Path,
        join: Join,
        *,
        each_batch: bool = False,
        schema: str = STREAM_SCHEMA,
    ) -> None:
        self._source, self._given = folder / "source", 0
        self._source.mkdir(parents=True)
        reader = lake.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(str(self._source))

        def write(batch: DataFrame, _: int) -> None:
            join(batch).write.format("noop").mode("overwrite").save()

        joined = stream.writeStream.foreachBatch(write) if each_batch else None
        writer = joined or join(stream).writeStream.format("noop")
        self._query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    def run(self, file: Path) -> Took:
        """What the micro-batch of one file takes."""
        self._given += 1
        aside = self._source.parent / f"{self._given}.parquet"
        shutil.copy(file, aside)
        aside.replace(self._source / aside.name)
        self._query.processAllAvailable()
        while len(done := [one for one in self._query.recentProgress if one.numInputRows]) < self._given:
            time.sleep(0.02)
        spent = done[-1].durationMs
        work = spent["queryPlanning"] + spent["addBatch"]
        return Took(work / 1000, spent["triggerExecution"] / 1000)

    def stop(self) -> None:
        """End the query."""
        self._query.stop()


def versus_spark(
    lake: Lake,
    table: str,
    count: int,
    label: str,
    folder: Path,
    cases: list[tuple[int, Keys]],
    repetitions: int,
) -> None:
    """Print how many times faster a lookup is than the best of Spark's joins, by rows of a batch and keys."""
    worst: list[tuple[float, str]] = []
    for size, distribution in cases:
        if count <= 1_000_000 or distribution == "uniform":
            scratch = folder / f"{label}-{size}-{distribution}"
            files = _batches(scratch / "batches", count, size, distribution, repetitions)
            note(f"streams: {count:,} rows, batches of {size:,}, {distribution}")
            static = lake.table(table)
            dimensions = {hint: static.hint(hint) for hint in ("broadcast", "shuffle_hash", "merge")}
            took = _compare(lake, table, dimensions, files, scratch)
            best = _best_of_spark(took)
            metric, goal = AIMS.get((label, size), (f"vs_spark_{label}_{size}", None))
            if distribution != "uniform":
                metric, goal = f"{metric}_{distribution}", None
            remark = f"Spark's best, {best}: {took[best].work:.3f} s a batch"
            remark += "" if goal is None else f"; the goal: {goal}"
            emit(BENCH, metric, took[best].work / took["lookup"].work, "speed", remark)
            remark = f"with the stream's log; Spark's best: {took[best].whole:.3f} s a batch"
            emit(BENCH, f"{metric}_whole", took[best].whole / took["lookup"].whole, "speed", remark)
            worst.append((took[best].work / took["auto"].work, f"{label}, {size:,} {distribution} keys"))
            shutil.rmtree(scratch, ignore_errors=True)
    if not worst:
        return
    speed, case = min(worst)
    baseline = f"auto in foreachBatch over Spark's best, {case}; the goal: 1.5"
    emit(BENCH, f"vs_spark_worst_{label}", speed, "speed", baseline)


def versus_cached(
    lake: Lake, table: str, count: int, label: str, folder: Path, size: int, repetitions: int
) -> None:
    """Print how many times faster a lookup is than joins with a dimension that Spark holds in memory."""
    fresh = follows_commits_when_cached(lake, table)
    note(f"a dimension cached by Spark {'follows' if fresh else 'does not follow'} others' commits")
    scratch = folder / f"{label}-{size}-cached"
    files = _batches(scratch / "batches", count, size, "uniform", repetitions)
    cached = lake.table(table).cache()
    cached.count()
    try:
        dimensions = {hint: cached.hint(hint) for hint in ("broadcast", "shuffle_hash")}
        took = _compare(lake, table, dimensions, files, scratch)
    finally:
        cached.unpersist()
        shutil.rmtree(scratch, ignore_errors=True)
    best = _best_of_spark(took)
    remark = (
        f"cached ({'stays' if fresh else 'does not stay'} fresh), {best}: {took[best].work:.3f} s a batch"
    )
    emit(BENCH, f"vs_spark_cached_{label}_{size}", took[best].work / took["lookup"].work, "speed", remark)


def follows_commits_when_cached(lake: Lake, table: str) -> bool:
    """Whether a dimension that Spark caches shows what another process commits."""
    cached = lake.table(table).cache()
    before = cached.where("id = 1").collect()
    lake.catalog.load_table(table).append(rows(np.array([1]), salt=17))
    fresh = bool(cached.where("id = 1").collect() != before)
    cached.unpersist()
    return fresh


def _compare(
    lake: Lake, table: str, dimensions: Mapping[str, DataFrame], files: list[Path], folder: Path
) -> dict[str, Took]:
    joins: dict[str, Join] = {name: _spark_join(dimension) for name, dimension in dimensions.items()}
    joins |= {name: _lookup_join(lake, table, folder / "cache", name) for name in OURS}
    streams: dict[str, Stream] = {}
    try:
        for name, join in joins.items():
            streams[name] = Stream(lake, folder / name, join, each_batch=name == "auto")
        return _take_turns(streams, files)
    finally:
        for stream in streams.values():
            stream.stop()


def _spark_join(dimension: DataFrame) -> Join:
    return lambda stream: stream.join(dimension, "id", "left")


def _lookup_join(lake: Lake, table: str, cache: Path, strategy: str) -> Join:
    options = {"lookup.cache-dir": str(cache), "lookup.strategy": strategy}
    return lambda stream: lake.lookup_join(stream, table, on="id", select=list(VALUES), options=options)


def _best_of_spark(took: Mapping[str, Took]) -> str:
    return min((name for name in took if name not in OURS), key=lambda name: took[name].work)


def _take_turns(streams: Mapping[str, Stream], files: list[Path]) -> dict[str, Took]:
    running = {name: stream for name, stream in streams.items() if _warm_up(name, stream, files)}
    all_took: dict[str, list[Took]] = {name: [] for name in running}
    for file in files:
        for name in list(running):
            took = all_took[name]
            if len(took) < _LEAST_BATCHES or sum(each.whole for each in took) < _BUDGET_SECONDS:
                latest = _run(name, running[name], file)
                if latest is None:
                    del running[name]
                else:
                    took.append(latest)
    return {
        name: Took(
            median(each.work for each in all_took[name]), median(each.whole for each in all_took[name])
        )
        for name in running
    }


def _warm_up(name: str, stream: Stream, files: list[Path]) -> bool:
    spent = 0.0
    for file in islice(cycle(files), _WARM_UP_BATCHES):
        took = _run(name, stream, file)
        if took is None:
            return False
        spent += took.whole
        if spent > _WARM_UP_SECONDS:
            break
    return True


def _run(name: str, stream: Stream, file: Path) -> Took | None:
    # Nothing, if Spark cannot make a join of its own, as of what its memory does not hold.
    try:
        return stream.run(file)
    except StreamingQueryException as error:
        if name in OURS:
            raise
        note(f"streams: Spark's join by {name} fails: {str(error).splitlines()[0][:200]}")
        return None


def _batches(folder: Path, count: int, size: int, distribution: Keys, number: int) -> list[Path]:
    folder.mkdir(parents=True)
    files = []
    for seed in range(number):
        ids = keys(distribution, count, size, seed)
        table = pa.table({"row": np.arange(size), "id": ids, "amount": (ids % 97).astype(np.int32)})
        files.append(folder / f"{seed}.parquet")
        # Two row groups, of which a core reads one each.
        pq.write_table(table, files[-1], row_group_size=(size + 1) // 2)
    return files
