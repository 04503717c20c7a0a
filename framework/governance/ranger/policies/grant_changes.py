"""Grants as changes of policies: the policy of exactly these resources is extended, or one is made.

Semantics: ServiceREST.grantAccess and revokeAccess of Ranger's admin, for users, groups and roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, PolicyError

Document = dict[str, Any]
_WHO = ("users", "groups", "roles")
_NAME = 255


@checked_arguments
@dataclass(frozen=True)
class GrantChange:
    """Access types on a resource, by level, which `grantor` gives to users, groups or roles, or takes away.

    Raises InputError for one without anybody or any access type.
    """

    grantor: str
    resource: Mapping[str, tuple[str, ...]]
    accesses: tuple[str, ...]
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.users or self.groups or self.roles):
            raise InputError("a grant needs a user, a group or a role")
        if not self.accesses:
            raise InputError("a grant needs an access type, such as select")

    def to_ranger(self) -> Document:
        """Return it as Ranger's GrantRevokeRequest."""
        return {
            "grantor": self.grantor,
            "resource": {level: ",".join(values) for level, values in self.resource.items()},
            **{name: list(getattr(self, name)) for name in _WHO},
            "accessTypes": list(self.accesses),
            "delegateAdmin": False,
            "enableAudit": True,
            "replaceExistingPermissions": False,
            "isRecursive": False,
        }


def granted(document: Mapping[str, Any], change: GrantChange) -> Document:
    """Return the policies of a service with a grant among them, and a version more."""
    made = _next(document)
    found = [each for each in made["policies"] if _is_about(each, change.resource)]
    if not found:
        found = [_made(made, change)]
        made["policies"].append(found[0])
    found[0].setdefault("policyItems", []).append(_item(change))
    return made


def revoked(document: Mapping[str, Any], change: GrantChange) -> Document:
    """Return the policies of a service without a grant, and a version more.

    Only policies of exactly the resource are changed: what is granted by others, stays.
    """
    made = _next(document)
    for policy in made["policies"]:
        if _is_about(policy, change.resource):
            items = policy.get("policyItems") or []
            policy["policyItems"] = [each for item in items for each in _without(item, change)]
    return made


def policy_of(name: str, change: GrantChange) -> Document:
    """Return a policy that gives what a change says, and no more."""
    return {
        "name": name,
        "policyType": 0,
        "isEnabled": True,
        "isAuditEnabled": True,
        "resources": {level: {"values": list(values)} for level, values in change.resource.items()},
        "policyItems": [_item(change)],
    }


def extended(policy: Mapping[str, Any], change: GrantChange) -> Document | None:
    """Return a policy with items for what it does not give of a change, None if it gives everything.

    Raises PolicyError for a policy to which items do not add: of another resource or type, disabled, or
    limited by a condition, a validity or a zone.
    """
    if not _is_about(policy, change.resource):
        where = "/".join(",".join(values) for values in change.resource.values())
        raise PolicyError(
            f"policy {policy.get('name')!r} does not simply allow access to {where}: choose another name"
        )
    made = deepcopy(dict(policy))
    made["policyItems"] = list(made.get("policyItems") or ())
    # Those that lack the same access types share an item.
    lacking: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for kind in _WHO:
        for name in getattr(change, kind):
            given = _given(made["policyItems"], kind, name)
            missing = tuple(each for each in change.accesses if each not in given)
            if missing:
                lacking.setdefault(missing, {}).setdefault(kind, []).append(name)
    for accesses, who in lacking.items():
        made["policyItems"].append(
            {**who, "accesses": [{"type": each, "isAllowed": True} for each in accesses]}
        )
    return made if lacking else None


def _given(items: Iterable[Mapping[str, Any]], kind: str, name: str) -> set[str]:
    """Return the access types that items give to somebody whatever the circumstances."""
    return {
        access["type"]
        for item in items
        if name in (item.get(kind) or ()) and not item.get("conditions")
        for access in item.get("accesses") or ()
        if access.get("isAllowed") is not False
    }


def _next(document: Mapping[str, Any]) -> Document:
    made: Document = deepcopy(dict(document))
    made["policies"] = made.get("policies") or []
    made["policyVersion"] = int(made.get("policyVersion") or 0) + 1
    return made


def _is_about(policy: Mapping[str, Any], resource: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether a policy allows access to exactly a resource: everywhere, always, to what it names."""
    if policy.get("policyType") or policy.get("isEnabled") is False or policy.get("isDenyAllElse"):
        return False
    narrowing = ("zoneName", "conditions", "validitySchedules", "additionalResources")
    if any(policy.get(name) for name in narrowing) or set(policy["resources"]) != set(resource):
        return False
    return all(_names(policy["resources"][level], values) for level, values in resource.items())


def _names(level: Mapping[str, Any], values: Iterable[str]) -> bool:
    turned = level.get("isExcludes") or level.get("isRecursive")
    return not turned and set(level.get("values") or ()) == set(values)


def _made(document: Document, change: GrantChange) -> Document:
    number = max((int(each.get("id") or 0) for each in document["policies"]), default=0) + 1
    where = "/".join(",".join(values) for values in change.resource.values())
    return {
        "id": number,
        "name": f"grant {number}: {where}"[:_NAME],
        "service": document.get("serviceName"),
        "isEnabled": True,
        "isAuditEnabled": True,
        "resources": {level: {"values": list(values)} for level, values in change.resource.items()},
        "policyItems": [],
    }


def _item(change: GrantChange) -> Document:
    who = {name: list(getattr(change, name)) for name in _WHO}
    return {**who, "accesses": [{"type": each, "isAllowed": True} for each in change.accesses]}


def _without(item: Document, change: GrantChange) -> Iterable[Document]:
    """Yield what an item is without the change: for those it names all but the access types."""
    taken = {name: [each for each in item.get(name) or () if each in getattr(change, name)] for name in _WHO}
    others = {
        name: [each for each in item.get(name) or () if each not in getattr(change, name)] for name in _WHO
    }
    accesses = [each for each in item.get("accesses") or () if each["type"] not in change.accesses]
    if any(others.values()):
        yield {**item, **others}
    if any(taken.values()) and (accesses or item.get("delegateAdmin")):
        yield {**item, **taken, "accesses": accesses}
