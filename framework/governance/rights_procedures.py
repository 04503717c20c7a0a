"""Procedures that show rights: what a statement needs, and what its caller may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.framework.access import AccessRequest, Action, SqlDecision, Target
from lockgate.framework.plugins import current_principal, plugins
from lockgate.procedures import ProcedureContext, TypedProcedure


@dataclass(frozen=True)
class _CheckAccessArguments:
    sql: Annotated[str, "a statement of SQL other than CALL"]
    rule: Annotated[str, "`strict` or `bytequery`"] = "strict"


@dataclass(frozen=True)
class _CheckAccessRow:
    allowed: Annotated[bool, "whether the caller may run it"]
    reads: Annotated[list[str], "the points that it reads"]
    lacks: Annotated[list[str], "the missing grants, and where to apply for them"]


class CheckAccess(TypedProcedure[_CheckAccessArguments, _CheckAccessRow]):
    """Say what a statement reads and what its caller lacks for it, without running it."""

    name = "check_access"
    needs_all_rows = False  # it shows rights

    def run(self, context: ProcedureContext, arguments: _CheckAccessArguments) -> list[_CheckAccessRow]:
        """Return one row; each text of `lacks` is worded as a request for access."""
        from lockgate.framework.governance.statement_checks import check

        spark = context.require_spark("check_access")
        found = check(spark, {context.catalog_name: context.catalog}, arguments.sql, rule=arguments.rule)
        return [
            _CheckAccessRow(
                found.allowed, [point.text() for point in found.points], [*found.missing, *found.ask]
            )
        ]


@dataclass(frozen=True)
class _ShowGrantsArguments:
    table: Annotated[str | None, "the table (default: all tables of the warehouse)"] = None


@dataclass(frozen=True)
class _ShowGrantsRow:
    table: Annotated[str, "a column"]
    column: str
    values: Annotated[str, "`shown`, `masked` or `denied`"]
    rows: Annotated[str, "`all`, or `some` if policies hide rows"]


class ShowGrants(TypedProcedure[_ShowGrantsArguments, _ShowGrantsRow]):
    """Show what the caller may read of a table, or of all tables, column by column."""

    name = "show_grants"
    right = None
    needs_all_rows = False  # the rights of its caller

    def run(self, context: ProcedureContext, arguments: _ShowGrantsArguments) -> list[_ShowGrantsRow]:
        """Return one row per column: `values` is shown, masked or denied, `rows` is all or some."""
        named = arguments.table
        names = _tables(context) if named is None else [context.identifier(named)]
        return [row for name in names for row in _rows(context, name)]


def _tables(context: ProcedureContext) -> list[str]:
    catalog = context.catalog
    return [f"{space}.{name}" for space in catalog.list_namespaces() for name in catalog.list_tables(space)]


def _rows(context: ProcedureContext, name: str) -> list[_ShowGrantsRow]:
    table = context.catalog.load_table(name)
    types = {field.name: str(field.type) for field in table.schema.fields}
    named = table.identifier
    target = Target("table", f"{named.namespace}.{named.table}", named.branch, table.location)
    request = AccessRequest(current_principal(), Action.SELECT, target, frozenset(types))
    found = plugins().authorize_sql(request, types, records=False)
    if found.apply_for:  # the caller must not learn that it exists
        return []
    rows = "all" if found.row_filter is None else "some"
    return [_ShowGrantsRow(str(named), column, _values(found, column), rows) for column in types]


def _values(found: SqlDecision, column: str) -> str:
    return "denied" if column in found.denied else "masked" if column in found.masks else "shown"


PROCEDURES = (CheckAccess(), ShowGrants())
