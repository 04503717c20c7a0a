"""Procedures of lineage: traces, readers, places of plaintext, compaction."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.lineage.answer import answer
from lockgate.framework.lineage.questions.impact import readers
from lockgate.framework.lineage.questions.secrets import confidential_in
from lockgate.framework.lineage.questions.sensitivity import plaintext
from lockgate.framework.lineage.questions.vertices import processes
from lockgate.framework.lineage.readable import Readable, find_readable
from lockgate.framework.lineage.store.segment_compaction import compact
from lockgate.framework.lineage.warehouse_lineage import WarehouseLineage, lineage_of
from lockgate.procedures import DryRun, Int, Procedure, ProcedureContext, TableName, TypedProcedure


@dataclass(frozen=True)
class _TraceLineageArguments:
    name: Annotated[str, "`db.table`, `db.table.column`, `db.table@snapshot.column` or `path#column`"]
    direction: Annotated[str, "`back`, `forward` or `both`"] = "back"
    depth: Annotated[Int | None, "most edges to follow from the column (default: no limit)"] = None
    kinds: Annotated[str, "kinds of edges: `direct`, `plain`, `all`, or a list of kinds"] = "direct"


@dataclass(frozen=True)
class _TraceLineageRow:
    depth: Annotated[Int, "edges between the column and this edge's far end"]
    source: Annotated[str, "the two columns"]
    target: str
    kinds: Annotated[str, "the [kinds](#answers) of the edge"]
    process: Annotated[str, "the process that made the edge"]
    runs: Annotated[int, "its runs"]


class TraceLineage(TypedProcedure[_TraceLineageArguments, _TraceLineageRow]):
    """Trace a column or a table to its origins, or to what is made of it."""

    needs_all_rows = False  # it shows names of columns
    name = "lineage"

    def run(self, context: ProcedureContext, arguments: _TraceLineageArguments) -> list[_TraceLineageRow]:
        """Return the edges in the order of a walk in depth."""
        with _lineage(context).reading() as database:
            found = answer(
                database,
                arguments.name,
                Readable(context.catalog),
                catalog=context.catalog_name,
                direction=arguments.direction,
                depth=arguments.depth,
                kinds=arguments.kinds,
            )
        return [
            _TraceLineageRow(
                *(row["depth"], row["source"], row["target"]),
                *(",".join(row["kinds"]), row["process"], row["runs"]),
            )
            for row in (edge.row() for edge in found.found)
        ]


@dataclass(frozen=True)
class _ImpactArguments:
    table: TableName
    column: Annotated[str | None, "the column (default: all columns)"] = None


@dataclass(frozen=True)
class _ImpactRow:
    reader: Annotated[str, "the table, view or file that reads it"]
    process: Annotated[str, "the process that wrote the reader"]
    kinds: Annotated[str, "the kinds of its edges"]
    depth: Annotated[Int, "edges between the two"]
    last_run: Annotated[datetime.datetime | None, "the last run of the process"]


class Impact(TypedProcedure[_ImpactArguments, _ImpactRow]):
    """List everything that reads a table or a column, directly or through others."""

    right = None  # tables that its caller may not read are left out
    needs_all_rows = False
    name = "impact"

    def run(self, context: ProcedureContext, arguments: _ImpactArguments) -> list[_ImpactRow]:
        """Return the readers, the nearest first."""
        column = arguments.column
        name = arguments.table if column is None else f"{arguments.table}.{column}"
        may_read = Readable(context.catalog)
        with _lineage(context).reading() as database:
            start = find_readable(database, name, context.catalog_name, may_read)
            found = [each for each in readers(database, start.fields) if may_read(each.vertex)]
        return [
            _ImpactRow(
                *(each.vertex.qualified, each.process, ",".join(each.kinds), each.depth),
                None
                if each.last is None
                else datetime.datetime.fromtimestamp(each.last / 1000, datetime.UTC),
            )
            for each in found
        ]


@dataclass(frozen=True)
class _PlaintextArguments:
    key: Annotated[str | None, "the key of the columns (default: all keys)"] = None


@dataclass(frozen=True)
class _PlaintextRow:
    key: Annotated[str, "the key of the encrypted column"]
    target: Annotated[str, "the column that holds values of it"]
    how: Annotated[str, "`plain` or `masked`"]
    written_by: Annotated[str, "the kinds of the processes that wrote it"]


class Plaintext(TypedProcedure[_PlaintextArguments, _PlaintextRow]):
    """List what holds values of encrypted columns without the same encryption."""

    needs_all_rows = False  # it shows names of columns
    name = "plaintext"

    def run(self, context: ProcedureContext, arguments: _PlaintextArguments) -> list[_PlaintextRow]:
        """Return the places, those in the clear before those of which only hashes and counts are left."""
        secrets = confidential_in(context.catalog)
        with _lineage(context).reading() as database:
            may_read = Readable(context.catalog)
            found = [each for each in plaintext(database, secrets, arguments.key) if may_read(each.vertex)]
            by = processes(database, {number for each in found for number in each.processes})
        return [
            _PlaintextRow(
                *(each.key, each.vertex.qualified, each.how),
                ",".join(sorted({by[number]["kind"] for number in each.processes})),
            )
            for each in found
        ]


@dataclass(frozen=True)
class _CompactLineageArguments:
    retain_days: Annotated[Int, "days for which details of runs are kept; their sums stay for good"] = 90
    dry_run: DryRun = False


@dataclass(frozen=True)
class _CompactLineageRow:
    days: Annotated[Int, "days whose files are merged, or lose details"]
    files_before: Annotated[Int, "files of lineage before and after"]
    files_after: Int
    processes: Annotated[Int, "processes and runs that they hold afterwards"]
    runs: Int
    damaged_files: Annotated[Int, "files that cannot be read"]


class CompactLineage(TypedProcedure[_CompactLineageArguments, _CompactLineageRow]):
    """Merge the lineage files of each day into one, and drop details of old runs."""

    needs_all_rows = False  # it counts runs of statements
    name = "compact_lineage"

    def run(self, context: ProcedureContext, arguments: _CompactLineageArguments) -> list[_CompactLineageRow]:
        """Return counts of what was done, or would be."""
        if arguments.retain_days < 0:
            raise InputError("retain_days must be 0 or more")
        lineage = _lineage(context)
        lineage.journal.flush()
        done = compact(lineage.segments, retain_days=arguments.retain_days, dry_run=arguments.dry_run)
        counts = _CompactLineageRow(
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
