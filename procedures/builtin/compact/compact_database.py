"""`compact_database`: `compact` for the tables of several databases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import LockgateError
from lockgate.framework.access import Action
from lockgate.procedures.arguments import parse_pattern
from lockgate.procedures.builtin.compact.compact import Compact, CompactArguments
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    including_databases: Annotated[
        str | None, "databases whose whole names match this regular expression (default: all)"
    ] = None
    including_tables: Annotated[
        str | None, "tables whose whole names match, `database.table` (default: all)"
    ] = None
    excluding_tables: Annotated[str | None, "tables to leave out although they match (default: none)"] = None
    options: Annotated[str | None, "for this call, as in `compact`"] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _Row:
    tables: Annotated[Int, "tables that match"]
    compacted_tables: Annotated[
        Int,
        "those with a new snapshot, and those that could not be compacted; with `dry_run`, those with files "
        "to rewrite",
    ]
    failed_tables: Int
    files_rewritten: Annotated[int, "files removed and added"]
    files_written: int | None
    failures: Annotated[
        str | None, "the tables that could not be compacted, with the reasons; NULL if there are none"
    ]


class CompactDatabase(TypedProcedure[_Arguments, _Row]):
    """Compact the tables of several databases, one after the other.

    A table that cannot be compacted, because a key is missing or it has a feature that is not written here,
    is reported and counted, and the others are compacted all the same.
    """

    name = "compact_database"
    needs_all_rows = False  # each table is asked about on its own

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Compact; `failures` names the tables that were left, with the reason of each."""
        names = _names(context, arguments)
        compacted, rewritten, written, failures = 0, 0, 0, []
        for name in names:
            try:
                context.require(Action.ALTER, name)
                context.require_all_rows(name)
                request = CompactArguments(name, options=arguments.options, dry_run=arguments.dry_run)
                (row,) = Compact().run(context, request)
            except LockgateError as error:
                context.report(f"{name} is not compacted: {error}")
                failures.append(f"{name}: {error}")
                continue
            compacted += row.snapshot_id is not None or bool(arguments.dry_run and row.buckets)
            rewritten += row.files_rewritten
            written += row.files_written or 0
        files_written = None if arguments.dry_run else written
        reasons = "; ".join(failures) or None
        return [_Row(len(names), compacted, len(failures), rewritten, files_written, reasons)]


def _names(context: ProcedureContext, arguments: _Arguments) -> list[str]:
    databases = parse_pattern("including_databases", arguments.including_databases, ".*")
    wanted = parse_pattern("including_tables", arguments.including_tables, ".*")
    left = parse_pattern("excluding_tables", arguments.excluding_tables, "(?!)")
    names = [
        f"{database}.{table}"
        for database in context.catalog.list_namespaces()
        if databases.fullmatch(database)
        for table in context.catalog.list_tables(database)
    ]
    return [name for name in names if wanted.fullmatch(name) and not left.fullmatch(name)]
