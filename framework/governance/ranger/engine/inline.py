"""Inline policies: they come with a request, as limits of a session, and hold with others or alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.result import NO_POLICY, Result
from lockgate.framework.governance.ranger.matching.resource import PolicyResource
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition

_EVERYBODY = "g:public"


def decide(
    asked: RangerRequest, service: ServiceDefinition, ask: Callable[[RangerRequest], Result], result: Result
) -> None:
    """Put a request's inline policy upon the result; `ask` decides for the one who grants it."""
    document = asked.inline or {}
    mode = document.get("mode") or "INLINE"
    allowed = result.determined and result.allowed
    if (mode == "RANGER_AND_INLINE" and not allowed) or (mode == "RANGER_OR_INLINE" and allowed):
        return
    result.allowed = _permits(document, asked, service, ask)
    result.determined, result.policy, result.reason = True, NO_POLICY, "inline-policy"


def _permits(
    document: Mapping[str, Any],
    asked: RangerRequest,
    service: ServiceDefinition,
    ask: Callable[[RangerRequest], Result],
) -> bool:
    grantor = document.get("grantor")
    if grantor and not ask(_as_grantor(asked, grantor)).allowed:
        return False
    grants = document.get("grants") or ()
    return not grants or any(_covers(grant, asked, service) for grant in grants)


def _as_grantor(asked: RangerRequest, grantor: str) -> RangerRequest:
    kind, _, name = grantor.partition(":")
    one = frozenset([name])
    return replace(
        asked,
        user=name if kind == "u" else None,
        groups=one if kind == "g" else frozenset(),
        roles=one if kind == "r" else frozenset(),
        inline=None,
    )


def _covers(grant: Mapping[str, Any], asked: RangerRequest, service: ServiceDefinition) -> bool:
    given = {"accesses": [{"type": each} for each in grant.get("permissions") or ()]}
    actions = grant.get("actions") or ()
    return (
        _is_for(grant, asked)
        and asked.access.lower() in service.granted_by(given)
        and (not actions or any(fnmatchcase(asked.action or "", each) for each in actions))
        and _is_about(grant, asked, service)
    )


def _is_for(grant: Mapping[str, Any], asked: RangerRequest) -> bool:
    wanted = set(grant.get("principals") or ())
    groups, roles = (f"g:{name}" for name in asked.groups), (f"r:{name}" for name in asked.roles)
    return not wanted or bool(wanted & {_EVERYBODY, f"u:{asked.user}", *groups, *roles})


def _is_about(grant: Mapping[str, Any], asked: RangerRequest, service: ServiceDefinition) -> bool:
    named = grant.get("resources") or ()
    return not named or any(
        _resource(each, service).match(asked.resource, asked.scopes).is_whole for each in named
    )


def _resource(text: str, service: ServiceDefinition) -> PolicyResource:
    """Return the resource of a name such as `key:volume/bucket/key`."""
    leaf, _, path = text.partition(":")
    chain = service.resources.shortest([leaf]) or ()
    levels = chain[: chain.index(leaf) + 1] if leaf in chain else ()
    named = zip(levels, path.split("/", max(0, len(levels) - 1)), strict=False)
    return PolicyResource(service.resources, {level: {"values": [value]} for level, value in named})
