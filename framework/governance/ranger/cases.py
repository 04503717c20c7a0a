"""Cases in Ranger's own JSON shape: a request, and what its answer is expected to be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.governance.ranger.conditions.ranger_request import ANY, RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine, Settings
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.policies.definition import PolicyType

_RESULTS = {
    "result": PolicyType.ACCESS,
    "dataMaskResult": PolicyType.MASK,
    "rowFilterResult": PolicyType.FILTER,
}
_SETTINGS = {
    "super_users": "superUsers",
    "super_groups": "superGroups",
    "unaudited_users": "auditExcludedUsers",
    "unaudited_groups": "auditExcludedGroups",
    "unaudited_roles": "auditExcludedRoles",
}
_TIME = "%Y%m%d-%H:%M:%S.%f%z"
Document = Mapping[str, Any]


def engine_of(document: Document) -> Engine:
    """Return the engine of a file's policies; raises PolicyError and InputError."""
    return Engine(
        document.get("servicePolicies") or document,
        roles=(document.get("roles") or {}).get("rangerRoles") or roles_of(document),
        tags=document.get("serviceTags"),
        users=document.get("userStore"),
        settings=settings_of(document),
    )


def settings_of(document: Document) -> Settings:
    """Return a file's super users and those who leave no records."""
    return Settings(**{name: frozenset(document.get(key) or ()) for name, key in _SETTINGS.items()})


def roles_of(document: Document) -> list[dict[str, Any]]:
    """Return the roles of a file that maps users, groups and roles to the roles they have."""
    found = []
    for key, kind in (("userRoles", "users"), ("groupRoles", "groups"), ("roleRoles", "roles")):
        for member, roles in (document.get(key) or {}).items():
            found += [{"name": role, kind: [{"name": member}]} for role in roles]
    return found


def instant(text: str | None) -> datetime | None:
    """Return a time such as `20260131-23:59:59.000+0000`; raises InputError."""
    try:
        return datetime.strptime(text, _TIME) if text else None
    except ValueError:
        raise InputError(f"{text!r} is not a time: write it as 20260131-23:59:59.000+0000") from None


def asked_of(document: Document, case: Document) -> RangerRequest:
    """Return the request of a case, which may hold attributes of users and groups."""
    context = dict(document.get("context") or {})
    tags = context.pop("TAGS", None)
    requested = context.get("REQUESTED_RESOURCES")
    if isinstance(requested, str):
        context["REQUESTED_RESOURCES"] = json.loads(requested)
    resource = document.get("resource") or {}
    return RangerRequest(
        resource=resource.get("elements") or {},
        access=document.get("accessType") or ANY,
        user=document.get("user"),
        groups=frozenset(document.get("userGroups") or ()),
        roles=frozenset(document.get("userRoles") or ()),
        owner=resource.get("ownerUser"),
        action=document.get("action"),
        at=instant(document.get("accessTime")),
        client_ip=document.get("clientIPAddress") or document.get("remoteIPAddress"),
        cluster_name=document.get("clusterName"),
        cluster_type=document.get("clusterType"),
        scope=document.get("resourceMatchingScope") or "SELF",
        scopes=document.get("resourceElementMatchingScopes") or {},
        ignores_descendant_deny=document.get(
            "isDescendantDenyIgnored", document.get("ignoreDescendantDeny", True)
        ),
        all_accesses=tuple(context.pop("ALLACCESSTYPES", None) or ()),
        access_groups=tuple(tuple(each) for each in context.pop("ALLACCESSTYPEGROUPS", None) or ()),
        if_not_denied=frozenset(context.pop("IGNOREIFNOTDENIEDACCESSTYPES", None) or ()),
        context=context,
        tags=_lenient(tags) if tags and isinstance(tags, str) else tags or (),
        users=case.get("userAttributes") or {},
        groups_known=case.get("groupAttributes") or {},
        inline=document.get("inlinePolicy"),
    )


def _lenient(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.replace("'", '"'))


def differences(engine: Engine, case: Document) -> list[str]:
    """Return in what the answers to a case differ from what it expects."""
    if "request" not in case:
        raise InputError("a case has a `request` and a `result`")
    found = []
    for key, kind in _RESULTS.items():
        if case.get(key) is not None:
            got = engine.evaluate(asked_of(case["request"], case), kind)
            found += [f"{key}: {text}" for text in _compared(got, case[key])]
    return found


def _compared(got: Result, want: Document) -> Iterator[str]:
    info = want.get("additionalInfo") or {}
    pairs: list[tuple[str, object, object]] = []
    if got.policy_type is PolicyType.ACCESS:
        pairs = [("allowed", got.allowed, want.get("isAllowed", False))]
        if "isAudited" in want:
            pairs.append(("audited", got.audited, want["isAudited"]))
    else:
        names = (
            ("maskType", "maskCondition", "maskedValue")
            if got.policy_type is PolicyType.MASK
            else ("filterExpr",)
        )
        pairs = [(name, got.info.get(name), info.get(name)) for name in names]
        pairs.append(("policy", got.policy, want.get("policyId", -1)))
    return (f"{name} is {ours!r}, not {theirs!r}" for name, ours, theirs in pairs if ours != theirs)
