"""The choice of the join: by the cache, or by Spark itself on the same snapshot.

The cache costs what the batch's rows cost; Spark's own join costs what both sides cost, with less for each
row. So the cache wins until the batch is about as large as the table.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.framework.spark import java_class
from lockgate.lookup.cache.builder import check_mark, fingerprint
from lockgate.lookup.cache.version_info import mark_of
from lockgate.lookup.driver.lookup_registry import serving
from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots, shared_pinned_snapshots
from lockgate.lookup.join.jvm import answers_in_jvm
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_spec import cache_id, layout_of, pin_id
from lockgate.lookup.spec.row_selection import selection_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockgate.framework.store import Snapshot, Table
    from lockgate.lookup.spec.lookup_spec import LookupSpec

# Held while the driver runs: they know the snapshot of each batch.
_pinned_snapshots: dict[tuple[str, str], PinnedSnapshots] = {}

_log = logging.getLogger("lockgate.lookup")

BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"

# Spark's own join was the faster one in batches of at least this share of the table's rows: where Python
# workers look up, and where the JVM does.
_SPARK_FROM, _SPARK_FROM_IN_JVM = 0.5, 1.5
# Spark's size of anything unknown: spark.sql.defaultSizeInBytes.
_UNKNOWN_BYTES = 2**62
_OVERHEAD_BYTES = 8


@dataclass(frozen=True)
class Choice:
    """The chosen join, and its reasons: rows of the batch (None: unknown) and of the table."""

    by_spark: bool
    batch_rows: int | None = None
    table_rows: int | None = None


def choose(stream: DataFrame, table: Table, spec: LookupSpec) -> Choice:
    """Choose by `lookup.strategy`; `auto` compares the batch with the table, in a stream it is the cache."""
    strategy = lookup_options(table.options, spec.options).strategy
    if strategy != "auto":
        return Choice(strategy == "spark")
    if stream.isStreaming:
        # The plan is made once, before there is a batch. No batch can make the cache slow.
        return Choice(by_spark=False)
    newest = table.newest_change()
    table_rows = 0 if newest is None else _rows_of(table, spec, newest)
    rows = batch_rows(stream)
    large = rows is not None and is_large(rows, table_rows, spark_from(table, spec))
    choice = Choice(large, rows, table_rows)
    _log.debug("%s: %s", spec.identifier, choice)
    return choice


def _rows_of(table: Table, spec: LookupSpec, newest: Snapshot) -> int:
    partitions = lookup_options(table.options, spec.options).scan_partitions
    if not partitions:
        return newest.total_record_count
    return table.scan(
        selection_at(table, spec, newest).where, snapshot_id=newest.id, own_schema=False
    ).row_count


def spark_from(table: Table, spec: LookupSpec) -> float:
    """Return the share of the table's rows from which on Spark's own join of a batch is the faster one."""
    options, layout = lookup_options(table.options, spec.options), layout_of(spec, table.schema)
    in_jvm = options.retry is None and not options.shuffle and answers_in_jvm(table, spec, layout, options)
    return _SPARK_FROM_IN_JVM if in_jvm else _SPARK_FROM


def is_large(batch_rows: int, table_rows: int, share: float) -> bool:
    """Return whether a batch has at least a `share` of so many rows as the table."""
    return batch_rows > 0 and batch_rows >= share * table_rows


def batch_rows(batch: DataFrame) -> int | None:
    """Estimate the rows of a batch DataFrame without running it; None if nothing is known of them.

    The estimate comes from Spark's statistics (exact for cached and local rows, else by bytes), or from the
    batch before, in `foreachBatch` on a source without statistics.
    """
    plan = _jvm_plan(batch)
    statistics = plan.stats()
    counted = statistics.rowCount()
    if counted.isDefined():
        return int(str(counted.get()))
    size = int(str(statistics.sizeInBytes()))
    if size < _UNKNOWN_BYTES:
        width = _OVERHEAD_BYTES + sum(field.dataType().defaultSize() for field in plan.schema().fields())
        return int(size // width)
    return _rows_before(batch)


def _jvm_plan(batch: DataFrame) -> Any:
    # By a new query: the DataFrame's own may have been planned before it was cached.
    return batch.select("*")._jdf.queryExecution().optimizedPlan()


def _rows_before(batch: DataFrame) -> int | None:
    query_id, batch_id = streaming_batch(batch)
    if query_id is None or not batch_id:
        return None
    session: Any = batch.sparkSession
    # The session of a batch is a copy, which does not list the query it works for.
    number = java_class(session, "java.util.UUID").fromString(query_id)
    query = session._jsparkSession.sharedState().activeStreamingQueries().get(number)
    progress = None if query is None else query.lastProgress()
    rows = 0 if progress is None else int(progress.numInputRows())
    return rows or None


def streaming_batch(batch: DataFrame) -> tuple[str | None, int | None]:
    """Return the query and number of the micro-batch that this thread works on, as in `foreachBatch`."""
    context = batch.sparkSession.sparkContext
    query_id, number = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    return (None, None) if query_id is None or number is None else (query_id, int(number))


def snapshot_for_spark(
    table: Table, spec: LookupSpec, query_id: str | None, batch_id: int | None
) -> tuple[int, int, int, int, int]:
    """Choose the snapshot that Spark joins a batch with, and protect it until the batch is committed.

    Where a lookup serves the same rows already, its snapshot is taken: a batch never sees an older one than
    the batch before, by whichever join. Returns the snapshot (0: there is none) and what `$pin` says of
    it: lag in milliseconds, rows, bytes (0: nothing is cached) and milliseconds to build.
    """
    lookup_id = pin_id(table, spec)
    pinned = None
    if query_id is not None and batch_id is not None:
        pins = _pinned_snapshots.setdefault(
            (table.location, lookup_id), shared_pinned_snapshots(table, lookup_id)
        )
        pinned = pins.get(query_id, batch_id)
    newest = table.newest_change()
    if pinned is None:
        pinned = serving(cache_id(table, spec)) or (0 if newest is None else newest.id)
        if query_id is not None and batch_id is not None:
            pins.record(query_id, batch_id, pinned, pinned and mark_of(fingerprint(table.snapshot(pinned))))
    elif query_id is not None and batch_id is not None and pinned:
        check_mark(table, pinned, pins.mark(query_id, batch_id))
    rows = 0 if newest is None else newest.total_record_count
    return pinned, 0, rows, 0, 0
