"""The stream: the months through three lookup joins into `lake.flights.enriched`, and a change on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from flights.data import FlightsData, release
from flights.lake import AIRPORTS, PLANES, REFITTED, RETIRED, WEATHER, busy_planes, refit, retire
from flights.story import Batch, Story, human_bytes
from lockgate import Lake
from lockgate.lookup import LookupStatus, status, statuses, wait_for

DIMENSIONS = ("planes", "airports", "weather")
WEATHER_KEY = ("origin", "year", "month", "day", "hour")
NEW_MODEL, NEW_SEATS = "Lockgate LG-1", 199


class StreamError(Exception):
    """Raised when the stream stops or does not get on."""


def read_months(spark: SparkSession, staged: Sequence[Path], incoming: Path) -> DataFrame:
    """A stream of the months that appear in `incoming`, one file a micro-batch."""
    incoming.mkdir(parents=True, exist_ok=True)
    schema = spark.read.parquet(str(staged[0])).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(incoming))


def enrich(lake: Lake, flights: DataFrame, cache: Path) -> DataFrame:
    """Join flights with planes, airports (by destination) and weather, each from one snapshot a batch.

    The lookups' caches, which hold decrypted values, lie in the folder `cache`.
    """
    options = {"lookup.cache-dir": str(cache)}
    dimensions = (
        ("planes", "tailnum", PLANES),
        ("airports", {"dest": "faa"}, AIRPORTS),
        ("weather", list(WEATHER_KEY), WEATHER),
    )
    for name, on, columns in dimensions:
        snapshot = f"{name}_snapshot"
        flights = lake.lookup_join(
            flights, f"flights.{name}", on=on, select=list(columns), snapshot_column=snapshot, options=options
        )
    return flights


def run(lake: Lake, data: FlightsData, staged: Sequence[Path], folder: Path, story: Story) -> list[str]:
    """Stream the year; after June change planes in SQL and go on when the lookup has seen it.

    Returns the tail numbers that were updated, then those that were deleted.
    """
    incoming = folder / "incoming"
    enriched = enrich(lake, read_months(lake.spark, staged, incoming), folder / "cache")
    query = (
        enriched.writeStream.queryName("enriched")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .toTable("lake.flights.enriched")
    )
    busy = busy_planes(data, story.updated_before_month)
    changed, others = busy[: REFITTED + RETIRED], busy[REFITTED + RETIRED :]
    journal = Journal(lake, story)
    watch = Watch(query, journal.note, journal.look)
    try:
        for count, path in enumerate(staged[: story.updated_before_month - 1]):
            release(path, incoming)
            watch.until(count + 1)
        story.update_seconds = change(lake, changed)
        for count, path in enumerate(staged[story.updated_before_month - 1 :]):
            release(path, incoming)
            watch.until(story.updated_before_month + count)
            # From here on one more plane changes before each month, and nobody waits for the cache.
            if path != staged[-1]:
                refit(lake, others[count : count + 1], NEW_MODEL, NEW_SEATS)
    finally:
        query.stop()
    return changed


def change(lake: Lake, tailnums: Sequence[str]) -> float:
    """Update 100 planes, delete 10, wait until the lookup serves that; return the seconds of the waiting."""
    refit(lake, tailnums[:REFITTED], NEW_MODEL, NEW_SEATS)
    retire(lake, tailnums[REFITTED:])
    newest = lake.catalog.load_table("flights.planes").latest_snapshot()
    assert newest is not None
    started = time.monotonic()
    wait_for("lake.flights.planes", newest.id, timeout=60)
    seconds = time.monotonic() - started
    print(
        f"  the stream runs: {REFITTED} planes updated, {len(tailnums) - REFITTED} deleted in SQL; "
        f"the lookup serves snapshot {newest.id} after {seconds:.2f} s"
    )
    return seconds


class Watch:
    """Follows a running query: `note` gets each batch's progress, `look` is called in between."""

    def __init__(
        self,
        query: StreamingQuery,
        note: Callable[[StreamingQuery, Any], None],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._query = query
        self._note = note
        self._look = look
        self._seen = -1

    def until(self, batches: int, timeout: float = 300.0) -> None:
        """Wait until so many batches are done. Raises StreamError if the query fails or takes too long."""
        deadline = time.monotonic() + timeout
        while self._seen + 1 < batches:
            self._look()
            for progress in self._new():
                self._seen = progress.batchId
                self._note(self._query, progress)
            if not self._query.isActive:
                # The message goes on with the whole plan, pages of it.
                reason = str(self._query.exception()).partition("=== Streaming Query ===")[0]
                raise StreamError(f"the stream stopped: {reason}")
            if time.monotonic() > deadline:
                raise StreamError(f"batch {batches} was not done after {timeout:.0f} s: {self._query.status}")
            time.sleep(0.02)

    def _new(self) -> Iterator[Any]:
        for progress in self._query.recentProgress:
            if progress.batchId > self._seen and progress.numInputRows > 0:
                yield progress


class Journal:
    """Writes down each batch, and when each snapshot of planes could first be served."""

    def __init__(self, lake: Lake, story: Story) -> None:
        self._planes = lake.catalog.load_table("flights.planes")
        self._story = story
        self._served: dict[int, float] = {}

    def look(self) -> None:
        """Note which snapshot of planes is served now and since when; to be called often."""
        for lookup in statuses():
            if lookup.table.endswith("planes") and lookup.served_snapshot is not None:
                self._served.setdefault(lookup.served_snapshot, lookup.built_millis / 1000)

    def note(self, query: StreamingQuery, progress: Any) -> None:
        """Remember a batch and print its line."""
        lookups = {name: status(f"lake.flights.{name}") for name in DIMENSIONS}
        snapshots = {
            name: pinned(lookup, str(query.id), progress.batchId) for name, lookup in lookups.items()
        }
        batch = Batch(
            number=progress.batchId,
            month=progress.batchId + 1,
            rows=progress.numInputRows,
            seconds=seconds_of(progress),
            snapshots=snapshots,
            cache_bytes=sum(lookup.bytes for lookup in lookups.values()),
            lag=self._lag(snapshots["planes"]),
            newest=self._newest_at(started_at(progress)),
        )
        self._story.batches.append(batch)
        print(f"  {line(batch)}", flush=True)

    def _lag(self, snapshot: int) -> float:
        """Seconds from a snapshot's commit until it was served; 0 for the one the stream began with."""
        if not self._story.batches or snapshot == self._story.batches[0].snapshots["planes"]:
            return 0.0
        return max(0.0, self._served[snapshot] - self._planes.snapshot(snapshot).time_millis / 1000)

    def _newest_at(self, moment: float) -> int:
        """The newest snapshot of planes at a time, in seconds since the epoch."""
        return max(one.id for one in self._planes.snapshots() if one.time_millis / 1000 <= moment)


def line(batch: Batch) -> str:
    """The line of progress of a batch."""
    snapshots = ", ".join(f"{name} #{number}" for name, number in batch.snapshots.items())
    if batch.newest > batch.snapshots["planes"]:
        snapshots = snapshots.replace(",", f" of {batch.newest},", 1)
    return (
        f"2013-{batch.month:02d}  {batch.rows:6,} rows  {batch.rows_per_second:7,.0f} rows/s  {snapshots}  "
        f"cache {human_bytes(batch.cache_bytes)}  lag {batch.lag:.2f} s"
    )


def pinned(lookup: LookupStatus, query_id: str, batch_id: int) -> int:
    """The snapshot that answered a batch, as the lookup recorded it."""
    for pin in reversed(lookup.pins):
        if str(pin.query_id) == query_id and int(pin.batch_id) == batch_id:
            return pin.snapshot_id
    raise StreamError(f"{lookup.table} has no pin for batch {batch_id}: {lookup.pins}")


def seconds_of(progress: Any) -> float:
    """The whole time of a batch, from its trigger to its commit."""
    return float(progress.durationMs["triggerExecution"]) / 1000


def started_at(progress: Any) -> float:
    """When a batch began, in seconds since the epoch."""
    return datetime.fromisoformat(progress.timestamp).timestamp()
