"""A service in Ranger's terms, as small as tests need it: catalog, database, table, column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.policies.definition import PolicyType

LEVELS = ("catalog", "database", "table", "column")
ACCESSES = ("show", "select", "insert", "alter", "create", "drop")
MATCHER = "org.apache.ranger.plugin.resourcematcher.RangerDefaultResourceMatcher"
Said = dict[str, Any]


def definition(**more: Any) -> Said:
    """A service definition; access `all` implies the others."""
    levels = [
        {
            "name": name,
            "level": 10 * (place + 1),
            "parent": LEVELS[place - 1] if place else "",
            "matcher": MATCHER,
            "matcherOptions": {"wildCard": "true", "ignoreCase": "true"},
            "excludesSupported": True,
            "isValidLeaf": True,
        }
        for place, name in enumerate(LEVELS)
    ]
    types = [{"itemId": place, "name": name} for place, name in enumerate(ACCESSES, 1)]
    sections = [{"name": name} for name in LEVELS]
    masks = ("MASK", "MASK_HASH", "MASK_NULL", "MASK_NONE", "CUSTOM")
    return {
        "name": "paimon",
        "resources": levels,
        "accessTypes": [*types, {"itemId": 9, "name": "all", "impliedGrants": list(ACCESSES)}],
        "dataMaskDef": {
            "accessTypes": [{"name": "select"}],
            "resources": sections,
            "maskTypes": [{"itemId": place, "name": name} for place, name in enumerate(masks, 1)],
        },
        "rowFilterDef": {"accessTypes": [{"name": "select"}], "resources": sections[:3]},
        "policyConditions": [
            {"name": "script", "evaluator": "RangerScriptConditionEvaluator"},
            {"name": "moon", "evaluator": "RangerMoonPhaseEvaluator"},
            {"name": "ip", "evaluator": "RangerIpMatcher"},
        ],
        **more,
    }


def resource(path: str) -> Said:
    """The resource of a policy, such as `lake.db.t.*`."""
    return {
        level: {"values": value.split("|")} for level, value in zip(LEVELS, path.split("."), strict=False)
    }


def item(*accesses: str, **more: Any) -> Said:
    """An item of a policy, with `users`, `groups`, `roles`, `conditions` and the like."""
    return {"accesses": [{"type": each} for each in accesses or ("select",)], **more}


_numbers = iter(range(1, 1_000_000))


def policy(path: str, **more: Any) -> Said:
    number = next(_numbers)
    return {"id": number, "name": f"p{number}", "resources": resource(path), **more}


def allow(path: str, *accesses: str, **more: Any) -> Said:
    return policy(path, policyItems=[item(*accesses, **more)])


def deny(path: str, *accesses: str, **more: Any) -> Said:
    return policy(path, denyPolicyItems=[item(*accesses, **more)])


def mask(path: str, kind: str, priority: int = 0, value: str | None = None, **more: Any) -> Said:
    said = {"dataMaskType": kind, "valueExpr": value}
    return policy(
        path,
        policyType=1,
        policyPriority=priority,
        dataMaskPolicyItems=[{**item(**more), "dataMaskInfo": said}],
    )


def row_filter(path: str, text: str, **more: Any) -> Said:
    return policy(
        path, policyType=2, rowFilterPolicyItems=[{**item(**more), "rowFilterInfo": {"filterExpr": text}}]
    )


def service(*policies: Mapping[str, Any], **more: Any) -> Said:
    """What Ranger's admin gives for a service."""
    return {
        "serviceName": "lake",
        "policyVersion": 1,
        "serviceDef": definition(),
        "policies": [*policies],
        **more,
    }


def engine(*policies: Mapping[str, Any], **more: Any) -> Engine:
    return Engine(service(*policies), **more)


def asked(path: str, access: str = "select", user: str | None = "ann", **more: Any) -> RangerRequest:
    """A request for a path such as `lake.db.t.c`."""
    named = dict(zip(LEVELS, path.split(".") if path else (), strict=False))
    return RangerRequest(**{"resource": named, "access": access, "user": user, **more})


def answer(
    engine: Engine, path: str, access: str = "select", kind: PolicyType = PolicyType.ACCESS, **more: Any
) -> Result:
    return engine.evaluate(asked(path, access, **more), kind)


def allowed(engine: Engine, path: str, access: str = "select", **more: Any) -> bool:
    return answer(engine, path, access, **more).allowed


def members(names: Iterable[str]) -> list[Said]:
    return [{"name": name} for name in names]
