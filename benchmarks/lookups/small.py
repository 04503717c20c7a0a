"""The fixed cost of a micro-batch: lookups over small dimensions, next to broadcast joins and no join.

All streams run in one session and get the same files in turn. Ratios are those of single batches, so that
what else the machine does falls on both sides.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import emit, note, ratio
from pyspark.sql import DataFrame, functions

from lockgate import Lake
from lookups.streams import Join, Stream, Took

BENCH = "lookup"
# As many rows as flights have in a month, planes, airports and hours of weather.
BATCH_ROWS = 28_000
_LEAST_ROUNDS = 15
_WARM_UP_ROUNDS = 50
_COLUMNS = ("name", "size", "weight")
_STREAM_SCHEMA = "row BIGINT, planes_id BIGINT, airports_id BIGINT, weather_id BIGINT"


class Dimension(NamedTuple):
    """A small dimension: its table, its rows, and the prefix of the new columns."""

    name: str
    rows: int


DIMENSIONS = (Dimension("planes", 3_300), Dimension("airports", 1_500), Dimension("weather", 26_000))


def small_dimensions(lake: Lake, folder: Path, repetitions: int) -> None:
    """Print three lookups over three broadcast joins, and what one and three add to a batch without any."""
    note(f"small dimensions: batches of {BATCH_ROWS:,} rows")
    for dimension in DIMENSIONS:
        _make(lake, dimension, folder)
    scratch = folder / "small"
    files = _files(scratch / "batches", 4)
    joins: dict[str, Join] = {
        "none": lambda stream: stream,
        "one": partial(_look_up, lake, scratch, DIMENSIONS[:1]),
        "three": partial(_look_up, lake, scratch, DIMENSIONS),
        "plain": partial(_broadcast, lambda one: lake.spark.read.orc(str(folder / one.name))),
        "tables": partial(_broadcast, lambda one: lake.table(f"b.{one.name}")),
    }
    streams: dict[str, Stream] = {}
    try:
        for name, join in joins.items():
            streams[name] = Stream(lake, scratch / name, join, schema=_STREAM_SCHEMA)
        took = _take_turns(streams, files, max(repetitions, _LEAST_ROUNDS))
    finally:
        for stream in streams.values():
            stream.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    _emit(took)


def _emit(took: dict[str, list[Took]]) -> None:
    work = {name: [each.work for each in all_took] for name, all_took in took.items()}
    whole = {name: [each.whole for each in all_took] for name, all_took in took.items()}
    for name in ("plain", "tables"):
        suffix = "" if name == "plain" else "_tables"
        what = "plain ORC files" if name == "plain" else "the same tables"
        remark = f"three broadcast joins of {what}: {median(work[name]):.3f} s a batch"
        remark += "; the goal: 1.0" if name == "plain" else ""
        metric = f"three_lookups_small_vs_spark{suffix}"
        emit(BENCH, metric, ratio(work[name], work["three"]), "speed", remark)
        remark = f"with the stream's log: {median(whole[name]):.3f} s a batch"
        emit(BENCH, f"{metric}_whole", ratio(whole[name], whole["three"]), "speed", remark)
    for name, metric in (
        ("one", "lookup_overhead_ms_per_batch"),
        ("three", "three_lookups_overhead_ms_per_batch"),
    ):
        more = [(ours - none) * 1000 for ours, none in zip(work[name], work["none"], strict=True)]
        remark = f"over no join: {median(work['none']) * 1000:.0f} ms a batch"
        remark += "; the goal: 40" if name == "one" else ""
        emit(BENCH, metric, median(more), "ms", remark)


def _take_turns(streams: dict[str, Stream], files: list[Path], rounds: int) -> dict[str, list[Took]]:
    took: dict[str, list[Took]] = {name: [] for name in streams}
    for number in range(-_WARM_UP_ROUNDS, rounds):
        names = list(streams) if number % 2 == 0 else list(reversed(streams))
        for name in names:
            one = streams[name].run(files[number % len(files)])
            if number >= 0:
                took[name].append(one)
    return took


def _look_up(lake: Lake, scratch: Path, dimensions: tuple[Dimension, ...], stream: DataFrame) -> DataFrame:
    options = {"lookup.cache-dir": str(scratch / "cache")}
    for one in dimensions:
        stream = lake.lookup_join(
            stream,
            f"b.{one.name}",
            on={f"{one.name}_id": "id"},
            select={f"{one.name}_{column}": column for column in _COLUMNS},
            options=options,
        )
    return stream


def _broadcast(read: Join, stream: DataFrame) -> DataFrame:
    for one in DIMENSIONS:
        side = read(one).select(
            functions.col("id").alias(f"{one.name}_id"),
            *(functions.col(column).alias(f"{one.name}_{column}") for column in _COLUMNS),
        )
        stream = stream.join(functions.broadcast(side), f"{one.name}_id", "left")
    return stream


def _make(lake: Lake, dimension: Dimension, folder: Path) -> None:
    rows = lake.spark.range(0, dimension.rows, numPartitions=1).select(
        "id",
        functions.concat(functions.lit("name of "), functions.col("id").cast("string")).alias("name"),
        (functions.col("id") % 71).cast("int").alias("size"),
        (functions.col("id") / 7).alias("weight"),
    )
    lake.sql(f"DROP TABLE IF EXISTS lake.b.{dimension.name}")
    lake.sql(
        f"CREATE TABLE lake.b.{dimension.name} (id BIGINT NOT NULL, name STRING, size INT, weight DOUBLE) "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"
    )
    rows.writeTo(f"lake.b.{dimension.name}").append()
    rows.write.mode("overwrite").orc(str(folder / dimension.name))


def _files(folder: Path, number: int) -> list[Path]:
    folder.mkdir(parents=True)
    files = []
    for seed in range(number):
        random = np.random.default_rng(seed)
        keys = {
            f"{one.name}_id": pa.array(random.integers(0, int(one.rows * 1.1), BATCH_ROWS))
            for one in DIMENSIONS
        }
        files.append(folder / f"{seed}.parquet")
        table = pa.table({"row": np.arange(BATCH_ROWS), **keys})
        pq.write_table(table, files[-1], row_group_size=(BATCH_ROWS + 1) // 2)
    return files
