"""Deltas: changes of policies that Ranger's admin sends instead of all policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.errors import PolicyError

CREATE, UPDATE, DELETE = 0, 1, 2
Document = Mapping[str, Any]


def with_deltas(policies: Iterable[Document], deltas: Iterable[Document]) -> list[Document]:
    """Return policies with created, changed and deleted ones, told apart by their ids."""
    by_id = {policy["id"]: policy for policy in policies}
    for delta in deltas:
        policy = delta.get("policy") or {}
        if delta.get("changeType") == DELETE:
            by_id.pop(policy.get("id"), None)
        elif delta.get("changeType") in (CREATE, UPDATE):
            by_id[policy["id"]] = policy
    return list(by_id.values())


def updated(base: Document, change: Document) -> dict[str, Any]:
    """Return a service's policies with a later download put upon them; one without deltas replaces all.

    Deltas of tag policies have the tag service's type; those of zones are in the zones. Raises PolicyError
    for deltas that follow nothing.
    """
    zones = change.get("securityZones") or {}
    has_deltas = change.get("policyDeltas") is not None
    if not has_deltas and not any(zone.get("policyDeltas") is not None for zone in zones.values()):
        return dict(change)
    if not base:
        raise PolicyError(
            "changes of policies arrived before the policies: request all policies (version -1)"
        )
    deltas = [each for each in change.get("policyDeltas") or () if not _zone_of(each)]
    values = {key: value for key, value in change.items() if value is not None and key != "policyDeltas"}
    tags = base.get("tagPolicies") or {}
    tag_type = (tags.get("serviceDef") or {}).get("name") or "tag"
    own = [each for each in deltas if each.get("serviceType") != tag_type]
    of_tags = [each for each in deltas if each.get("serviceType") == tag_type]
    result = {**base, **values, "policies": with_deltas(base.get("policies") or (), own)}
    if tags:
        result["tagPolicies"] = {
            **tags,
            **{key: value for key, value in (change.get("tagPolicies") or {}).items() if value is not None},
            "policies": with_deltas(tags.get("policies") or (), of_tags),
        }
    result["securityZones"] = (
        _zones(base.get("securityZones") or {}, zones) if zones else base.get("securityZones")
    )
    return result


def _zone_of(delta: Document) -> str | None:
    return (delta.get("policy") or {}).get("zoneName")


def _zones(base: Document, changes: Document) -> dict[str, Any]:
    """Return the zones of a download: a zone that it does not name is gone."""
    return {name: _zone(base.get(name) or {}, change) for name, change in changes.items()}


def _zone(base: Document, change: Document) -> dict[str, Any]:
    values = {key: value for key, value in change.items() if value is not None and key != "policyDeltas"}
    if change.get("policies") is not None and change.get("policyDeltas") is None:
        return {**base, **values}
    policies = change.get("policies") or base.get("policies") or ()
    return {**base, **values, "policies": with_deltas(policies, change.get("policyDeltas") or ())}
