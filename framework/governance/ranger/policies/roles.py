"""Roles: they hold users, groups and other roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.framework.governance.ranger.policies.item import PUBLIC


class Roles:
    """Members of roles, closed over roles within roles."""

    def __init__(self, roles: Iterable[Mapping[str, Any]] = ()) -> None:
        """Read roles as Ranger's admin gives them: a name, and members of each kind by their names."""
        self._tables: dict[str, dict[str, set[str]]] = {"users": {}, "groups": {}, "roles": {}}
        for role in roles:
            for kind, table in self._tables.items():
                for member in role.get(kind) or ():
                    table.setdefault(member["name"], set()).add(role["name"])

    def of(self, user: str | None, groups: Iterable[str]) -> frozenset[str]:
        """Return the roles of a user that is in these groups."""
        pending = set(self._tables["users"].get(user or "", ()))
        for group in (PUBLIC, *groups):
            pending |= self._tables["groups"].get(group, set())
        return self.within(pending)

    def within(self, roles: Iterable[str]) -> frozenset[str]:
        """Return some roles with those that they are members of."""
        pending = set(roles)
        found: set[str] = set()
        while pending:
            role = pending.pop()
            if role not in found:
                found.add(role)
                pending |= self._tables["roles"].get(role, set())
        return frozenset(found)
