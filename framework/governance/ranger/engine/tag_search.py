"""Policies on tags: they come before those on resources, for every valid tag of the resource.

Semantics: RangerPolicyEngineImpl.evaluateTagPolicies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest, Tag
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.engine.search import Search
from lockgate.framework.governance.ranger.matching.resource import Match
from lockgate.framework.governance.ranger.policies.definition import (
    PolicyType,
    ServiceDefinition,
    component_definition,
    component_policy,
)
from lockgate.framework.governance.ranger.policies.policy import Policy
from lockgate.framework.governance.ranger.policies.policy_index import Policies
from lockgate.framework.governance.ranger.policies.resource_tags import is_valid


class TagPolicies:
    """The policies of a tag service, in the words of the service whose resources carry the tags."""

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition) -> None:
        self.service = ServiceDefinition(component_definition(document["serviceDef"], service.name))
        made = (component_policy(each, service.name) for each in document.get("policies") or ())
        self.document = [each for each in made if each is not None]
        self._policies = Policies(self.document, self.service)

    @property
    def all(self) -> list[Policy]:
        """The policies of all tags."""
        return self._policies.all

    def walk(
        self, search: Search, fresh: Callable[[], Result], zone: str | None, own_tags: bool, result: Result
    ) -> Tag | None:
        """Ask the policies of the request's tags, and return the last tag that was asked about.

        `own_tags`: the zone has a tag service of its own.
        """
        last = next((tag for tag in reversed(search.asked.tags) if is_valid(tag, search.asked)), None)
        for policy, tag in self._sorted(search):
            # Otherwise policies outside zones serve.
            if policy.zone != ((zone or "") if own_tags else ""):
                continue
            last = tag
            self._ask(search, policy, tag, fresh(), result)
            if result.is_final:
                break
        if result.allowed:
            result.determined = True
        return last

    def _ask(self, search: Search, policy: Policy, tag: Tag, own: Result, result: Result) -> None:
        own.decide_as(result)
        own.audit_as(result)
        search.ask(policy, replace(search.asked, tag=tag, current_tag=tag), own)
        if own.allowed and not policy.has_deny:
            own.determined = True
        if own.audited:
            result.audit_as(own)
        if not result.determined and (own.determined or (own.allowed and not result.allowed)):
            result.decide_as(own)

    def _sorted(self, search: Search) -> list[tuple[Policy, Tag]]:
        found = list(self._matching(search.asked, search.policy_type))
        if search.policy_type is PolicyType.ACCESS:
            return sorted(found, key=lambda pair: pair[0].order)
        if search.policy_type is PolicyType.MASK:
            return sorted(found, key=lambda pair: (_rank(pair[1]), pair[0].order_by_name))
        return sorted(found, key=lambda pair: pair[0].order_by_name)

    def _matching(self, asked: RangerRequest, policy_type: PolicyType) -> Iterator[tuple[Policy, Tag]]:
        for tag in asked.tags:
            if not is_valid(tag, asked):
                continue
            of_tag = asked.of_tag(tag)
            for policy in self._policies.index(policy_type).offered(of_tag):
                if policy.is_valid(of_tag):
                    yield policy, tag


def _rank(tag: Tag) -> int:
    return Match[tag.get("matchType") or "SELF"].value
