"""Service definitions: levels of resources, access types with what they imply, conditions, masks."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.governance.ranger.matching.element import EXPRESSION
from lockgate.framework.governance.ranger.matching.hierarchy import Hierarchies


class PolicyType(IntEnum):
    """A kind of policy, by its number in `policyType`."""

    ACCESS = 0
    MASK = 1
    FILTER = 2


_SECTIONS = {PolicyType.MASK: "dataMaskDef", PolicyType.FILTER: "rowFilterDef"}
# Access types that stand for every access type of a category.
_MARKERS = {
    "_CREATE": "CREATE",
    "_READ": "READ",
    "_UPDATE": "UPDATE",
    "_DELETE": "DELETE",
    "_MANAGE": "MANAGE",
    "_ALL": None,
}


class ServiceDefinition:
    """A service's resources and accesses; raises InputError if it is no service definition."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        if not isinstance(document, Mapping) or not document.get("resources"):
            raise InputError(
                "a service definition has `resources`: download the policies with their serviceDef"
            )
        self.name, self.id = str(document.get("name") or ""), int(document.get("id") or 0)
        types = document.get("accessTypes") or ()
        self.accesses = tuple(each["name"] for each in types)
        self.implied = {each["name"]: set(each.get("impliedGrants") or ()) for each in types}
        self._imply_markers(types)
        self.conditions = {each["name"]: each for each in document.get("policyConditions") or ()}
        self.levels = {each["name"]: int(each.get("level") or 0) for each in document["resources"]}
        self.recursive = {each["name"] for each in document["resources"] if each.get("recursiveSupported")}
        self.resources = Hierarchies(document["resources"])
        self._granted: dict[frozenset[str], frozenset[str]] = {}
        # Levels where a token may begin with something else than a brace.
        self._odd_tokens = {
            each["name"]
            for each in document["resources"]
            if {"tokenDelimiterStart", "tokenDelimiterEscape"} & set(each.get("matcherOptions") or ())
        }
        self.hierarchies = {PolicyType.ACCESS: self.resources}
        for policy_type, section in _SECTIONS.items():
            self._read_section(policy_type, document, document.get(section) or {})
        options = {key: str(value).lower() for key, value in (document.get("options") or {}).items()}
        self.has_denies = options.get("enableDenyAndExceptionsInPolicies", "true") == "true"
        self.mask_types = {
            each["name"]: each for each in (document.get("dataMaskDef") or {}).get("maskTypes") or ()
        }

    def _imply_markers(self, types: Any) -> None:
        for marker, category in _MARKERS.items():
            implied = self.implied.setdefault(marker, set())
            for each in types:
                if each["name"] not in _MARKERS and category in (None, each.get("category")):
                    implied |= {each["name"], *(each.get("impliedGrants") or ())}

    def _read_section(
        self, policy_type: PolicyType, document: Mapping[str, Any], section: Mapping[str, Any]
    ) -> None:
        own = {each["name"]: each for each in section.get("resources") or ()}
        levels = [_overlaid(each, own[each["name"]]) for each in document["resources"] if each["name"] in own]
        self.hierarchies[policy_type] = Hierarchies(levels) if levels else self.resources
        for each in section.get("accessTypes") or ():
            self.implied.setdefault(each["name"], set()).update(each.get("impliedGrants") or ())

    def granted_by(self, item: Mapping[str, Any]) -> frozenset[str]:
        """Return an item's access types with those that they imply, in lower case.

        Implied ones imply nothing further, as in Ranger. Items of one kind share the answer.
        """
        given = frozenset(
            each["type"] for each in item.get("accesses") or () if each.get("isAllowed", True) is not False
        )
        if given not in self._granted:
            implied = (self.implied.get(each, set()) for each in given)
            self._granted[given] = frozenset(each.lower() for each in given.union(*implied))
        return self._granted[given]

    def forget_granted(self) -> None:
        """Compute what accesses imply again, after `implied` was changed."""
        self._granted.clear()

    def may_be_dynamic(self, level: str, document: Mapping[str, Any]) -> bool:
        """Say whether what a policy says of a level has tokens or expressions."""
        values = document.get("values") or ()
        if not any(EXPRESSION in value or "{" in value or level in self._odd_tokens for value in values):
            return False
        return level in self.resources.definitions and self.resources.element(level, document).is_dynamic


def _overlaid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a level as masks or filters have it: what their section leaves out is as for access."""
    overrides = {key: value for key, value in over.items() if value not in (None, "", {}, [])}
    options = {**(base.get("matcherOptions") or {}), **(over.get("matcherOptions") or {})}
    return {**base, **overrides, "matcherOptions": options}


def with_component(definition: ServiceDefinition, service: ServiceDefinition) -> ServiceDefinition:
    """Let a tag service's definition speak a service's words: `hive:select` there is `select` here."""
    prefix = f"{service.name}:"
    for name, implied in list(definition.implied.items()):
        if name.startswith(prefix):
            own = {each.removeprefix(prefix) for each in implied if each.startswith(prefix)}
            definition.implied.setdefault(name.removeprefix(prefix), set()).update(own)
    for name, implied in service.implied.items():
        definition.implied.setdefault(name, set()).update(implied)
    definition.forget_granted()
    return definition


_ITEMS = (
    "policyItems",
    "denyPolicyItems",
    "allowExceptions",
    "denyExceptions",
    "dataMaskPolicyItems",
    "rowFilterPolicyItems",
)


def of_component(policy: Mapping[str, Any], component: str) -> dict[str, Any]:
    """Return a tag policy with the accesses of one service alone, without the service's prefix."""
    return {**policy, **{key: _items_of(policy.get(key) or (), f"{component}:") for key in _ITEMS}}


def _items_of(items: Any, prefix: str) -> list[dict[str, Any]]:
    found = []
    for item in items:
        own = [
            {**access, "type": access["type"].removeprefix(prefix)}
            for access in item.get("accesses") or ()
            if ":" not in access["type"] or access["type"].startswith(prefix)
        ]
        if own or item.get("delegateAdmin"):
            found.append({**item, "accesses": own})
    return found
