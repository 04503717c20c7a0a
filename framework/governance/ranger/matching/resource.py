"""Resources of policies over several levels, and how they relate to the resource of a request.

Semantics: Ranger's RangerDefaultPolicyResourceMatcher.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from lockgate.framework.governance.ranger.matching.hierarchy import Chain, Hierarchies, is_contiguous
from lockgate.framework.governance.ranger.matching.value_tokens import NO_NAMES, Names

Scopes = Mapping[str, str]


class Match(Enum):
    """The relation of a policy's resource to the requested one; sorted as Ranger sorts tags by it."""

    SELF = 0
    SELF_AND_ALL_DESCENDANTS = 1
    ANCESTOR = 2  # the policy is about something above the requested resource
    DESCENDANT = 3  # the policy is about something beneath it
    NONE = 4

    @property
    def is_whole(self) -> bool:
        """Return whether the policy covers the requested resource itself."""
        return self in (Match.SELF, Match.SELF_AND_ALL_DESCENDANTS)


class PolicyResource:
    """The values a policy names, by level; one that fits no hierarchy of the service matches nothing."""

    def __init__(self, hierarchies: Hierarchies, values: Mapping[str, Mapping[str, Any]] | None) -> None:
        self.hierarchies, self.values = hierarchies, values or {}
        chains = [chain for chain in hierarchies.having(self.values) if is_contiguous(chain, self.values)]
        self._only = chains[0] if len(chains) == 1 else None
        self.elements = (
            {level: hierarchies.element(level, document) for level, document in self.values.items()}
            if chains
            else {}
        )
        self.is_dynamic = any(element.is_dynamic for element in self.elements.values())

    def match(
        self, resource: Mapping[str, object], scopes: Scopes | None = None, names: Names = NO_NAMES
    ) -> Match:
        """Return how this resource stands to a requested one, a value (or several) a level."""
        asked = {level for level, value in resource.items() if value is not None}
        if not self.values and not asked:
            return Match.SELF
        chain = self._chain(asked) if self.elements else None
        if not chain:
            return Match.NONE
        found = self._walk(chain, resource, scopes or {}, names, Match.NONE if asked else Match.SELF)
        if found is Match.SELF and len(asked) < len(self.values):
            deeper = len(asked) > self._last_named(chain)
            return Match.SELF_AND_ALL_DESCENDANTS if deeper else Match.DESCENDANT
        return found

    def is_offered(self, resource: Mapping[str, object]) -> bool:
        """Return whether Ranger's index offers this resource for a requested one.

        The index knows the levels one by one, and only how values begin. Ranger evaluates what it offers, and
        lets its search end there even where the policy then does not match.
        """
        return all(
            self._is_offered(level, value)
            for level, value in resource.items()
            if level in self.hierarchies.definitions
        )

    def _is_offered(self, level: str, value: object) -> bool:
        if level in self.values:
            document = self.values[level]
            return bool(document.get("isExcludes")) or self.hierarchies.element(level, document).begins(value)
        named = [
            each
            for each, document in self.values.items()
            if each in self.hierarchies.definitions and any(document.get("values") or ())
        ]
        leaf = max(
            named, key=lambda each: int(self.hierarchies.definitions[each].get("level") or 0), default=""
        )
        return bool(leaf) and self.hierarchies.is_above(leaf, level)

    def _walk(
        self, chain: Chain, resource: Mapping[str, object], scopes: Scopes, names: Names, found: Match
    ) -> Match:
        for level in chain:
            element, value = self.elements.get(level), resource.get(level)
            if element is None:
                return found if value is None else Match.ANCESTOR
            if value is not None or element.is_any:
                if not element.matches(value, scopes.get(level), names):
                    return Match.NONE
                found = Match.SELF
        return found

    def _last_named(self, chain: Chain) -> int:
        """Return the place of the last level of which the policy says something, -1 if there is none."""
        last = -1
        for index, level in enumerate(chain):
            if level not in self.elements:
                break
            if not self.elements[level].is_any:
                last = index
        return last

    def _chain(self, asked: set[str]) -> Chain | None:
        if not asked:
            return self._only or self.hierarchies.shortest(self.values)
        if self._only:
            chain = self._only if asked <= set(self._only) else None
        elif asked <= set(self.values):
            chain = self.hierarchies.shortest(self.values)
        elif set(self.values) <= asked:
            chain = self.hierarchies.shortest(asked)
        else:
            chain = None
        return chain if chain and is_contiguous(chain, asked) else None

    def match_policy(
        self, other: Mapping[str, Mapping[str, Any]], scopes: Scopes | None = None, names: Names = NO_NAMES
    ) -> Match:
        """Return how this resource stands to another policy's, to tell which policies are about it."""
        request: dict[str, object] = {}
        found, skipped = Match.NONE, False
        for level in self.hierarchies.shortest(other) or ():
            values = (other.get(level) or {}).get("values")
            if not values:
                skipped = True
                continue
            found = Match.NONE if skipped else self._first(request, level, values, scopes, names)
            if found is Match.NONE:
                return found
        return found

    def _first(
        self, request: dict[str, object], level: str, values: list[str], scopes: Scopes | None, names: Names
    ) -> Match:
        for value in values:
            request[level] = value
            found = self.match(request, scopes, names)
            if found is not Match.NONE:
                return found
        return Match.NONE
