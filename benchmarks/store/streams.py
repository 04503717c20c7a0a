"""Streams that read tables: rows a second through a query that drops them, over a batch of these rows."""

from __future__ import annotations

import tempfile
from functools import partial
from statistics import median

from harness import emit, interleaved, note, ratio

from lockgate import Lake

BENCH = "store"
KEY = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
COMMITS = 5


def stream_reads(lake: Lake, rows: int, repetitions: int) -> None:
    """Follow tables of `rows` rows in five commits from the first one, all in one batch."""
    note("streams")
    for name, properties in (("followed", ""), ("followed_keys", KEY)):
        lake.sql(f"CREATE TABLE lake.b.{name} (id BIGINT NOT NULL, n BIGINT, v STRING) {properties}")
        for part in range(COMMITS):
            first, last = (rows * number // COMMITS for number in (part, part + 1))
            lake.sql(
                f"INSERT INTO lake.b.{name} SELECT id, id % 1000, string(id) FROM range({first}, {last})"
            )
        times = interleaved(
            {"stream": partial(_follow, lake, name), "batch": partial(_read, lake, name)}, repetitions
        )
        prefix = "stream_read" if name == "followed" else "stream_read_of_keys"
        emit(BENCH, f"{prefix}_rows_per_s", rows / median(times["stream"]), "rows/s")
        emit(BENCH, f"{prefix}_ratio", ratio(times["stream"], times["batch"]), "ratio", "a batch of the rows")


def _follow(lake: Lake, name: str) -> None:
    with tempfile.TemporaryDirectory() as checkpoint:
        reader = lake.spark.readStream.option("scan.snapshot-id", "1").table(f"lake.b.{name}")
        query = (
            reader.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        if query.lastProgress is None or not query.lastProgress["numInputRows"]:
            raise RuntimeError(f"the stream of {name} read no rows")


def _read(lake: Lake, name: str) -> None:
    lake.table(f"b.{name}").write.format("noop").mode("overwrite").save()
