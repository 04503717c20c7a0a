"""Procedures that show rights: what a statement needs, and what its caller may read."""

from __future__ import annotations

from typing import Any

from lockgate.framework.access import AccessRequest, Action, SqlDecision, Target
from lockgate.framework.plugins import current_principal, plugins
from lockgate.procedures import Parameter, Procedure, ProcedureContext


class CheckAccess(Procedure):
    """Shows what a statement reads and what its caller lacks for it, without running it."""

    name = "check_access"
    needs_all_rows = False  # it shows rights
    description = "Say what a statement reads and what its caller lacks for it, without running it."
    parameters = (
        Parameter("sql", "STRING", doc="a statement of SQL other than CALL"),
        Parameter("rule", "STRING", "strict", "`strict` or `bytequery`"),
    )
    result = (("allowed", "BOOLEAN"), ("reads", "ARRAY<STRING>"), ("lacks", "ARRAY<STRING>"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Return one row; each text of `lacks` is worded as a request for access."""
        from lockgate.framework.governance.statement_checks import check

        spark = context.require_spark("check_access")
        found = check(
            spark, {context.catalog_name: context.catalog}, arguments["sql"], rule=arguments["rule"]
        )
        return [(found.allowed, [point.text() for point in found.points], [*found.missing, *found.ask])]


class ShowGrants(Procedure):
    """Shows what its caller may read, column by column, and whether policies hide rows."""

    name = "show_grants"
    description = "Show what the caller may read of a table, or of all tables, column by column."
    right = None
    needs_all_rows = False  # the rights of its caller
    parameters = (Parameter("table", "STRING", None, "the table; default: all tables of the warehouse"),)
    result = (("table", "STRING"), ("column", "STRING"), ("values", "STRING"), ("rows", "STRING"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Return one row per column: `values` is shown, masked or denied, `rows` is all or some."""
        named = arguments["table"]
        names = _tables(context) if named is None else [context.identifier(named)]
        return [row for name in names for row in _rows(context, name)]


def _tables(context: ProcedureContext) -> list[str]:
    catalog = context.catalog
    return [f"{space}.{name}" for space in catalog.list_namespaces() for name in catalog.list_tables(space)]


def _rows(context: ProcedureContext, name: str) -> list[tuple[str, str, str, str]]:
    table = context.catalog.load_table(name)
    types = {field.name: str(field.type) for field in table.schema.fields}
    named = table.identifier
    target = Target("table", f"{named.namespace}.{named.table}", named.branch, table.location)
    request = AccessRequest(current_principal(), Action.SELECT, target, frozenset(types))
    found = plugins().authorize_sql(request, types, records=False)
    if found.apply_for:  # the caller must not learn that it exists
        return []
    rows = "all" if found.row_filter is None else "some"
    return [(str(named), column, _values(found, column), rows) for column in types]


def _values(found: SqlDecision, column: str) -> str:
    return "denied" if column in found.denied else "masked" if column in found.masks else "shown"


PROCEDURES = (CheckAccess(), ShowGrants())
