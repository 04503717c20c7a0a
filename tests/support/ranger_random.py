"""Random policies and requests in Ranger's terms, the same for our engine and for Ranger's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ranger_world import ACCESSES, LEVELS, MATCHER, definition

from lockgate.framework.governance.ranger.conditions.ranger_request import ANY, RangerRequest
from lockgate.framework.governance.ranger.engine.audit_choice import FILTERS
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
LISTS = (
    "policyItems",
    "denyPolicyItems",
    "allowExceptions",
    "denyExceptions",
    "dataMaskPolicyItems",
    "rowFilterPolicyItems",
)
USERS, GROUPS, ROLES = ["ann", "bob", "cal", "{USER}", "{OWNER}"], ["g1", "g2", "public"], ["r1", "r2"]
MASKS = ["MASK", "MASK_HASH", "MASK_NULL", "MASK_NONE", "CUSTOM"]
TAGS = ["PII", "PCI", "PHI"]
AUDIT_MODES = ["audit-default", "audit-default", "audit-all", "audit-none"]
MATCHES = ["SELF", "SELF", "SELF_AND_ALL_DESCENDANTS", "ANCESTOR", "DESCENDANT"]
PACKAGE = "org.apache.ranger.plugin.conditionevaluator"
CONDITIONS: dict[str, list[list[str]]] = {
    "_expression": [
        ["USER.dept == 'eng'"],
        ["USER.level > 3"],
        ["USER.dept"],
        ["UGNAMES.length"],
        ["UG.length > 0"],
        ["UG.indexOf('g2') >= 0"],
        ["UGNAMES.indexOf('g2') >= 0"],
        ["ctx.isInGroup('g1')"],
        ["IS_IN_GROUP('g1') && !IS_IN_ROLE('r1')"],
        ["HAS_TAG('PII')"],
        ["TAG.level == 'high'"],
        ["TAGNAMES.length > 1"],
        ["ctx.result = true"],
        ["ctx.result = true; false"],
        ["var x = USER.level; x >= 2"],
        ["if (USER.dept == 'eng') ctx.result = true;"],
        ["GET_USER_ATTR('dept', 'none') == 'none'"],
        ["REQ.accessType == 'select'"],
        ["RES.table == 't1'"],
        [" "],
    ],
    "any": [["PII"], ["PII,PCI"], ["PII", "PCI "], []],
    "none": [["PII"], ["PII,PCI"], [" PHI"]],
    "all": [["PII"], ["PII", "PCI"], ["PII,PCI"], []],
    "ip": [["10.0.*"], ["10.0.0.1", "10.1.*"], ["*"], ["FE80::1"], []],
    "time": [["9:30am - 5pm"], ["10pm - 6am"], []],
    "template": [["true"], ["no"], [""]],
}
EVALUATORS = {
    "_expression": "RangerScriptConditionEvaluator",
    "any": "RangerAnyOfExpectedTagsPresentConditionEvaluator",
    "none": "RangerNoneOfExpectedTagsPresentConditionEvaluator",
    "all": "RangerTagsAllPresentConditionEvaluator",
    "ip": "RangerIpMatcher",
    "time": "RangerTimeOfDayMatcher",
    "template": "RangerScriptTemplateConditionEvaluator",
}
USER_STORE = {
    "userAttrMapping": {"ann": {"dept": "eng", "level": "5"}, "bob": {"dept": "ops", "level": "2"}},
    "groupAttrMapping": {"g1": {"site": "north"}, "g2": {"site": "south"}},
}
Said = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What a world has: how many of each, and how often a request has tags or an item a condition."""

    policies: int = 40
    tag_policies: int = 0
    requests: int = 400
    conditions: float = 0.0
    audit_filters: bool = False


SHAPES = {
    "resources": Shape(),
    "tags": Shape(policies=14, tag_policies=14, audit_filters=True),
    "conditions": Shape(policies=10, tag_policies=10, requests=120, conditions=0.6, audit_filters=True),
}


