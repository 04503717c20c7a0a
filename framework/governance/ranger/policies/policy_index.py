"""Index of policies: finds the few that may match a resource, in the order of evaluation.

For each level, a table leads from a value (or its beginning, up to a wildcard) to the ranks of policies. A
rank is a position in the order of all policies, so sorting policies means sorting numbers. The caller checks
each one exactly: the index may return too many, never too few.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.matching.element import flag
from lockgate.framework.governance.ranger.policies.definition import PolicyType, ServiceDefinition
from lockgate.framework.governance.ranger.policies.policy import Policy

_SPECIAL = "*?{$\\"
# A further level is looked at only if that can be cheaper than to check each policy found so far.
_WORTH_IT = 8
Ranks = Sequence[int]
Several = list[Collection[int]]


class LevelTable:
    """One level's values: whole ones, beginnings, and policies that name none that could be looked up."""

    def __init__(self) -> None:
        self._exact: dict[str, array[int]] = {}
        self._beginnings: dict[str, array[int]] = {}
        self._lengths: tuple[int, ...] = ()
        self._rest: dict[int, None] = {}

    def add(self, values: Iterable[str] | None, rank: int) -> None:
        """Add a policy's values at this level; None for those that cannot be looked up."""
        for value in ("*",) if values is None else values:
            folded = value.lower()
            cut = min((position for mark in _SPECIAL if (position := folded.find(mark)) >= 0), default=-1)
            if cut == 0:
                self._rest[rank] = None
            elif cut < 0:
                self._exact.setdefault(folded, array("I")).append(rank)
            else:
                self._beginnings.setdefault(folded[:cut], array("I")).append(rank)

    def freeze(self) -> None:
        """Get ready for look-ups."""
        self._lengths = tuple(sorted({len(text) for text in self._beginnings}))

    def find(self, value: str) -> Several:
        """Return lists of ranks that may be about a value."""
        folded = value.lower()
        found: Several = [self._rest] if self._rest else []
        if folded in self._exact:
            found.append(self._exact[folded])
        for length in self._lengths:
            if length > len(folded):
                break
            ranks = self._beginnings.get(folded[:length])
            if ranks is not None:
                found.append(ranks)
        return found


class PolicyIndex:
    """Policies of one kind, sorted, with a table a level."""

    def __init__(
        self, policies: Iterable[Policy], service: ServiceDefinition, policy_type: PolicyType
    ) -> None:
        self.policies = sorted(policies, key=lambda policy: policy.order)
        self._tables = {level: LevelTable() for level in service.levels}
        definitions = service.hierarchies[policy_type].definitions
        self._plain = {level for level, each in definitions.items() if _is_plain(each)}
        for rank, policy in enumerate(self.policies):
            for resource in policy.raw_resources:
                self._add(resource, rank)
        for table in self._tables.values():
            table.freeze()

    def _add(self, resource: Mapping[str, Mapping[str, Any]], rank: int) -> None:
        for level, table in self._tables.items():
            document = resource.get(level)
            values = None if document is None or document.get("isExcludes") else document.get("values")
            table.add(values if values and level in self._plain else None, rank)

    def likely(self, asked: RangerRequest) -> list[Policy]:
        """Return the policies that may be about a request, in order."""
        if asked.scopes or asked.is_wide or not asked.resource:
            return self.policies
        return [self.policies[rank] for rank in self.ranks(asked.resource)]

    def offered(self, asked: RangerRequest) -> list[Policy]:
        """Return the policies that Ranger's index offers for a request, and no others, in order."""
        if not asked.resource:
            return self.policies
        # Levels with a scope may go on, for which Ranger's index walks further.
        levels = {level: value for level, value in asked.resource.items() if level not in asked.scopes}
        return [
            policy
            for policy in self.likely(asked)
            if any(each.is_offered(levels) for each in policy.resources)
        ]

    def ranks(self, resource: Mapping[str, object]) -> Ranks:
        """Return the ranks of policies that may be about a resource, by as many levels as pays."""
        found = [
            self._tables[level].find(value)
            for level, value in resource.items()
            if level in self._tables and isinstance(value, str)
        ]
        sizes = sorted((sum(map(len, lists)), position) for position, lists in enumerate(found))
        if not sizes:
            return range(len(self.policies))
        ranks = set[int]().union(*found[sizes[0][1]])
        for size, position in sizes[1:]:
            if size > _WORTH_IT * len(ranks):
                break
            ranks &= set[int]().union(*found[position])
        return sorted(ranks)


def _is_plain(definition: Mapping[str, Any]) -> bool:
    """Return whether a level's values can be looked up by their beginnings."""
    options = definition.get("matcherOptions") or {}
    matcher = str(definition.get("matcher") or "Default")
    usual = str(options.get("tokenDelimiterStart") or "{") in _SPECIAL
    return "Default" in matcher and usual and flag(options, "wildCard", True)


class Policies:
    """The policies of one zone, by kind; disabled ones are left out."""

    def __init__(self, document: Iterable[Mapping[str, Any]], service: ServiceDefinition) -> None:
        enabled = (each for each in document if each.get("isEnabled", True) is not False)
        self.all = [Policy(each, service) for each in enabled]
        self._by_type = {
            policy_type: PolicyIndex(
                (each for each in self.all if each.policy_type is policy_type), service, policy_type
            )
            for policy_type in PolicyType
        }

    def index(self, policy_type: PolicyType) -> PolicyIndex:
        """Return the policies of one kind."""
        return self._by_type[policy_type]
