"""Audit filters: rules in a service's configuration that say which requests leave a record.

They are JSON with single quotes under `ranger.plugin.audit.filters`; the first that matches a result decides.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.value_tokens import Names
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition
from lockgate.framework.governance.ranger.policies.item import EVERY_USER, OWNER, PUBLIC

FILTERS = "ranger.plugin.audit.filters"
_log = logging.getLogger("lockgate.governance")


class AuditFilter:
    """One rule."""

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition) -> None:
        resources = document.get("resources")
        self._resource = PolicyResource(service.resources, resources) if resources else None
        self._wanted = document.get("accessResult")
        self._accesses, self._actions = (
            set(document.get("accessTypes") or ()),
            set(document.get("actions") or ()),
        )
        self._users, self._groups, self._roles = (
            set(document.get(key) or ()) for key in ("users", "groups", "roles")
        )
        self.is_audited = document.get("isAudited")

    def matches(self, asked: RangerRequest, result: Result, names: Names) -> bool:
        """Return whether the rule is about a request and its result."""
        return (
            self._wanted in (None, "", _state(result))
            and self._is_for(asked)
            and self._is_for_access(asked)
            and self._is_about(asked, names)
        )

    def is_offered(self, asked: RangerRequest) -> bool:
        """Return whether Ranger's index offers the rule for a request."""
        return self._resource is None or self._resource.is_offered(asked.resource)

    def _is_about(self, asked: RangerRequest, names: Names) -> bool:
        if self._resource is None:
            return True
        if asked.tag is not None:
            match = Match[asked.tag.get("matchType") or "SELF"]
        else:
            match = self._resource.match(asked.resource, asked.scopes, names)
        about_a_part = match is Match.DESCENDANT and asked.is_wide
        return match.is_whole or about_a_part or (match is Match.ANCESTOR and asked.tag is not None)

    def _is_for(self, asked: RangerRequest) -> bool:
        everybody = not (self._users or self._groups or self._roles)
        if everybody or PUBLIC in self._groups or EVERY_USER in self._users:
            return True
        owner = OWNER in self._users and asked.user == asked.owner
        named = asked.user in self._users or owner
        return named or not (self._groups.isdisjoint(asked.groups) and self._roles.isdisjoint(asked.roles))

    def _is_for_access(self, asked: RangerRequest) -> bool:
        nothing_named = not self._accesses and not self._actions
        return nothing_named or asked.action in self._actions or asked.access in self._accesses


def first_matching(
    filters: Iterable[AuditFilter], requests: Sequence[RangerRequest], result: Result, names: Names
) -> bool:
    """Let the first rule that matches a request decide about its record; False if none matches."""
    for rule in filters:
        for asked in requests:
            if rule.is_audited is not None and rule.is_offered(asked) and rule.matches(asked, result, names):
                result.audited = rule.is_audited
                return True
    return False


def _state(result: Result) -> str:
    if not result.determined:
        return "NOT_DETERMINED"
    return "ALLOWED" if result.allowed else "DENIED"


def audit_filters(config: Mapping[str, Any], service: ServiceDefinition) -> list[AuditFilter]:
    """Return the rules of a service's configuration; none if they cannot be read, as in Ranger."""
    text = config.get(FILTERS)
    if not text:
        return []
    try:
        return [AuditFilter(each, service) for each in json.loads(text.replace("'", '"'))]
    except json.JSONDecodeError:
        _log.warning("%s of the service %s is not JSON: Lockgate ignores it", FILTERS, service.name)
        return []
