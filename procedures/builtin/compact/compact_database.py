"""`compact_database`: `compact` for the tables of several databases."""

from __future__ import annotations

from typing import Any

from lockgate.errors import LockgateError
from lockgate.framework.access import Action
from lockgate.procedures.arguments import OPTIONS, parse_pattern
from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext


class CompactDatabase(Procedure):
    """Compacts every table whose name matches, one after the other; each has a snapshot of its own.

    A table that cannot be compacted, because a key is missing or it has a feature that is not written here,
    is reported and counted, and the others are compacted all the same.
    """

    name = "compact_database"
    needs_all_rows = False  # each table is asked about on its own
    description = "Compact the tables of several databases, one after the other."
    parameters = (
        Parameter("including_databases", "STRING", None, "pattern of databases (default: all)"),
        Parameter("including_tables", "STRING", None, "pattern of 'database.table' (default: all)"),
        Parameter("excluding_tables", "STRING", None, "pattern of 'database.table' to leave (default: none)"),
        Parameter("options", "STRING", None, OPTIONS),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be rewritten"),
    )
    result = (
        ("tables", "INT"),
        ("compacted_tables", "INT"),
        ("failed_tables", "INT"),
        ("files_rewritten", "BIGINT"),
        ("files_written", "BIGINT"),
        ("failures", "STRING"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Compact; `failures` names the tables that were left, with the reason of each."""
        names = _names(context, arguments)
        wishes = {each.name: None for each in Compact.parameters if not each.required}
        wishes |= {name: arguments[name] for name in ("options", "dry_run")}
        compacted, rewritten, written, failures = 0, 0, 0, []
        for name in names:
            try:
                context.require(Action.ALTER, name)
                context.require_all_rows(name)
                row = dict(zip(_COLUMNS, Compact().call(context, table=name, **wishes)[0], strict=True))
            except LockgateError as error:
                context.report(f"{name} is not compacted: {error}")
                failures.append(f"{name}: {error}")
                continue
            compacted += row["snapshot_id"] is not None or bool(arguments["dry_run"] and row["buckets"])
            rewritten += row["files_rewritten"]
            written += row["files_written"] or 0
        files_written = None if arguments["dry_run"] else written
        reasons = "; ".join(failures) or None
        return [(len(names), compacted, len(failures), rewritten, files_written, reasons)]


_COLUMNS = tuple(name for name, _ in Compact.result)


def _names(context: ProcedureContext, arguments: dict[str, Any]) -> list[str]:
    databases = parse_pattern("including_databases", arguments["including_databases"], ".*")
    wanted = parse_pattern("including_tables", arguments["including_tables"], ".*")
    left = parse_pattern("excluding_tables", arguments["excluding_tables"], "(?!)")
    names = [
        f"{database}.{table}"
        for database in context.catalog.list_namespaces()
        if databases.fullmatch(database)
        for table in context.catalog.list_tables(database)
    ]
    return [name for name in names if wanted.fullmatch(name) and not left.fullmatch(name)]
