"""Security zones: resources with policies of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.value_tokens import Names
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition
from lockgate.framework.governance.ranger.policies.policy_index import Policies

UNZONED = ""


class Zone:
    """One zone: its resources, its policies, and whether it has a tag service of its own."""

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition) -> None:
        self.resources = [
            PolicyResource(service.resources, _as_policy(each, service))
            for each in document.get("resources") or ()
        ]
        self.policies = Policies(document.get("policies") or (), service)
        self.has_own_tags = bool(document.get("containsAssociatedTagService"))


def _as_policy(resource: Mapping[str, Any], service: ServiceDefinition) -> dict[str, dict[str, Any]]:
    return {
        level: {"values": values, "isRecursive": level in service.recursive}
        for level, values in resource.items()
    }


class Zones:
    """All zones of a service."""

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition) -> None:
        self.by_name = {name: Zone(each, service) for name, each in document.items()}

    def of(self, resource: Mapping[str, Any], names: Names) -> frozenset[str]:
        """Return the zones that a resource is in; UNZONED among them if only a part of it is in one."""
        found = set()
        for name, zone in self.by_name.items():
            matches = {each.match(resource, None, names) for each in zone.resources}
            if Match.DESCENDANT in matches:
                found.add(UNZONED)
            if matches - {Match.NONE}:
                found.add(name)
        return frozenset(found)
