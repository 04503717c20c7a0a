"""The office of an authorizer: takes requests for access, and lets delegated admins grant and revoke.

Who may grant on a resource, the policies say: an item with `delegateAdmin`, as in Ranger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lockgate.errors import AccessDeniedError, InputError, ProcedureError
from lockgate.framework.access import Action
from lockgate.framework.governance.authorizer import RangerAuthorizer, access_of
from lockgate.framework.governance.policy_principals import (
    Rights,
    policy_principal,
    policy_principals,
    rights_of,
)
from lockgate.framework.governance.ranger.conditions.ranger_request import ADMIN, RangerRequest
from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange
from lockgate.framework.plugins import current_principal, plugins

if TYPE_CHECKING:
    from lockgate.framework.governance.ranger.engine.engine import Engine
    from lockgate.framework.governance.requests.folder import AccessAsked, RequestFolder, State

Columns = tuple[str, ...]
# Users, groups and roles, by these words.
Grantees = dict[str, tuple[str, ...]]


@runtime_checkable
class PolicyStore(Protocol):
    """Policies that can be changed."""

    def grant(self, change: GrantChange) -> None:
        """Put a grant among the policies; raises PolicyError or AdminError if that fails."""

    def revoke(self, change: GrantChange) -> None:
        """Take a grant out of the policies; raises as `grant`."""


def access_requests(location: str) -> AccessRequests:
    """Return the office for the warehouse at `location`; ProcedureError if nobody decides about it."""
    authorizers = [each for each in plugins().objects() if isinstance(each, RangerAuthorizer)]
    found = [each for each in authorizers if each.decides_at(location)]
    if len(found) != 1:
        what = "no policies decide" if not found else "several sets of policies decide"
        raise ProcedureError(f"{what} about this warehouse: register one RangerAuthorizer for it")
    return AccessRequests(found[0])


@dataclass(frozen=True)
class AccessRequests:
    """Requests and grants about the tables of one authorizer, in the name of the current user."""

    authorizer: RangerAuthorizer

    def rights(self, table: str, columns: Sequence[str], *, has_key: bool) -> list[Rights]:
        """Return what each user, group and role that policies name may do with a table."""
        engine, resource = self._engine, self.authorizer.resource_of(table)
        holders = policy_principals(engine, resource)
        return [rights_of(engine, each, resource, columns, has_key=has_key) for each in holders]

    def own_rights(self, table: str, columns: Sequence[str], *, has_key: bool) -> Rights:
        """Return what the current user may do with a table."""
        resource, principal = self.authorizer.resource_of(table), policy_principal(current_principal())
        return rights_of(self._engine, principal, resource, columns, has_key=has_key)

    @property
    def _engine(self) -> Engine:
        return self.authorizer.policies.engine()

    def request(self, table: str, columns: Columns, actions: Columns, reason: str) -> AccessAsked:
        """Keep a request of the current user; ProcedureError if requests are not kept here."""
        return self._folder().ask(current_principal().user, table, columns, self._accesses(actions), reason)

    def requests(self) -> Iterator[AccessAsked]:
        """Yield the requests of the current user, and those that this one may grant."""
        if self.authorizer.requests is None:
            return
        user, decided = current_principal().user, dict[tuple[str, Columns], bool]()
        for each in self.authorizer.requests.all():
            key = each.table, each.columns
            if each.user == user or decided.setdefault(key, not self._closed(*key)):
                yield each

    def grant(
        self, table: str, columns: Columns, actions: Columns, to: dict[str, Columns]
    ) -> tuple[int, int]:
        """Grant, and close the requests that this answers; returns the version of the policies, and how many.

        Raises AccessDeniedError unless the current user may grant all of it.
        """
        self._store().grant(self._change(table, columns, actions, to))
        return self._engine.version, self._decided(table, columns, to, "granted")

    def revoke(
        self, table: str, columns: Columns, actions: Columns, to: dict[str, Columns]
    ) -> tuple[int, int]:
        """Take a grant back, and refuse the open requests for it; returns and raises as `grant`."""
        self._store().revoke(self._change(table, columns, actions, to))
        return self._engine.version, self._decided(table, columns, to, "refused")

    def _decided(self, table: str, columns: Columns, to: Grantees, state: State) -> int:
        folder = self.authorizer.requests
        if folder is None:
            return 0
        by = current_principal().user
        return sum(folder.decide(table, user, columns, state, by) for user in to.get("users", ()))

    def _change(self, table: str, columns: Columns, actions: Columns, to: Grantees) -> GrantChange:
        self.check_grantor(table, columns)
        levels: dict[str, Columns] = {
            level: (value,) for level, value in self.authorizer.resource_of(table).items()
        }
        if "column" in self._engine.service.levels:
            levels["column"] = columns or ("*",)
        elif columns:
            raise InputError(f"service {self._engine.service.name!r} has no level for columns")
        return GrantChange(current_principal().user, levels, self._accesses(actions), **to)

    def check_grantor(self, table: str, columns: Columns) -> None:
        """Raise AccessDeniedError unless the current user may grant on these columns, by default on all."""
        closed = self._closed(table, columns)
        if closed:
            user = current_principal().user
            needed = tuple(f"the right to grant (delegateAdmin) on {name}" for name in closed)
            raise AccessDeniedError(
                f"user {user!r} may not grant on table {table}; apply for: {'; '.join(needed)}", needed
            )

    def _closed(self, table: str, columns: Columns) -> list[str]:
        """Return the names of what the current user may not grant."""
        names = [f"column {table}.{column}" for column in columns] or [f"all columns of table {table}"]
        wanted = zip(names, columns or ("*",), strict=True)
        return [name for name, column in wanted if not self.may_grant(table, column)]

    def may_grant(self, table: str, column: str) -> bool:
        """Return whether the current user may grant on a column, or on all of them (`*`)."""
        principal, resource = current_principal(), self.authorizer.resource_of(table)
        if "column" in self._engine.service.levels:
            resource = {**resource, "column": column}
        asked = RangerRequest(
            resource=resource,
            access=ADMIN,
            user=principal.user,
            groups=principal.groups,
            roles=principal.roles,
        )
        return self._engine.evaluate(asked).allowed

    def _accesses(self, actions: Columns) -> Columns:
        every = {each.value for each in Action}
        others = [each for each in actions if each.upper() not in every]
        if others:
            raise InputError(f"there is no action {others[0]!r}: give some of {', '.join(sorted(every))}")
        return tuple(dict.fromkeys(access_of(self._engine.service, Action(each.upper())) for each in actions))

    def _store(self) -> PolicyStore:
        found = self.authorizer.policies
        if not isinstance(found, PolicyStore):
            raise ProcedureError("these policies cannot be changed from here, but where they are made")
        return found

    def _folder(self) -> RequestFolder:
        if self.authorizer.requests is None:
            at = f": ask at {self.authorizer.apply_at}" if self.authorizer.apply_at else ""
            raise ProcedureError(f"no requests are kept here (RangerAuthorizer has no requests=){at}")
        return self.authorizer.requests
