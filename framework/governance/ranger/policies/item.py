"""Items of policies: who may do (or must not do) what, under which conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.framework.governance.ranger.conditions.evaluators import (
    Condition,
    UnsupportedConditionError,
    condition_of,
)
from lockgate.framework.governance.ranger.conditions.ranger_request import ADMIN, RangerRequest
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition

PUBLIC, EVERY_USER, OWNER = "public", "{USER}", "{OWNER}"


def conditions_of(document: Any, service: ServiceDefinition) -> list[Condition]:
    """Return the conditions of a policy or an item, without those that Ranger skips."""
    made = (condition_of(each, service) for each in document or ())
    return [each for each in made if each is not None]


def all_hold(conditions: Iterable[Condition], asked: RangerRequest, *, protects: bool) -> bool:
    """Return whether conditions hold; raises PolicyError for an unknown one whose policy or item protects."""
    try:
        return all(each.holds(asked) for each in conditions)
    except UnsupportedConditionError:
        if protects:
            raise
        return False


class Item:
    """One item of a policy; `mask` and `row_filter` are what it puts on what is read, if anything.

    `protects` says that more is open where the item does not match.
    """

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition, *, protects: bool) -> None:
        self._protects = protects
        self.users, self.groups, self.roles = (
            frozenset(document.get(name) or ()) for name in ("users", "groups", "roles")
        )
        self.is_for_everybody = PUBLIC in self.groups or EVERY_USER in self.users
        self._is_admin = bool(document.get("delegateAdmin"))
        self.accesses = service.granted_by(document)
        self.conditions = conditions_of(document.get("conditions"), service)
        self.mask: Mapping[str, Any] | None = document.get("dataMaskInfo")
        self.row_filter: str | None = (document.get("rowFilterInfo") or {}).get("filterExpr")

    def is_for(self, asked: RangerRequest) -> bool:
        """Return whether the item is about the current user."""
        user = asked.user
        if user is not None and (user in self.users or EVERY_USER in self.users):
            return True
        if PUBLIC in self.groups or not self.groups.isdisjoint(asked.groups):
            return True
        if not self.roles.isdisjoint(asked.roles):
            return True
        return OWNER in self.users and user is not None and user == asked.owner

    def gives(self, access: str) -> bool:
        """Return whether the item is about an access type."""
        return self._is_admin if access == ADMIN else access.lower() in self.accesses

    def matches(self, asked: RangerRequest, access: str) -> bool:
        """Return whether the item is about a request, its conditions included."""
        if not self.is_for(asked) or not self.gives(access):
            return False
        # The right to hand on rights is checked without conditions, as in Ranger.
        return access == ADMIN or all_hold(self.conditions, asked, protects=self._protects)
