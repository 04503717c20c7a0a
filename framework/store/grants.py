"""Access to tables: requests to plugins, with the names that plugins use."""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, Decision, Principal, Target
from lockgate.framework.plugins import authorize, current_principal, plugins
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.identifier import Identifier

_CHANGES = frozenset({Action.UPDATE, Action.DELETE})


def grant(
    table: TableHandle,
    action: Action,
    columns: Iterable[str] | None = None,
    principal: Principal | None = None,
) -> Decision:
    """Return the decision about an action on a table; AccessDeniedError says what to apply for.

    Rows are changed and deleted by those alone who see all rows and values of the table: others would change
    what is hidden from them, or store masks.
    """
    who = principal or table.principal
    decision = grant_by_name(action, table.identifier, table.location, columns, who)
    if action in _CHANGES and plugins().decides_access():
        _require_whole(table, action, who or current_principal())
    return decision


def _require_whole(table: TableHandle, action: Action, principal: Principal) -> None:
    types = {field.name: str(field.type) for field in table.schema.fields}
    name = f"{table.identifier.namespace}.{table.identifier.table}"
    target = Target("table", name, table.identifier.branch, table.location)
    request = AccessRequest(principal, Action.SELECT, target, frozenset(types))
    seen = plugins().authorize_sql(request, types, records=False)
    if seen.row_filter is not None or seen.masks:
        needed = f"SELECT on table {table.identifier} without row filter and masks"
        raise AccessDeniedError(
            f"{action} on table {table.identifier} would reach rows and values that are hidden from user "
            f"{principal.user!r}; apply for: {needed}",
            (needed,),
        )


def grant_by_name(
    action: Action,
    identifier: Identifier,
    location: str,
    columns: Iterable[str] | None = None,
    principal: Principal | None = None,
) -> Decision:
    """Return the decision about a table that need not exist yet; AccessDeniedError as `grant`."""
    name = f"{identifier.namespace}.{identifier.table}"
    return authorize(action, Target("table", name, identifier.branch, location), columns, principal)


def grant_database(action: Action, name: str, location: str, principal: Principal | None = None) -> Decision:
    """Return the decision about an action on a database; AccessDeniedError as `grant`."""
    return authorize(action, Target("database", name, location=location), principal=principal)
