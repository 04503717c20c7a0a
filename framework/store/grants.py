"""Access to tables: the question to the plugins, named as they know tables."""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.framework.access import Action, Decision, Principal, Target
from lockgate.framework.plugins import authorize
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.identifier import Identifier


def grant(
    table: TableHandle,
    action: Action,
    columns: Iterable[str] | None = None,
    principal: Principal | None = None,
) -> Decision:
    """Return the decision about an action on a table; AccessDeniedError says what to apply for."""
    return grant_by_name(action, table.identifier, table.location, columns, principal or table.principal)


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
