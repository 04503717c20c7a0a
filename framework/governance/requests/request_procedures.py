"""Procedures about grants: a request for access, and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.governance.requests.access_requests import AccessRequests, access_requests
from lockgate.procedures import Int, ProcedureContext, TableName, TypedProcedure


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def _access_requests(context: ProcedureContext) -> AccessRequests:
    return access_requests(context.catalog.warehouse)


@dataclass(frozen=True)
class _RequestAccessArguments:
    table: TableName
    columns: Annotated[str | None, "columns with commas between (default: all)"] = None
    actions: Annotated[str, "such as `SELECT,INSERT`"] = "SELECT"
    reason: Annotated[str, "why it is needed"] = ""


@dataclass(frozen=True)
class _RequestAccessRow:
    id: Annotated[str, "the request; an equal open one is returned again"]
    state: Annotated[str, "`open`; later, in `sys.access_requests`, `granted` or `refused`"]


class RequestAccess(TypedProcedure[_RequestAccessArguments, _RequestAccessRow]):
    """Ask for access to a table or to some of its columns."""

    name = "request_access"
    right: ClassVar[Action | None] = None
    asks_itself = True  # those who have no rights yet need it most
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _RequestAccessArguments) -> list[_RequestAccessRow]:
        """Return the request's id; it is not said whether the table exists."""
        table = context.identifier(arguments.table)
        columns, actions = _list(arguments.columns), _list(arguments.actions)
        found = _access_requests(context).request(table, columns, actions, arguments.reason)
        return [_RequestAccessRow(found.id, found.state)]


@dataclass(frozen=True)
class _ChangeArguments:
    table: TableName
    columns: Annotated[str | None, "columns with commas between (default: all)"] = None
    actions: Annotated[str, "such as `SELECT,INSERT`"] = "SELECT"
    users: Annotated[str | None, "who gets or loses access, with commas between; at least one of them"] = None
    groups: str | None = None
    roles: str | None = None


@dataclass(frozen=True)
class _ChangeRow:
    policy_version: Annotated[int, "the version of the policies afterwards"]
    requests: Annotated[Int, "the number of open requests that this decided"]


class GrantAccess(TypedProcedure[_ChangeArguments, _ChangeRow]):
    """Grant access to a table or to some of its columns, by a policy.

    Its caller needs `delegateAdmin` on all of it.
    """

    name = "grant"
    right: ClassVar[Action | None] = None
    asks_itself = True  # for the right to grant
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _ChangeArguments) -> list[_ChangeRow]:
        """Return the version of the policies afterwards, and how many open requests this decided."""
        what = _change(self.name, context, arguments)
        return [_ChangeRow(*_access_requests(context).grant(*what))]


class Revoke(TypedProcedure[_ChangeArguments, _ChangeRow]):
    """Take access back that a policy of exactly this table and these columns grants.

    What other policies grant, stays.
    """

    name = "revoke"
    right: ClassVar[Action | None] = None
    asks_itself = True  # for the right to grant
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _ChangeArguments) -> list[_ChangeRow]:
        """Return the version of the policies afterwards, and how many open requests this decided."""
        what = _change(self.name, context, arguments)
        return [_ChangeRow(*_access_requests(context).revoke(*what))]


def _change(
    procedure: str, context: ProcedureContext, arguments: _ChangeArguments
) -> tuple[str, tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...]]]:
    to = {name: _list(getattr(arguments, name)) for name in ("users", "groups", "roles")}
    if not any(to.values()):
        raise InputError(f"{procedure} needs somebody: give users, groups or roles")
    table = context.identifier(arguments.table)
    return table, _list(arguments.columns), _list(arguments.actions), to


PROCEDURES = (RequestAccess(), GrantAccess(), Revoke())
