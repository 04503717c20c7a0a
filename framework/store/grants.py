"""Access to tables: requests to plugins, with the names that plugins use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, Decision, Principal, SqlDecision, Target
from lockgate.framework.plugins import authorize, current_principal, plugins
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.metadata.identifier import Identifier

_CHANGES = frozenset({Action.UPDATE, Action.DELETE})


def grant(
    table: TableHandle,
    action: Action,
    columns: Iterable[str] | None = None,
    principal: Principal | None = None,
) -> Decision:
    """Return the decision about an action on a table; AccessDeniedError says what to apply for.

    UPDATE and DELETE need full visibility: without it they would change hidden rows or store masks. So does
    INSERT into a key table, where a row replaces or merges with a stored row of its key.
    """
    who = principal or table.principal
    decision = grant_by_name(action, table.identifier, table.location, columns, who)
    if action in _CHANGES:
        require_full_visibility(table, action, who)
    elif action is Action.INSERT and table.schema.has_primary_key:
        require_full_visibility(table, action, who)
        _require_deciding_columns(table, action, who)
    return decision


def require_full_visibility(table: TableHandle, action: Action, principal: Principal | None = None) -> None:
    """Refuse an action to a user from whom a row filter or a mask hides something of a table.

    Raises AccessDeniedError with what to apply for.
    """
    if plugins().decides_access():
        who = principal or table.principal or current_principal()
        seen = _seen(table, who)
        if seen.row_filter is not None or seen.masks:
            raise hidden_from(who, action, f"table {table.identifier}", seen)


def _require_deciding_columns(table: TableHandle, action: Action, principal: Principal | None) -> None:
    """Refuse an upsert to a user who may not read the columns that decide which row of a key wins.

    The other columns of the merged row would show how a hidden value compares with the inserted one. A user
    who may read no column sees nothing of the merged row.
    """
    from lockgate.framework.store.merge.merge_options import ordering_columns

    if not plugins().decides_access():
        return
    who = principal or current_principal()
    seen = _seen(table, who)
    deciding = {*table.schema.sequence_fields, *ordering_columns(table.schema)}
    denied = {name: texts for name, texts in seen.denied.items() if name in deciding}
    if denied and not seen.apply_for:
        raise hidden_from(who, action, f"table {table.identifier}", replace(seen, denied=denied))


def grant_naming(table: TableHandle) -> None:
    """Require ALTER on a table, and that nothing of it is hidden; AccessDeniedError as `grant`.

    Policies go by names: anyone who renames a table or a column would see it without them, and so would
    anyone who drops the column of a row filter and adds another of its name.
    """
    grant(table, Action.ALTER)
    who = table.principal or current_principal()
    if plugins().decides_access() and (seen := _seen(table, who)).is_restricted:
        raise hidden_from(who, Action.ALTER, f"table {table.identifier}", seen)


def hidden_from(who: Principal, action: Action, what: str, seen: SqlDecision) -> AccessDeniedError:
    """Return the error of an action on a table of which its user sees a part alone, as `seen` says."""
    needed = [*seen.apply_for, *(text for texts in seen.denied.values() for text in texts)]
    if seen.row_filter is not None or seen.masks:
        needed.append(f"SELECT on {what} without row filter and masks")
    return AccessDeniedError(
        f"{action} on {what} would reach rows and values that are hidden from user {who.user!r}; "
        f"apply for: {'; '.join(needed)}",
        tuple(needed),
    )


def whole_refusal(principal: Principal, table: TableHandle) -> tuple[str, ...]:
    """Return what to apply for where nothing of a table may be read; empty where anything may."""
    # Whether everything is denied does not depend on the types of columns.
    types = dict.fromkeys(table.schema.field_names, "STRING")
    request = AccessRequest(principal, Action.SELECT, _target(table), frozenset(types))
    found = plugins().authorize_sql(request, types, records=False)
    return (*found.apply_for, *found.ask) if found.apply_for else ()


def has_same_visibility(table: TableHandle, branch: TableHandle) -> bool:
    """Return whether the caller has equal rights on a branch and on its table."""
    who = table.principal or current_principal()
    return _seen(table, who) == _seen(branch, who, table)


def _seen(table: TableHandle, principal: Principal, columns_of: TableHandle | None = None) -> SqlDecision:
    types = {field.name: str(field.type) for field in (columns_of or table).schema.fields}
    request = AccessRequest(principal, Action.SELECT, _target(table), frozenset(types))
    return plugins().authorize_sql(request, types, records=False)


def _target(table: TableHandle) -> Target:
    return Target("table", table.identifier.policy_name, table.identifier.branch, table.location)


def grant_by_name(
    action: Action,
    identifier: Identifier,
    location: str,
    columns: Iterable[str] | None = None,
    principal: Principal | None = None,
) -> Decision:
    """Return the decision about a table that need not exist yet; AccessDeniedError as `grant`."""
    target = Target("table", identifier.policy_name, identifier.branch, location)
    return authorize(action, target, columns, principal)


def grant_database(action: Action, name: str, location: str, principal: Principal | None = None) -> Decision:
    """Return the decision about an action on a database; AccessDeniedError as `grant`."""
    return authorize(action, Target("database", name, location=location), principal=principal)
