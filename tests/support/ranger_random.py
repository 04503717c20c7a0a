"""Random policies and requests in Ranger's terms, the same for our engine and for Ranger's."""

from __future__ import annotations

import random
from typing import Any

from ranger_world import ACCESSES, LEVELS, definition

from lockgate.framework.governance.ranger.conditions.ranger_request import ANY, RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.policies.definition import PolicyType

VALUES = {
    "catalog": ["lake", "l*", "*"],
    "database": ["db1", "db2", "d?1", "db*", "*", "home_{USER}"],
    "table": ["t1", "T2", "t*", "orders", "*", "t?"],
    "column": ["id", "ssn", "s*", "*", "name"],
}
ASKED = {
    "catalog": ["lake", "other"],
    "database": ["db1", "DB2", "dx1", "home_ann"],
    "table": ["t1", "t2", "orders", "zz"],
    "column": ["id", "ssn", "name", "SALARY"],
}
USERS, GROUPS, ROLES = ["ann", "bob", "cal", "{USER}", "{OWNER}"], ["g1", "g2", "public"], ["r1", "r2"]
MASKS = ["MASK", "MASK_HASH", "MASK_NULL", "MASK_NONE"]
Said = dict[str, Any]


def generate(seed: int, policies: int = 40, requests: int = 400) -> Said:
    """Return {servicePolicies, roles, requests} as Ranger's own classes read them."""
    rnd = random.Random(seed)
    said = [_policy(rnd, number) for number in range(1, policies + 1)]
    roles = [
        {"id": 1, "name": "r1", "users": [{"name": "cal"}], "groups": [], "roles": []},
        {"id": 2, "name": "r2", "users": [], "groups": [{"name": "g2"}], "roles": [{"name": "r1"}]},
    ]
    service = {"serviceDef": {"id": 1, **definition(policyConditions=[])}, "policies": said}
    return {
        "servicePolicies": service,
        "roles": {"rangerRoles": roles},
        "requests": [_request(rnd) for _ in range(requests)],
    }


def _items(rnd: random.Random, count: int, kind: PolicyType) -> list[Said]:
    found = []
    for _ in range(count):
        types = ["select"] if kind else rnd.sample([*ACCESSES, "all"], rnd.randint(1, 3))
        one: Said = {
            "accesses": [{"type": each, "isAllowed": True} for each in types],
            "users": rnd.sample(USERS, rnd.randint(0, 2)),
            "groups": rnd.sample(GROUPS, rnd.choice([0, 0, 1])),
            "roles": rnd.sample(ROLES, rnd.choice([0, 0, 1])),
            "conditions": [],
            "delegateAdmin": rnd.random() < 0.2,
        }
        if kind is PolicyType.MASK:
            one["dataMaskInfo"] = {"dataMaskType": rnd.choice(MASKS)}
        if kind is PolicyType.FILTER:
            one["rowFilterInfo"] = {"filterExpr": f"x={rnd.randint(0, 9)}"}
        found.append(one)
    return found


def _policy(rnd: random.Random, number: int) -> Said:
    kind = rnd.choice([PolicyType.ACCESS] * 4 + [PolicyType.MASK, PolicyType.FILTER])
    depth = {PolicyType.MASK: 4, PolicyType.FILTER: 3}.get(kind) or rnd.randint(1, 4)
    excludes = [kind is PolicyType.ACCESS and rnd.random() < 0.12 for _ in range(depth)]
    resources = {
        level: {
            "values": rnd.sample(VALUES[level], rnd.randint(1, 2)),
            "isExcludes": excluded,
            "isRecursive": False,
        }
        for level, excluded in zip(LEVELS, excludes, strict=False)
    }
    lists = {
        PolicyType.ACCESS: {
            "policyItems": rnd.randint(1, 3),
            "denyPolicyItems": rnd.choice([0, 0, 1]),
            "allowExceptions": rnd.choice([0, 0, 1]),
            "denyExceptions": rnd.choice([0, 1]),
        },
        PolicyType.MASK: {"dataMaskPolicyItems": 2},
        PolicyType.FILTER: {"rowFilterPolicyItems": 2},
    }[kind]
    return {
        "id": number,
        "name": f"p{number:03d}",
        "service": "s",
        "isEnabled": rnd.random() < 0.95,
        "isAuditEnabled": rnd.random() < 0.7,
        "policyType": int(kind),
        "policyPriority": rnd.choice([0, 0, 0, 1]),
        "resources": resources,
        "isDenyAllElse": kind is PolicyType.ACCESS and rnd.random() < 0.05,
        **{name: _items(rnd, count, kind) for name, count in lists.items()},
    }


def _request(rnd: random.Random) -> Said:
    kind = rnd.choice([PolicyType.ACCESS] * 3 + [PolicyType.MASK, PolicyType.FILTER])
    depth = {PolicyType.MASK: 4, PolicyType.FILTER: 3}.get(kind) or rnd.randint(1, 4)
    elements = {level: rnd.choice(ASKED[level]) for level in LEVELS[:depth]}
    said: Said = {
        "kind": int(kind),
        "resource": {"elements": elements, "ownerUser": rnd.choice(["ann", "bob", None])},
        "accessType": "select" if kind else rnd.choice([*ACCESSES, "", ANY]),
        "user": rnd.choice(["ann", "bob", "cal", "dan"]),
        "userGroups": rnd.sample(["g1", "g2"], rnd.randint(0, 2)),
    }
    if rnd.random() < 0.15:
        said["resourceMatchingScope"] = "SELF_OR_DESCENDANTS"
    return said


def engine_of(said: Said) -> Engine:
    return Engine(said["servicePolicies"], roles=said["roles"]["rangerRoles"])


def asked_of(said: Said) -> RangerRequest:
    return RangerRequest(
        resource=said["resource"]["elements"],
        access=said["accessType"] or ANY,
        user=said["user"],
        groups=frozenset(said["userGroups"]),
        owner=said["resource"]["ownerUser"],
        scope=said.get("resourceMatchingScope") or "SELF",
    )
