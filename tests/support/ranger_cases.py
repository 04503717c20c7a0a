"""Ranger's own test cases, read from the folder `ranger` of `LOCKGATE_TESTDATA`, and put to our engine.

The folder is laid out as Ranger's `agents-common/src/test/resources`. The files are not in the repository.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lockgate.framework.governance.ranger.engine import ANY, Asked, Engine, Kind, Result, Settings
from lockgate.framework.governance.ranger.policies.deltas import updated

ROOT = Path(os.environ.get("LOCKGATE_TESTDATA", "/nonexistent")) / "ranger"
# Addresses that Ranger's own runner takes for proxies.
PROXIES = {"255.255.255.255", "128.101.101.101", "128.101.101.99"}
RESULTS = {"result": Kind.ACCESS, "dataMaskResult": Kind.MASK, "rowFilterResult": Kind.FILTER}
Said = Mapping[str, Any]


def load(path: Path) -> Any:
    """Read JSON as Gson does, which lets comments pass."""
    return json.loads(re.sub(r"(?m)#[^\"\n]*$", "", path.read_text()))


def instant(text: str | None) -> datetime | None:
    return datetime.strptime(text, "%Y%m%d-%H:%M:%S.%f%z") if text else None


def lenient(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.replace("'", '"'))


def asked_of(said: Said, case: Said) -> Asked:
    """Return the request of a case."""
    context = dict(said.get("context") or {})
    tags = context.pop("TAGS", None)
    requested = context.get("REQUESTED_RESOURCES")
    if isinstance(requested, str):
        context["REQUESTED_RESOURCES"] = json.loads(requested)
    resource = said.get("resource") or {}
    return Asked(
        resource=resource.get("elements") or {},
        access=said.get("accessType") or ANY,
        user=said.get("user"),
        groups=frozenset(said.get("userGroups") or ()),
        roles=frozenset(said.get("userRoles") or ()),
        owner=resource.get("ownerUser"),
        action=said.get("action"),
        at=instant(said.get("accessTime")),
        client_ip=_address(said),
        cluster_name=said.get("clusterName"),
        cluster_type=said.get("clusterType"),
        scope=said.get("resourceMatchingScope") or "SELF",
        scopes=said.get("resourceElementMatchingScopes") or {},
        ignores_descendant_deny=said.get("isDescendantDenyIgnored", said.get("ignoreDescendantDeny", True)),
        all_accesses=tuple(context.pop("ALLACCESSTYPES", None) or ()),
        access_groups=tuple(tuple(each) for each in context.pop("ALLACCESSTYPEGROUPS", None) or ()),
        if_not_denied=frozenset(context.pop("IGNOREIFNOTDENIEDACCESSTYPES", None) or ()),
        context=context,
        tags=lenient(tags) if tags else (),
        users=case.get("userAttributes") or {},
        groups_known=case.get("groupAttributes") or {},
        inline=said.get("inlinePolicy"),
    )


def _address(said: Said) -> str | None:
    if said.get("clientIPAddress"):
        return str(said["clientIPAddress"])
    forwarded = said.get("forwardedAddresses")
    direct = said.get("remoteIPAddress")
    return forwarded[0] if direct in PROXIES and forwarded else direct


def differences(engine: Engine, case: Said) -> list[str]:
    """Return in what our answers to a case differ from Ranger's."""
    found = []
    for key, kind in RESULTS.items():
        if case.get(key) is not None:
            got = engine.evaluate(asked_of(case["request"], case), kind)
            found += [f"{key}: {text}" for text in compared(got, case[key])]
    return found


def compared(got: Result, want: Said) -> Iterator[str]:
    info = want.get("additionalInfo") or {}
    pairs: list[tuple[str, object, object]] = []
    if got.kind is Kind.ACCESS:
        pairs += [("allowed", got.allowed, want.get("isAllowed", False))]
        pairs += [("audited", got.audited, want.get("isAudited", False))]
    else:
        names = ("maskType", "maskCondition", "maskedValue") if got.kind is Kind.MASK else ("filterExpr",)
        pairs += [(name, got.info.get(name), info.get(name)) for name in names]
        pairs += [("policy", got.policy, want.get("policyId", -1))]
    return (f"{name} is {ours!r}, not {theirs!r}" for name, ours, theirs in pairs if ours != theirs)


def roles_of(said: Said) -> list[dict[str, Any]]:
    found = []
    for key, kind in (("userRoles", "users"), ("groupRoles", "groups"), ("roleRoles", "roles")):
        for member, roles in (said.get(key) or {}).items():
            found += [{"name": role, kind: [{"name": member}]} for role in roles]
    return found


def tags_of(said: Said) -> Said | None:
    """Return the tags that a case file names in its tag service's definition."""
    definition = (said.get("tagPolicyInfo") or said.get("tagPolicies") or {}).get("serviceDef") or {}
    for enricher in definition.get("contextEnrichers") or ():
        name = (enricher.get("enricherOptions") or {}).get("serviceTagsFileName")
        if name:
            return load(ROOT / name.lstrip("/"))  # type: ignore[no-any-return]
    return None


def policies_of(said: Said) -> dict[str, Any]:
    if said.get("servicePolicies"):
        return dict(said["servicePolicies"])
    keys = ("serviceDef", "policies", "securityZones", "serviceConfig", "auditMode")
    found = {key: said.get(key) for key in keys}
    tags = said.get("tagPolicyInfo")
    if tags:
        found["tagPolicies"] = {**tags, "policies": tags.get("tagPolicies")}
    return found


def engine_of(policies: Said, said: Said) -> Engine:
    settings = Settings(
        super_users=frozenset(said.get("superUsers") or ()),
        super_groups=frozenset(said.get("superGroups") or ()),
        unaudited_users=frozenset(said.get("auditExcludedUsers") or ()),
        unaudited_groups=frozenset(said.get("auditExcludedGroups") or ()),
        unaudited_roles=frozenset(said.get("auditExcludedRoles") or ()),
    )
    return Engine(policies, roles=roles_of(said), tags=tags_of(said), settings=settings, strict=False)


def cases(said: Said) -> Iterator[tuple[Engine, Said]]:
    """Yield each case of a file with the engine it is for: some files change policies on the way."""
    policies = policies_of(said)
    engine = engine_of(policies, said)
    yield from ((engine, case) for case in said.get("tests") or ())
    steps = said.get("testsInfo") or ([said] if said.get("updatedPolicies") else [])
    for step in [steps] if isinstance(steps, dict) else steps:
        if said.get("testsInfo"):
            yield from ((engine, case) for case in step.get("tests") or ())
        policies = updated(policies, step.get("updatedPolicies") or policies)
        engine = engine_of(policies, said)
        yield from ((engine, case) for case in step.get("updatedTests") or ())
