"""Scores of policies: of several masks or filters of one priority, the policy with the lower score wins.

Broad policies come first. The score comes from the text of a policy, because policies are sorted when they
are loaded, before they are prepared. Source: Ranger's RangerOptimizedPolicyEvaluator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lockgate.framework.governance.ranger.policies.definition import PolicyType, ServiceDefinition
from lockgate.framework.governance.ranger.policies.item import EVERY_USER, PUBLIC, conditions_of

_START, _DYNAMIC = 10_000, 20
_MOST_RESOURCES, _MOST_PEOPLE, _ALL_ACCESSES, _CONDITIONS, _A_CONDITION = 100, 25, 25, 25, 5
_EVERYTHING, _STARS, _ONE_LETTER, _EXCLUDES, _RECURSIVE = 25, 10, 5, 5, 5
Document = Mapping[str, Any]


def items_of(document: Document, service: ServiceDefinition) -> Iterator[Document]:
    """Yield the items of a policy that count for its kind and service, as they are written."""
    names = ["policyItems"]
    if service.has_denies:
        names += ["denyPolicyItems", "allowExceptions", "denyExceptions"]
    policy_type = document.get("policyType") or 0
    names.append("dataMaskPolicyItems" if policy_type == PolicyType.MASK else "rowFilterPolicyItems")
    for name in names:
        yield from document.get(name) or ()


def score(document: Document, service: ServiceDefinition) -> int:
    """Return the score of a policy."""
    items = list(items_of(document, service))
    found = _START - min(_MOST_RESOURCES, _breadth_of(document.get("resources") or {}, service))
    found += _DYNAMIC if _is_dynamic(document, service) else 0
    found -= _MOST_PEOPLE if document.get("isDenyAllElse") else _people(items)
    found -= _accesses(items, service)
    return found - max(0, _CONDITIONS - _A_CONDITION * _conditions(document, items, service))


def _breadth_of(resource: Mapping[str, Document], service: ServiceDefinition) -> int:
    return sum(_breadth(each) for level, each in resource.items() if level in service.levels)


def _breadth(document: Document) -> int:
    values = document.get("values") or ()
    if not values:
        return 0
    if "*" in values or "" in values:
        return _EVERYTHING
    found = _EXCLUDES * bool(document.get("isExcludes")) + _RECURSIVE * bool(document.get("isRecursive"))
    if any("*" in value for value in values):
        return found + _STARS
    return found + (_ONE_LETTER if any("?" in value for value in values) else 0)


def _is_dynamic(document: Document, service: ServiceDefinition) -> bool:
    several = [document.get("resources") or {}, *(document.get("additionalResources") or ())]
    return any(service.may_be_dynamic(level, each) for one in several for level, each in one.items())


def _people(items: list[Document]) -> int:
    people: set[str] = set()
    for item in items:
        people.update(item.get("users") or ())
        groups = item.get("groups") or ()
        if PUBLIC in groups:
            return _MOST_PEOPLE
        people.update(groups)
    return _MOST_PEOPLE if EVERY_USER in people else min(_MOST_PEOPLE, len(people))


def _accesses(items: list[Document], service: ServiceDefinition) -> int:
    """Return the discount for access types, without those that others imply."""
    found = {
        each["type"]
        for item in items
        for each in item.get("accesses") or ()
        if each.get("isAllowed", True) is not False
    }
    # As Java rounds.
    return math.floor(_ALL_ACCESSES * len(found) / max(1, len(service.accesses)) + 0.5)


def _conditions(document: Document, items: list[Document], service: ServiceDefinition) -> int:
    return sum(
        len(conditions_of(each["conditions"], service))
        for each in (document, *items)
        if each.get("conditions")
    )
