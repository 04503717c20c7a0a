"""Procedures of lineage: traces, readers, places of plaintext, compaction."""

from __future__ import annotations

from typing import Any, ClassVar

from lockgate.errors import InputError
from lockgate.framework.lineage.answer import answer
from lockgate.framework.lineage.questions.impact import readers
from lockgate.framework.lineage.questions.secrets import confidential_in
from lockgate.framework.lineage.questions.sensitivity import plaintext
from lockgate.framework.lineage.questions.vertices import processes
from lockgate.framework.lineage.readable import Readable, find_readable
from lockgate.framework.lineage.store.segment_compaction import compact
from lockgate.framework.lineage.warehouse_lineage import WarehouseLineage, lineage_of
from lockgate.procedures import Parameter, Procedure, ProcedureContext

Rows = list[tuple[Any, ...]]


class TraceLineage(Procedure):
    """`lineage`: the edges that lead to a column, or away from it."""

    needs_all_rows = False  # it shows names of columns
    name: ClassVar[str] = "lineage"
    description: ClassVar[str] = "Trace a column or a table to its origins, or to what is made of it."
    parameters = (
        Parameter("name", "STRING", doc="db.table, db.table.column, db.table@snapshot.column or path#column"),
        Parameter("direction", "STRING", "back", "back, forward or both"),
        Parameter("depth", "INT", None, "most edges to follow from the column; default: no limit"),
        Parameter("kinds", "STRING", "direct", "kinds of edges: direct, plain, all, or a list of kinds"),
    )
    result = (
        ("depth", "INT"),
        ("source", "STRING"),
        ("target", "STRING"),
        ("kinds", "STRING"),
        ("process", "STRING"),
        ("runs", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> Rows:
        """Return the edges in the order of a walk in depth."""
        with _lineage(context).reading() as database:
            found = answer(
                database,
                arguments.pop("name"),
                Readable(context.catalog),
                catalog=context.catalog_name,
                **arguments,
            )
        return [
            (row["depth"], row["source"], row["target"], ",".join(row["kinds"]), row["process"], row["runs"])
            for row in (edge.row() for edge in found.found)
        ]


class Impact(Procedure):
    """`impact`: everything that reads a table or a column."""

    right = None  # tables that its caller may not read are left out
    needs_all_rows = False
    name: ClassVar[str] = "impact"
    description: ClassVar[str] = "List everything that reads a table or a column, directly or through others."
    parameters = (
        Parameter("table", "STRING", doc="the table, `database.table`"),
        Parameter("column", "STRING", None, "the column; default: all columns"),
    )
    result = (
        ("reader", "STRING"),
        ("process", "STRING"),
        ("kinds", "STRING"),
        ("depth", "INT"),
        ("last_run", "TIMESTAMP"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> Rows:
        """Return the readers, the nearest first."""
        from datetime import UTC, datetime

        column = arguments["column"]
        name = arguments["table"] if column is None else f"{arguments['table']}.{column}"
        may_read = Readable(context.catalog)
        with _lineage(context).reading() as database:
            start = find_readable(database, name, context.catalog_name, may_read)
            found = [each for each in readers(database, start.fields) if may_read(each.vertex)]
        return [
            (
                *(each.vertex.qualified, each.process, ",".join(each.kinds), each.depth),
                None if each.last is None else datetime.fromtimestamp(each.last / 1000, UTC),
            )
            for each in found
        ]


class Plaintext(Procedure):
    """`plaintext`: where values of encrypted columns lie in the clear."""

    needs_all_rows = False  # it shows names of columns
    name: ClassVar[str] = "plaintext"
    description: ClassVar[str] = "List what holds values of encrypted columns without the same encryption."
    parameters = (Parameter("key", "STRING", None, "the key of the columns; default: all keys"),)
    result = (("key", "STRING"), ("target", "STRING"), ("how", "STRING"), ("written_by", "STRING"))

    def call(self, context: ProcedureContext, **arguments: Any) -> Rows:
        """Return the places, those in the clear before those of which only hashes and counts are left."""
        secrets = confidential_in(context.catalog)
        with _lineage(context).reading() as database:
            may_read = Readable(context.catalog)
            found = [each for each in plaintext(database, secrets, arguments["key"]) if may_read(each.vertex)]
            by = processes(database, {number for each in found for number in each.processes})
        return [
            (
                *(each.key, each.vertex.qualified, each.how),
                ",".join(sorted({by[number]["kind"] for number in each.processes})),
            )
            for each in found
        ]


class CompactLineage(Procedure):
    """`compact_lineage`: fewer and smaller segments."""

    needs_all_rows = False  # it counts runs of statements
    name: ClassVar[str] = "compact_lineage"
    description: ClassVar[str] = "Merge the lineage files of each day into one, and drop details of old runs."
    parameters = (
        Parameter(
            "retain_days", "INT", 90, "days for which details of runs are kept; their sums stay for good"
        ),
        Parameter("dry_run", "BOOLEAN", default=False, doc="only count"),
    )
    result = (
        ("days", "INT"),
        ("files_before", "INT"),
        ("files_after", "INT"),
        ("processes", "INT"),
        ("runs", "INT"),
        ("damaged_files", "INT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> Rows:
        """Return counts of what was done, or would be."""
        if arguments["retain_days"] < 0:
            raise InputError("retain_days must be 0 or more")
        lineage = _lineage(context)
        lineage.journal.flush()
        done = compact(lineage.segments, retain_days=arguments["retain_days"], dry_run=arguments["dry_run"])
        counts = (
            done.days,
            done.segments_before,
            done.segments_after,
            done.processes,
            done.runs,
            done.damaged,
        )
        return [counts]


def _lineage(context: ProcedureContext) -> WarehouseLineage:
    """Return the lineage of the warehouse; of statements that have ended by now, where Spark is there."""
    if context.spark is not None:
        from lockgate.framework.lineage.pending_statements import wait_for_records

        wait_for_records(context.spark)
    return lineage_of(context.catalog)


PROCEDURES: tuple[Procedure, ...] = (TraceLineage(), Impact(), Plaintext(), CompactLineage())