def generate(seed: int, shape: Shape = SHAPES["resources"]) -> Said:
    """Return {servicePolicies, roles, userStore, requests} as Ranger's own classes read them."""
    rnd = random.Random(seed)
    said = [_policy(rnd, number, shape) for number in range(1, shape.policies + 1)]
    roles = [
        {"id": 1, "name": "r1", "users": [{"name": "cal"}], "groups": [], "roles": []},
        {"id": 2, "name": "r2", "users": [], "groups": [{"name": "g2"}], "roles": [{"name": "r1"}]},
    ]
    service: Said = {
        "serviceDef": {"id": 1, **definition(policyConditions=_conditions())},
        "policies": said,
        "serviceConfig": {},
    }
    if shape.audit_filters:
        service["auditMode"] = rnd.choice(AUDIT_MODES)
        service["serviceConfig"] = {
            "ranger.plugin.audit.exclude.users": rnd.choice(["", "", "dan"]),
            FILTERS: _audit_filters(rnd, _some_resources),
        }
    if shape.tag_policies:
        service["tagPolicies"] = {
            "serviceName": "tags",
            "serviceDef": _tag_definition(),
            "policies": [_tag_policy(rnd, 1000 + number, shape) for number in range(shape.tag_policies)],
            "serviceConfig": {FILTERS: _audit_filters(rnd, _some_tag)} if rnd.random() < 0.4 else {},
        }
    return {
        "servicePolicies": service,
        "roles": {"rangerRoles": roles},
        "userStore": USER_STORE,
        "requests": [_request(rnd, shape) for _ in range(shape.requests)],
    }


def _conditions() -> list[Said]:
    made: list[Said] = [
        {"itemId": place, "name": name, "evaluator": f"{PACKAGE}.{kind}"}
        for place, (name, kind) in enumerate(EVALUATORS.items(), 1)
    ]
    made[-1]["evaluatorOptions"] = {"scriptTemplate": "USER.dept == 'eng'"}
    return made


def _tag_definition() -> Said:
    """A tag service, in whose words each access and mask has the name of its component."""
    own = [{"itemId": place, "name": f"paimon:{name}"} for place, name in enumerate(ACCESSES, 1)]
    implied = [f"paimon:{name}" for name in ACCESSES]
    select = {"accessTypes": [{"name": "paimon:select"}], "resources": [{"name": "tag"}]}
    return {
        "id": 100,
        "name": "tag",
        "resources": [
            {
                "itemId": 1,
                "name": "tag",
                "level": 1,
                "matcher": MATCHER,
                "matcherOptions": {"wildCard": "false", "ignoreCase": "false"},
            }
        ],
        "accessTypes": [
            *own,
            {"itemId": 20, "name": "paimon:all", "impliedGrants": implied},
            {"itemId": 21, "name": "hive:select"},
        ],
        "dataMaskDef": {
            **select,
            "maskTypes": [{"itemId": place, "name": f"paimon:{name}"} for place, name in enumerate(MASKS, 1)],
        },
        "rowFilterDef": select,
        "policyConditions": _conditions(),
    }


def _some_resources(rnd: random.Random) -> Said:
    depth = rnd.randint(1, 3)
    return {"resources": {level: {"values": [rnd.choice(VALUES[level])]} for level in LEVELS[:depth]}}


def _some_tag(rnd: random.Random) -> Said:
    return {"resources": {"tag": {"values": [rnd.choice(TAGS)]}}}


def _audit_filters(rnd: random.Random, about: Callable[[random.Random], Said]) -> str:
    found = []
    for _ in range(rnd.randint(0, 3)):
        one: Said = {"isAudited": rnd.random() < 0.4}
        if rnd.random() < 0.6:
            one.update(about(rnd))
        if rnd.random() < 0.5:
            one["accessResult"] = rnd.choice(["ALLOWED", "DENIED"])
        if rnd.random() < 0.3:
            one["users"] = rnd.sample(USERS, 1)
        if rnd.random() < 0.3:
            one["roles"] = ["r1"]
        if rnd.random() < 0.4:
            one["accessTypes"] = rnd.sample(ACCESSES, 2)
        found.append(one)
    return json.dumps(found).replace('"', "'")


