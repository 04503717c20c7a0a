"""Service definitions: levels of resources, access types with what they imply, conditions, masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        # Where any access is asked, Ranger takes them from a set, and ends at the first that is allowed.
        self.accesses_of_any = tuple(_in_hash_set_order(self.accesses))
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

    def may_be_dynamic(self, level: str, document: Mapping[str, Any]) -> bool:
        """Return whether what a policy says of a level has tokens or expressions."""
        values = document.get("values") or ()
        if not any(EXPRESSION in value or "{" in value or level in self._odd_tokens for value in values):
            return False
        return level in self.resources.definitions and self.resources.element(level, document).is_dynamic


def _in_hash_set_order(names: Iterable[str]) -> list[str]:
    """Return texts in the order of a HashSet of Java that they were put into."""
    distinct = list(dict.fromkeys(names))
    capacity = 16
    while len(distinct) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        code = 0
        for unit in memoryview(name.encode("utf-16-le")).cast("H"):
            code = (31 * code + unit) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & (capacity - 1)

    return sorted(distinct, key=bucket)


def _overlaid(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a level as masks or filters have it: what their section leaves out is as for access."""
    overrides = {key: value for key, value in over.items() if value not in (None, "", {}, [])}
    options = {**(base.get("matcherOptions") or {}), **(over.get("matcherOptions") or {})}
    return {**base, **overrides, "matcherOptions": options}


_ITEMS = (
    "policyItems",
    "denyPolicyItems",
    "allowExceptions",
    "denyExceptions",
    "dataMaskPolicyItems",
    "rowFilterPolicyItems",
)
_SEPARATOR = ":"


def component_definition(document: Mapping[str, Any], component: str) -> dict[str, Any]:
    """Return a tag service's definition with the accesses of one component, without the component's prefix.

    Semantics: Ranger's ServiceDefUtil.normalizeAccessTypeDefs.
    """
    made = {**document, "accessTypes": _access_types(document.get("accessTypes") or (), component)}
    for section in _SECTIONS.values():
        if document.get(section):
            own = _access_types(document[section].get("accessTypes") or (), component)
            made[section] = {**document[section], "accessTypes": own}
    return made


def _access_types(types: Iterable[Mapping[str, Any]], component: str) -> list[dict[str, Any]]:
    made = []
    for each in types:
        name = _own_name(each["name"], component)
        if name is not None:
            implied = (_own_name(other, component) for other in each.get("impliedGrants") or ())
            made.append({**each, "name": name, "impliedGrants": [other for other in implied if other]})
    return made


def _own_name(name: str, component: str) -> str | None:
    """Return a name without the component's prefix, None if it belongs to another component."""
    own = name.removeprefix(f"{component}{_SEPARATOR}")
    return own if own != name or _SEPARATOR not in name else None


def component_policy(policy: Mapping[str, Any], component: str) -> dict[str, Any] | None:
    """Return a tag policy with the items of one component, None if nothing is left of it.

    Semantics: Ranger's RangerPolicyRepository.normalizeAndPrunePolicies.
    """
    items = {
        key: [own for item in policy.get(key) or () if (own := _component_item(item, component)) is not None]
        for key in _ITEMS
    }
    if policy.get("isAuditEnabled", True) is False and not any(items.values()):
        return None
    return {**policy, **items}


def _component_item(item: Mapping[str, Any], component: str) -> dict[str, Any] | None:
    accesses = [
        {**access, "type": own}
        for access in item.get("accesses") or ()
        if (own := _own_name(access["type"], component)) is not None
    ]
    if item.get("accesses") and not accesses and not item.get("delegateAdmin"):
        return None
    made = {**item, "accesses": accesses}
    mask = item.get("dataMaskInfo")
    if mask and mask.get("dataMaskType"):
        own = _own_name(mask["dataMaskType"], component)
        if own is None:
            return None
        made["dataMaskInfo"] = {**mask, "dataMaskType": own}
    return made
