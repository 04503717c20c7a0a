"""Ranger's policy engine, immutable: new policies make a new engine.

Not done: data shares (GDS) and conditions on the place of an IP address.
Order of evaluation: docs/governance.md. Semantics: RangerPolicyEngineImpl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import SUPER_USER, RangerRequest
from lockgate.framework.governance.ranger.engine import inline
from lockgate.framework.governance.ranger.engine.audit_choice import audit_filters, first_matching
from lockgate.framework.governance.ranger.engine.result import HIGHEST, Result
from lockgate.framework.governance.ranger.engine.search import Search, names_of
from lockgate.framework.governance.ranger.engine.tag_search import TagPolicies
from lockgate.framework.governance.ranger.engine.zones import UNZONED, Zone, Zones
from lockgate.framework.governance.ranger.policies.definition import PolicyType, ServiceDefinition
from lockgate.framework.governance.ranger.policies.policy import Policy
from lockgate.framework.governance.ranger.policies.policy_index import Policies
from lockgate.framework.governance.ranger.policies.resource_tags import TagMap, is_valid
from lockgate.framework.governance.ranger.policies.roles import Roles
from lockgate.framework.governance.ranger.policies.strictness import check_understood

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """Settings of a plugin's own configuration, in addition to the service's."""

    super_users: frozenset[str] = frozenset()
    super_groups: frozenset[str] = frozenset()
    unaudited_users: frozenset[str] = frozenset()
    unaudited_groups: frozenset[str] = frozenset()
    unaudited_roles: frozenset[str] = frozenset()

    def with_service(self, config: Document) -> Settings:
        """Return both together."""
        return Settings(
            self.super_users | _names(config.get("ranger.plugin.super.users")),
            self.super_groups | _names(config.get("ranger.plugin.super.groups")),
            self.unaudited_users | _names(config.get("ranger.plugin.audit.exclude.users")),
            self.unaudited_groups | _names(config.get("ranger.plugin.audit.exclude.groups")),
            self.unaudited_roles | _names(config.get("ranger.plugin.audit.exclude.roles")),
        )


def _names(text: str | None) -> frozenset[str]:
    return frozenset(name for each in (text or "").split(",") if (name := each.strip()))


class Engine:
    """The policies of one service, ready to decide."""

    def __init__(
        self,
        policies: Document,
        *,
        roles: Iterable[Document] = (),
        tags: Document | None = None,
        users: Document | None = None,
        settings: Settings | None = None,
        strict: bool = True,
    ) -> None:
        """Read policies as Ranger's admin gives them (ServicePolicies), with roles, tags and users.

        Raises PolicyError if a condition that protects something is not understood, unless not `strict`, and
        InputError for what is no service definition.
        """
        config = policies.get("serviceConfig") or {}
        self.service = ServiceDefinition(policies.get("serviceDef") or {})
        self.version = int(policies.get("policyVersion") or 0)
        self.policies = Policies(policies.get("policies") or (), self.service)
        self.zones = Zones(policies.get("securityZones") or {}, self.service)
        self.roles = Roles(roles)
        self.settings = (settings or Settings()).with_service(config)
        self._audit_mode = policies.get("auditMode") or "audit-default"
        self._tags = TagMap(tags, self.service) if tags else None
        self._users = (users or {}).get("userAttrMapping") or {}
        self._groups = (users or {}).get("groupAttrMapping") or {}
        self._groups_of = (users or {}).get("userGroupMapping") or {}
        said_of_tags = policies.get("tagPolicies") or {}
        self.tag_policies = (
            TagPolicies(said_of_tags, self.service) if said_of_tags.get("serviceDef") else None
        )
        self._audit_filters = audit_filters(config, self.service)
        self._tag_audit_filters = (
            audit_filters(said_of_tags.get("serviceConfig") or {}, self.tag_policies.service)
            if self.tag_policies
            else []
        )
        if strict:
            self._check()

    def _check(self) -> None:
        check_understood((each.document for each in self.policies.all), self.service)
        for zone in self.zones.by_name.values():
            check_understood((each.document for each in zone.policies.all), self.service)
        if self.tag_policies is not None:
            check_understood(self.tag_policies.document, self.tag_policies.service)

    def evaluate(self, asked: RangerRequest, policy_type: PolicyType = PolicyType.ACCESS) -> Result:
        """Return the answer to a request, and whether it leaves a record."""
        asked = self.prepared(asked)
        result = self._in_zones(asked, policy_type)
        if asked.inline:
            inline.decide(asked, self.service, self.evaluate, result)
        self._choose_audit(asked, result)
        return result

    def prepared(self, asked: RangerRequest) -> RangerRequest:
        """Return a request with roles, attributes, tags and zones, unless they were given."""
        if not asked.roles:
            asked = replace(asked, roles=self.roles.of(asked.user, asked.groups))
        if self._users and not asked.users:
            asked = replace(asked, users=self._users)
        if self._groups and not asked.groups_known:
            asked = replace(asked, groups_known=self._groups)
        if self._tags is not None and not asked.tags:
            asked = replace(asked, tags=self._tags.of(asked, names_of(asked)))
        if self.zones.by_name:
            asked = replace(asked, zones=self.zones.of(asked.resource, names_of(asked)))
        return asked

    def _in_zones(self, asked: RangerRequest, policy_type: PolicyType) -> Result:
        if not asked.zones or (len(asked.zones) > 1 and not asked.is_any):
            result = self._in_zone(asked, policy_type, UNZONED)
        else:
            result = self._first_allowed(asked, policy_type, sorted(asked.zones))
        if asked.is_any and not asked.resource and not result.allowed and self.zones.by_name:
            other = self._first_allowed(asked, policy_type, self.zones.by_name)
            result = other if other.allowed else result
        return result

    def _first_allowed(self, asked: RangerRequest, policy_type: PolicyType, zones: Iterable[str]) -> Result:
        result = Result(policy_type)
        for name in zones:
            result = self._in_zone(asked, policy_type, name)
            if result.allowed:
                break
        return result

    def _in_zone(self, asked: RangerRequest, policy_type: PolicyType, name: str) -> Result:
        zone = self.zones.by_name.get(name)
        result = self.fresh(asked, policy_type)
        result.zone = name or None
        if self.is_super(asked) or asked.access == SUPER_USER:
            result.allowed, result.determined = self.is_super(asked), True
            result.priority, result.reason = HIGHEST, "superuser"
        search = Search(asked, policy_type, self.service.accesses_of_any)
        self._ask_tags(search, zone, name, result)
        asked = search.asked
        by_tags = result.allowed if result.determined else None
        result.determined = False
        policies = self.policies if zone is None else zone.policies
        if not policies.all:
            result.determined = by_tags is not None
            return result
        index = policies.index(policy_type)
        offered = index.likely(asked) if by_tags is None else index.offered(asked)
        search.walk(offered, result, by_tags is False)
        if not result.determined and by_tags is not None:
            result.allowed = by_tags
        result.determined = True
        return result

    def _ask_tags(self, search: Search, zone: Zone | None, name: str, result: Result) -> None:
        if self.tag_policies is not None and search.asked.tags:
            own_tags = zone is not None and zone.has_own_tags
            fresh = partial(self.fresh, search.asked, search.policy_type)
            last = self.tag_policies.walk(search, fresh, name, own_tags, result)
            search.asked = replace(search.asked, current_tag=last)

    def groups_of(self, user: str) -> frozenset[str] | None:
        """Return the groups of a user, None for one that Ranger's admin did not name."""
        found = self._groups_of.get(user)
        return None if found is None else frozenset(found)

    def policies_about(self, resource: Mapping[str, Any]) -> Iterator[Policy]:
        """Yield the policies that may be about a resource or a part of it, in all zones and by tags."""
        for policies in (self.policies, *(zone.policies for zone in self.zones.by_name.values())):
            for policy_type in PolicyType:
                index = policies.index(policy_type)
                yield from (index.policies[rank] for rank in index.ranks(resource))
        if self.tag_policies is not None:
            yield from self.tag_policies.all

    @property
    def decides_simply(self) -> bool:
        """Return whether neither tags nor zones nor audit filters matter."""
        tagged = self.tag_policies is not None and self._tags is not None
        return not (tagged or self.zones.by_name or self._audit_filters)

    def is_super(self, asked: RangerRequest) -> bool:
        """Return whether everything is allowed to the current user."""
        return asked.user in self.settings.super_users or not self.settings.super_groups.isdisjoint(
            asked.groups
        )

    def fresh(self, asked: RangerRequest, policy_type: PolicyType) -> Result:
        """Return an open result, with what is known of its record beforehand."""
        if self._is_unaudited(asked):
            return Result(policy_type, audited=False, audit_determined=True)
        settled = self._audit_mode in ("audit-all", "audit-none")
        nothing = not settled and not self.policies.all and self.tag_policies is None
        return Result(
            policy_type,
            audited=self._audit_mode == "audit-all" or nothing,
            audit_determined=settled or nothing,
        )

    def _is_unaudited(self, asked: RangerRequest) -> bool:
        settings = self.settings
        if asked.user in settings.unaudited_users:
            return True
        groups, roles = settings.unaudited_groups, settings.unaudited_roles
        return not (groups.isdisjoint(asked.groups) and roles.isdisjoint(asked.roles))

    def _choose_audit(self, asked: RangerRequest, result: Result) -> None:
        if not self._chosen_by_tags(asked, result):
            first_matching(self._audit_filters, [asked], result, names_of(asked))

    def _chosen_by_tags(self, asked: RangerRequest, result: Result) -> bool:
        tags = [asked.of_tag(tag) for tag in asked.tags if is_valid(tag, asked)]
        if not any(each.is_offered(tag) for each in self._tag_audit_filters for tag in tags):
            return False
        # A mode, or a user without records, goes before the filters of tags; those of resources go before it.
        beforehand = self.fresh(asked, PolicyType.ACCESS)
        if beforehand.audit_determined:
            result.audited = beforehand.audited
            return True
        return first_matching(self._tag_audit_filters, tags, result, names_of(asked))
