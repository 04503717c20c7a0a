"""Order of rows through Spark, for more of them than one process holds.

A sample says where ranges begin. Tasks read the files of a snapshot as they are stored and give each row its
range and its place in the order, by the code that orders rows in one process. Spark brings the rows of each
range to one task, which sorts them and writes files by the connector's own writers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import LockgateError, ProcedureError
from lockgate.framework.options import TARGET_FILE_SIZE
from lockgate.framework.store import CommitMessage, FileSource, Table
from lockgate.framework.store.maintenance import BucketJob, RowOrder, Sample
from lockgate.procedures.procedure import ProcedureContext

# A range makes one file. Its size is known by the sample alone, so it is meant to be smaller than a file.
_FILLED = 0.8
# By more ranges a sample would say too little of the size of each.
_MOST_RANGES = 1_000
_DESCRIPTION = "spark.job.description"
# Spark compares signed numbers.
_TOP_BIT = np.uint64(1 << 63)
_POSITION = "struct<range: int, key: bigint>"
_SETTINGS = {
    "spark.lockgate.result.cache": "false",
    # No value goes anywhere else.
    "spark.lockgate.lineage": "off",
}


def rewrite_by_spark(
    context: ProcedureContext, table: Table, snapshot_id: int, job: BucketJob, order: RowOrder
) -> CommitMessage:
    """Let Spark's tasks write the new files of a job and return what to commit; on an error they are deleted.

    Raises ProcedureError, with the reason, where Spark fails, and where it has written other rows than the
    files of the snapshot have.
    """
    from lockgate.framework.spark import FileRewrite, dispatcher

    paths = [table.paths.data_file(entry.partition, entry.bucket, entry.file) for entry in job.entries]
    rewrite = FileRewrite(table, snapshot_id, paths)
    try:
        with dispatcher().rewrites.begun(rewrite) as handle, _failures_named(table):
            _write_in_order(context, table, handle, job, order)
        return _replacement(table, job, rewrite.messages)
    except BaseException:
        table.abort(rewrite.messages)
        raise


def live_rows(job: BucketJob) -> int:
    """Return how many rows of a job are not deleted."""
    return sum(entry.live_rows for entry in job.entries)


def _write_in_order(
    context: ProcedureContext, table: Table, handle: str, job: BucketJob, order: RowOrder
) -> None:
    from pyspark.sql.functions import col, struct
    from pyspark.sql.pandas.functions import arrow_udf

    from lockgate.framework.spark import REWRITE

    spark, identifier = _own_session(context.spark), table.identifier
    name = f"{_quoted(context.catalog_name)}.{_quoted(identifier.namespace)}.{_quoted(identifier.name)}"
    columns = [col(_quoted(each)) for each in order.columns]
    rows = spark.read.option(REWRITE, handle).table(name)
    where = f"compact {identifier}: order of {', '.join(order.columns)}"
    with _described(spark, f"{where}, sample of the rows"):
        share = min(1.0, Sample.MOST_ROWS / live_rows(job))
        found = rows.select(*columns).sample(fraction=share, seed=0).toArrow()
    starts = Sample(found, order.curve).starts(_ranges(table, job))
    helper = _free_name(table)
    make: Any = arrow_udf  # its overloads want a type of Python
    # Its result is used several times: a deterministic function would be evaluated for each.
    locate = make(placement(found, order, starts), _POSITION).asNondeterministic()
    located = rows.select("*", locate(struct(*columns)).alias(helper))
    # Not by Spark's own ranges, of which it would take a sample by reading all rows once more.
    ranged = located.repartitionById(len(starts) + 1, col(f"{helper}.range"))
    by = columns if order.curve is None else [col(f"{helper}.key")]
    with _described(spark, f"{where}, {live_rows(job)} rows in {len(starts) + 1} ranges"):
        ranged.sortWithinPartitions(*by).drop(helper).writeTo(name).option(REWRITE, handle).append()


def placement(
    found: pa.Table, order: RowOrder, starts: npt.NDArray[np.uint64]
) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    """Return a function that gives rows, as structs of the columns of an order, their ranges and keys.

    It goes to executors by value, and needs NumPy and PyArrow there.
    """
    from pyspark import cloudpickle

    register: Any = cloudpickle.register_pickle_by_value
    for name in Sample.MODULES:
        register(sys.modules[name])
    columns, curve = list(order.columns), order.curve

    def located(batches: Sequence[pa.Array]) -> pa.Array:
        rows = pa.Table.from_arrays(pa.concat_arrays(batches).flatten(), names=columns)
        # Spark names the time zone of a timestamp in one way here, in another there.
        keys = Sample(found.cast(rows.schema), curve).keys(rows)
        numbers = np.searchsorted(starts, keys, "right").astype(np.int32)
        signed = (keys ^ _TOP_BIT).view(np.int64)
        return pa.StructArray.from_arrays([pa.array(numbers), pa.array(signed)], ["range", "key"])

    def locate(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        # The rows of a scan come a few thousand at a time, and the sample is ranked again with each part.
        waiting: list[pa.Array] = []
        for batch in batches:
            waiting.append(batch)
            if sum(map(len, waiting)) >= Sample.MOST_ROWS:
                yield located(waiting)
                waiting = []
        if waiting:
            yield located(waiting)

    return locate


def _ranges(table: Table, job: BucketJob) -> int:
    target = table.schema.table_options.get_option(TARGET_FILE_SIZE)
    size = sum(entry.file.file_size for entry in job.entries)
    return min(_MOST_RANGES, max(1, math.ceil(size / (_FILLED * target))))


def _replacement(table: Table, job: BucketJob, held: Sequence[CommitMessage]) -> CommitMessage:
    """Return the message that replaces the files of a job by those that tasks have written."""
    first = min(entry.file.min_sequence_number for entry in job.entries)
    rows, added = 0, []
    for file in (file for message in held for file in message.added):
        added.append(
            replace(
                file,
                file_source=FileSource.COMPACT,
                min_sequence_number=first + rows,
                max_sequence_number=first + rows + file.row_count - 1,
            )
        )
        rows += file.row_count
    elsewhere = [each for each in held if (each.partition, each.bucket) != (job.partition, job.bucket)]
    if rows != live_rows(job) or elsewhere:
        raise ProcedureError(
            f"compact {table.identifier}: Spark wrote {rows} rows for the {live_rows(job)} rows of bucket "
            f"{job.bucket} of partition {job.partition!r}, {len(elsewhere)} files to other buckets; nothing "
            "has changed, call it with order_engine => 'python'"
        )
    collected = {name: found for message in held for name, found in message.collected.items()}
    return CommitMessage.replacing(job.entries, added, collected)


def _own_session(spark: Any) -> Any:
    """Return a session with the catalogs and settings of another one, except those that would change rows."""
    from pyspark.sql import SparkSession

    own = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    return own


@contextmanager
def _described(spark: Any, text: str) -> Iterator[None]:
    """Let Spark's UI show a text for the jobs inside `with`."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)


@contextmanager
def _failures_named(table: Table) -> Iterator[None]:
    try:
        yield
    except LockgateError:
        raise
    except Exception as error:
        raise ProcedureError(
            f"compact {table.identifier}: Spark did not order the rows, and nothing has changed: "
            f"{_reason(error)}; repeat the call, or order them in the driver's process by "
            "order_engine => 'python'"
        ) from error


def _reason(error: Exception) -> str:
    """Return the line with the error: those of the JVM have causes, those of workers a traceback."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    first, *others = (str(error if java is None else java.getMessage()).strip() or repr(error)).splitlines()
    if not first.endswith("(most recent call last):"):
        return first
    return next((line for line in others if line.strip() and not line[0].isspace()), first)


def _free_name(table: Table) -> str:
    names = {name.lower() for name in table.schema.field_names}
    found = "lockgate_order"
    while found in names:
        found += "_"
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
