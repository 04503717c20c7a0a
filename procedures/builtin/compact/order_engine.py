"""Engines that order rows: the process that is called, or Spark's tasks for more rows than it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.plugins import plugins
from lockgate.framework.store import CommitMessage, Table, confidential_in
from lockgate.framework.store.maintenance import BucketJob, RowOrder, fits_in_memory
from lockgate.procedures.builtin.compact.ordered_by_spark import live_rows, rewrite_by_spark
from lockgate.procedures.procedure import ProcedureContext

AUTO, PYTHON, SPARK = "auto", "python", "spark"
ENGINES = (AUTO, PYTHON, SPARK)
# Spark's timestamps have microseconds, and a time of day has no type of Spark here. The connector fills up
# CHAR and cuts VARCHAR, where other engines have stored texts of any length.
_NOT_OF_SPARK = re.compile(r"\bTIMESTAMP\([7-9]\)|\b(?:TIME|CHAR|VARCHAR)\(")
_SHUFFLE_ENCRYPTION = "spark.io.encryption.enabled"


def spark_order(context: ProcedureContext, order: RowOrder | None, engine: str | None) -> SparkOrder | None:
    """Return Spark as an engine for the order of rows, None if the process that is called orders all.

    Raises InputError for an unknown engine, and for Spark without an order, ProcedureError for Spark without
    a session.
    """
    chosen = (engine or AUTO).lower()
    if chosen not in ENGINES:
        raise InputError(f"order_engine cannot be {engine!r}{nearest(chosen, ENGINES)}")
    if chosen == SPARK:
        if order is None:
            raise InputError("order_engine 'spark' needs an order: give order_strategy and order_by")
        context.require_spark("order_engine 'spark'")
    if order is None or chosen == PYTHON or context.spark is None:
        return None
    return SparkOrder(context, is_asked=chosen == SPARK)


@dataclass(frozen=True)
class SparkOrder:
    """Order of rows by Spark's tasks: of all jobs if that `is_asked`, else of those beyond one process.

    Those of encrypted tables only if Spark encrypts its own files, unless asked.
    """

    context: ProcedureContext
    is_asked: bool

    def takes(self, table: Table, jobs: Sequence[BucketJob], order: RowOrder) -> Callable[[BucketJob], bool]:
        """Return a predicate on jobs; UnsupportedError for what tasks cannot do, if they are asked."""
        reason = _why_not(table, jobs)
        if self.is_asked:
            if reason is not None:
                raise UnsupportedError(
                    f"Spark cannot order the rows of table {table.identifier}: {reason}; leave out "
                    "order_engine, and the driver's process orders them"
                )
            return lambda job: live_rows(job) > 0
        if reason is not None or (confidential_in(table.schema) and not _encrypts_shuffles(self.context)):
            return lambda job: False
        return lambda job: not fits_in_memory(live_rows(job))

    def rewrite(self, table: Table, snapshot_id: int, job: BucketJob, order: RowOrder) -> CommitMessage:
        """Let tasks write the new files of a job; see `ordered_by_spark.rewrite_by_spark`."""
        return rewrite_by_spark(self.context, table, snapshot_id, job, order)


def _why_not(table: Table, jobs: Sequence[BucketJob]) -> str | None:
    """Return why a query of Spark does not see just the rows that are stored, or writes others."""
    from pyspark.sql.pandas import functions

    schema = table.schema
    if not hasattr(functions, "arrow_udf"):
        return "PySpark has the functions of its tasks (arrow_udf) since 4.1"
    if plugins().decides_access():
        return "policies decide what a query reads"
    if table.leaves_files_out or table.reads_branch:
        return "an option of the table decides which files a query reads"
    for field in schema.fields:
        if _NOT_OF_SPARK.search(str(field.type)):
            return f"column {field.name!r} is {field.type}, whose values Spark does not hold as they are"
    if len({name.lower() for name in schema.field_names}) < len(schema.field_names):
        return "names of columns differ by case alone"
    count = schema.bucket_count
    if count > 0 and any(entry.total_buckets != count for job in jobs for entry in job.entries):
        return "some partitions have another number of buckets than the table (call rescale first)"
    return None


def _encrypts_shuffles(context: ProcedureContext) -> bool:
    conf = context.spark.sparkContext.getConf()
    return str(conf.get(_SHUFFLE_ENCRYPTION, "false")).strip().lower() == "true"