def _tag_policy(rnd: random.Random, number: int, shape: Shape) -> Said:
    made = _policy(rnd, number, shape)
    made["resources"] = {"tag": {"values": [rnd.choice(TAGS)], "isExcludes": False, "isRecursive": False}}
    for name in LISTS:
        for one in made.get(name, ()):
            # The admin writes the component's name; other components' items are not ours.
            one["accesses"] = [
                {**each, "type": f"{rnd.choice(['paimon'] * 6 + ['hive'])}:{each['type']}"}
                for each in one["accesses"]
            ]
            if "dataMaskInfo" in one:
                info = one["dataMaskInfo"]
                info["dataMaskType"] = f"{rnd.choice(['paimon:'] * 6 + ['hive:', ''])}{info['dataMaskType']}"
    return made


def _items(rnd: random.Random, count: int, kind: PolicyType, conditions: float) -> list[Said]:
    found = []
    for _ in range(count):
        types = ["select"] if kind else rnd.sample([*ACCESSES, "all"], rnd.randint(1, 3))
        one: Said = {
            "accesses": [{"type": each, "isAllowed": True} for each in types],
            "users": rnd.sample(USERS, rnd.randint(0, 2)),
            "groups": rnd.sample(GROUPS, rnd.choice([0, 0, 1])),
            "roles": rnd.sample(ROLES, rnd.choice([0, 0, 1])),
            "conditions": _conditions_of(rnd, conditions),
            "delegateAdmin": rnd.random() < 0.2,
        }
        if kind is PolicyType.MASK:
            one["dataMaskInfo"] = {"dataMaskType": rnd.choice(MASKS)}
            if rnd.random() < 0.3:
                one["dataMaskInfo"]["valueExpr"] = rnd.choice(["upper({col})", "'x'"])
            if rnd.random() < 0.3:
                one["dataMaskInfo"]["conditionExpr"] = rnd.choice(["id > 1", "id < 9"])
        if kind is PolicyType.FILTER:
            one["rowFilterInfo"] = {"filterExpr": f"x={rnd.randint(0, 9)}"}
        found.append(one)
    return found


def _conditions_of(rnd: random.Random, often: float) -> list[Said]:
    if rnd.random() >= often:
        return []
    kind = rnd.choice([*["_expression"] * 3, *EVALUATORS])
    return [{"type": kind, "values": rnd.choice(CONDITIONS[kind])}]


def _policy(rnd: random.Random, number: int, shape: Shape) -> Said:
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
        "conditions": _conditions_of(rnd, shape.conditions / 4),
        **{name: _items(rnd, count, kind, shape.conditions) for name, count in lists.items()},
    }


def _request(rnd: random.Random, shape: Shape) -> Said:
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
    if shape.tag_policies:
        said["tags"] = [_tag(rnd, name) for name in rnd.sample(TAGS, rnd.choice([0, 1, 1, 2]))]
    if shape.conditions:
        said["accessTime"] = f"20261128-{rnd.randint(0, 23):02d}:30:00.000+0000"
        said["clientIPAddress"] = rnd.choice(["10.0.0.1", "10.1.2.3", "fe80::12", None])
    return said


def _tag(rnd: random.Random, name: str) -> Said:
    said: Said = {"type": name, "matchType": rnd.choice(MATCHES)}
    if rnd.random() < 0.5:
        said["attributes"] = {"level": rnd.choice(["high", "low"])}
    return said


def engine_of(said: Said) -> Engine:
    return Engine(
        said["servicePolicies"], roles=said["roles"]["rangerRoles"], users=said["userStore"], strict=False
    )


def asked_of(said: Said) -> RangerRequest:
    at = said.get("accessTime")
    return RangerRequest(
        resource=said["resource"]["elements"],
        access=said["accessType"] or ANY,
        user=said["user"],
        groups=frozenset(said["userGroups"]),
        owner=said["resource"]["ownerUser"],
        action=said.get("action"),
        scope=said.get("resourceMatchingScope") or "SELF",
        tags=said.get("tags") or (),
        at=datetime.strptime(at, "%Y%m%d-%H:%M:%S.%f%z") if at else None,
        client_ip=said.get("clientIPAddress"),
    )
