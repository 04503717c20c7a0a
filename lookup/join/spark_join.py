"""The plan of a join that Spark does itself, on the snapshot that the cache would answer from.

It has the same rows, columns and types as the plan of `plan.by_cache`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions

from lockgate.errors import UnsupportedError
from lockgate.framework.store import SNAPSHOT_SOURCE
from lockgate.lookup.join.metrics import observed
from lockgate.lookup.join.pin_table import SNAPSHOT_MEMBER, STATE_MEMBERS
from lockgate.lookup.join.plan import column_named, key_types, next_number, pin_of, pin_options
from lockgate.lookup.join.spark_filter import spark_column
from lockgate.lookup.join.strategy import snapshot_for_spark, streaming_batch
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.row_selection import selection_at

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockgate.lookup.join.plan import Join
    from lockgate.pushdown import Predicate

_SNAPSHOT_OPTION = "scan.snapshot-id"


def by_spark(join: Join) -> DataFrame:
    """Plan a join that Spark does: in a stream on the snapshot of each micro-batch, else on that of now."""
    number = next_number()
    stream, mark = join.stream, f"__lockgate_match_{number}"
    pinned = f"__lockgate_pin_{number}"
    dimension, snapshot = _dimension(join)
    keys = [f"__lockgate_key_{number}_{n}" for n in range(len(join.keys))]
    values = [f"__lockgate_value_{number}_{n}" for n in range(len(join.names))]
    chosen = [
        *(column_named(column).alias(key) for column, key in zip(join.spec.keys, keys, strict=True)),
        *(column_named(column).alias(value) for column, value in zip(join.spec.columns, values, strict=True)),
        functions.lit(True).alias(mark),
    ]
    met = functions.lit(True)
    for column, key, kind in zip(join.keys, keys, key_types(join), strict=True):
        met = met & (column_named(column).cast(kind) == functions.col(key))
    if stream.isStreaming:
        pin = pin_of(join, by_spark=True)
        stream = stream.withColumn(pinned, pin[SNAPSHOT_MEMBER])
        snapshot = functions.col(pinned)
    rows = stream.join(dimension.select(*chosen), met, "left")
    found = functions.col(mark).isNotNull()
    if stream.isStreaming:
        matched = functions.count(functions.col(mark))
        state = {member: pin[member] for member in STATE_MEMBERS}  # in no column, which a shuffle would carry
        seen = functions.max(snapshot)
        rows = observed(join, rows, matched, seen, state, by_spark=True)
    if join.how == "inner":
        # A left join without what found nothing: the optimizer makes an inner one of it, and the new columns
        # may be null, as they are where the cache answers.
        rows = rows.where(found)
    rows = rows.withColumns(
        {name: functions.col(value) for name, value in zip(join.names, values, strict=True)}
    )
    if join.snapshot_column is not None:
        rows = rows.withColumn(join.snapshot_column, snapshot)
    return rows.drop(*keys, *values, mark, pinned)


def _dimension(join: Join) -> tuple[DataFrame, Column]:
    reader = join.stream.sparkSession.read
    if join.stream.isStreaming:
        # The scan of each micro-batch asks for the snapshot.
        reader = reader.option(SNAPSHOT_SOURCE.key, "pin").options(**pin_options(join, by_spark=True))
        chosen = 0
    else:
        chosen = snapshot_for_spark(join.dimension, join.spec, *streaming_batch(join.stream))[0]
        reader = reader.option(_SNAPSHOT_OPTION, str(chosen))
    where = _condition(join, chosen)
    catalog, database, table = join.name
    dimension = reader.table(f"`{catalog}`.`{database}`.`{table}`")
    if where is not None:
        dimension = dimension.where(spark_column(where))
    # Nullable, like the column that the cache's plan adds.
    return dimension, functions.nullif(functions.lit(chosen).cast("bigint"), functions.lit(-1))


def _condition(join: Join, snapshot_id: int) -> Predicate | None:
    table, spec = join.dimension, join.spec
    if not join.stream.isStreaming:
        return selection_at(table, spec, table.snapshot(snapshot_id) if snapshot_id else None).where
    if lookup_options(table.options, spec.options).scan_partitions.newest:
        raise UnsupportedError(
            "lookup.strategy=spark in a streaming plan cannot follow the newest partitions (scan.partitions="
            "max_pt()): use foreachBatch, name the partitions, or let the cache join"
        )
    return selection_at(table, spec, None).where
