"""Procedures about grants: a request for access, and the answer to it."""

from __future__ import annotations

from typing import Any, ClassVar

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.governance.requests.access_requests import AccessRequests, access_requests
from lockgate.procedures import Parameter, Procedure, ProcedureContext

_TABLE = Parameter("table", "STRING", doc="the table")
_COLUMNS = Parameter("columns", "STRING", None, "columns with commas between; by default all")
_ACTIONS = Parameter("actions", "STRING", "SELECT", "such as `SELECT,INSERT`")


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def _access_requests(context: ProcedureContext) -> AccessRequests:
    return access_requests(context.catalog.warehouse)


class RequestAccess(Procedure):
    """Asks for access; those who may grant it see the request in `sys.access_requests`."""

    name = "request_access"
    description = "Ask for access to a table or to some of its columns."
    right: ClassVar[Action | None] = None
    asks_itself = True  # those who have no rights yet need it most
    needs_all_rows = False
    parameters = (_TABLE, _COLUMNS, _ACTIONS, Parameter("reason", "STRING", "", "why it is needed"))
    result = (("id", "STRING"), ("state", "STRING"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Return the request's id; it is not said whether the table exists."""
        table = context.identifier(arguments["table"])
        columns, actions = _list(arguments["columns"]), _list(arguments["actions"])
        found = _access_requests(context).request(table, columns, actions, arguments["reason"])
        return [(found.id, found.state)]


class _Change(Procedure):
    right: ClassVar[Action | None] = None
    asks_itself = True  # for the right to grant
    needs_all_rows = False
    parameters = (
        _TABLE,
        _COLUMNS,
        _ACTIONS,
        Parameter("users", "STRING", None, "users with commas between"),
        Parameter("groups", "STRING", None, "groups"),
        Parameter("roles", "STRING", None, "roles"),
    )
    result = (("policy_version", "BIGINT"), ("requests", "INT"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Return the version of the policies afterwards, and how many open requests this decided."""
        to = {name: _list(arguments[name]) for name in ("users", "groups", "roles")}
        if not any(to.values()):
            raise InputError(f"{self.name} needs somebody: give users, groups or roles")
        table = context.identifier(arguments["table"])
        return [
            self._done(
                _access_requests(context), table, _list(arguments["columns"]), _list(arguments["actions"]), to
            )
        ]

    def _done(self, requests: AccessRequests, *what: Any) -> tuple[int, int]:
        raise NotImplementedError  # each of the procedures below has its own


class GrantAccess(_Change):
    """Grants access by a policy; its caller needs `delegateAdmin` on all of it."""

    name = "grant"
    description = "Grant access to a table or to some of its columns, by a policy."

    def _done(self, requests: AccessRequests, *what: Any) -> tuple[int, int]:
        return requests.grant(*what)


class Revoke(_Change):
    """Takes back what a policy of exactly these columns grants; what other policies grant, stays."""

    name = "revoke"
    description = "Take access back that a policy of exactly this table and these columns grants."

    def _done(self, requests: AccessRequests, *what: Any) -> tuple[int, int]:
        return requests.revoke(*what)


PROCEDURES = (RequestAccess(), GrantAccess(), Revoke())
