"""Policies: parsed in a microsecond and prepared on first use, since most of 50,000 are never used.

Semantics: Ranger's RangerDefaultPolicyEvaluator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from lockgate.framework.governance.ranger.conditions.evaluators import Condition
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.conditions.schedule import applies
from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.value_tokens import Names
from lockgate.framework.governance.ranger.policies.definition import PolicyType, ServiceDefinition
from lockgate.framework.governance.ranger.policies.item import Item, conditions_of
from lockgate.framework.governance.ranger.policies.score import score

CLOSING = ("denyPolicyItems", "allowExceptions", "dataMaskPolicyItems", "rowFilterPolicyItems")
Order = tuple[int, bool, int, str]


class Policy:
    """One policy of a service, or of its tags."""

    __slots__ = (
        "__dict__",
        "document",
        "has_deny",
        "id",
        "is_audited",
        "name",
        "policy_type",
        "priority",
        "service",
    )

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition) -> None:
        self.document, self.service = document, service
        self.id = -1 if document.get("id") is None else int(document["id"])
        self.name = str(document.get("name") or "")
        self.policy_type = PolicyType(document.get("policyType") or 0)
        self.priority = int(document.get("policyPriority") or 0)
        self.is_audited = document.get("isAuditEnabled", True) is not False
        self.has_deny = self.denies_all_else or bool(document.get("denyPolicyItems"))

    @property
    def denies_all_else(self) -> bool:
        """Return whether whatever the policy does not allow is denied."""
        return bool(self.document.get("isDenyAllElse"))

    @property
    def zone(self) -> str:
        """The zone of the policy, empty outside zones."""
        return self.document.get("zoneName") or ""

    @property
    def raw_resources(self) -> list[Mapping[str, Mapping[str, Any]]]:
        """The resources as they are written, one or more."""
        return [self.document.get("resources") or {}, *(self.document.get("additionalResources") or ())]

    @cached_property
    def resources(self) -> list[PolicyResource]:
        """The resources, ready to match."""
        hierarchies = self.service.hierarchies[self.policy_type]
        return [PolicyResource(hierarchies, each) for each in self.raw_resources]

    def _items(self, name: str, wanted: bool = True) -> list[Item]:
        documents = self.document.get(name) or () if wanted else ()
        return [Item(each, self.service, protects=name in CLOSING) for each in documents]

    @property
    def protects(self) -> bool:
        """Return whether more is open where the policy does not match."""
        return self.denies_all_else or any(self.document.get(name) for name in CLOSING)

    @cached_property
    def allows(self) -> list[Item]:
        """Items that allow."""
        return self._items("policyItems")

    @cached_property
    def denies(self) -> list[Item]:
        """Items that deny."""
        return self._items("denyPolicyItems", self.service.has_denies)

    @cached_property
    def allow_exceptions(self) -> list[Item]:
        """Items that take back what others allow."""
        return self._items("allowExceptions", self.service.has_denies)

    @cached_property
    def deny_exceptions(self) -> list[Item]:
        """Items that take back what others deny."""
        return self._items("denyExceptions", self.service.has_denies)

    @cached_property
    def transforms(self) -> list[Item]:
        """Items with a mask or a row filter."""
        return self._items(
            "dataMaskPolicyItems" if self.policy_type is PolicyType.MASK else "rowFilterPolicyItems"
        )

    @cached_property
    def conditions(self) -> list[Condition]:
        """Conditions of the policy as a whole."""
        return conditions_of(self.document.get("conditions"), self.service)

    @property
    def order(self) -> Order:
        """The place among others: higher priority first, then policies that deny, then broad ones."""
        return (-self.priority, not self.has_deny, score(self.document, self.service), self.name)

    @property
    def order_by_name(self) -> tuple[int, bool, str]:
        """The place among others that a tag's masks and filters have."""
        return (-self.priority, not self.has_deny, self.name)

    def is_valid(self, asked: RangerRequest) -> bool:
        """Return whether the policy is valid at the time of a request."""
        schedules = self.document.get("validitySchedules") or ()
        return not schedules or any(applies(each, asked.now) for each in schedules)

    def match(self, resource: PolicyResource, asked: RangerRequest, names: Names) -> Match:
        """Return how one of the resources stands to a request; that of a tag was found with the tag."""
        if asked.tag is not None:
            return Match[asked.tag.get("matchType") or "SELF"]
        return resource.match(asked.resource, asked.scopes, names)

    def deciding(
        self, asked: RangerRequest, access: str, *, determined: bool
    ) -> tuple[Item | None, bool] | None:
        """Return the item that decides and whether it allows, None if the policy has nothing to say.

        Deny items come before allow items, each with their exceptions. The item is None where all else is
        denied.
        """
        if self.policy_type is not PolicyType.ACCESS:
            found = _first(self.transforms, asked, access)
            return None if found is None else (found, True)
        denied = _first(self.denies, asked, access)
        if denied and not _first(self.deny_exceptions, asked, access):
            return denied, False
        allowed = None if determined else _first(self.allows, asked, access)
        if allowed and not _first(self.allow_exceptions, asked, access):
            return allowed, True
        return (None, False) if self.denies_all_else else None


def _first(items: Iterable[Item], asked: RangerRequest, access: str) -> Item | None:
    return next((item for item in items if item.matches(asked, access)), None)
