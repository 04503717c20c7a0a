"""A table's columns decided together: one search of policies per table, one match of people per policy.

The answers equal those for single columns. If more than resources and people matters (tags, zones,
conditions, audit filters), the engine decides column by column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.result import HIGHEST, Result
from lockgate.framework.governance.ranger.engine.search import Search
from lockgate.framework.governance.ranger.matching.element import Element
from lockgate.framework.governance.ranger.matching.resource import PolicyResource
from lockgate.framework.governance.ranger.policies.definition import PolicyType
from lockgate.framework.governance.ranger.policies.policy import Policy

COLUMN = "column"
_CONDITIONAL = ("policyItems", "denyPolicyItems", "allowExceptions", "denyExceptions")
_TRANSFORMS = ("dataMaskPolicyItems", "rowFilterPolicyItems")


@dataclass(frozen=True)
class TableAnswer:
    """The answers about a table: by column whether it may be read and its mask, and the row filter."""

    access: dict[str, Result]
    masks: dict[str, Result]
    row_filter: Result


def decide_table(engine: Engine, asked: RangerRequest, columns: Sequence[str]) -> TableAnswer:
    """Return the answers to a request whose resource is a table, for some of its columns."""
    asked = engine.prepared(asked)
    return TableAnswer(
        _columns(engine, asked, columns, PolicyType.ACCESS),
        _columns(engine, asked, columns, PolicyType.MASK),
        engine.evaluate(asked, PolicyType.FILTER),
    )


def decide_whole(engine: Engine, asked: RangerRequest) -> tuple[Result, bool]:
    """Return the answer about a resource as a whole, and whether no part of it is denied either."""
    whole = engine.evaluate(asked)
    wide = replace(asked, scope="SELF_OR_DESCENDANTS", ignores_descendant_deny=False)
    parts = engine.evaluate(wide)
    return whole, whole.allowed and (parts.allowed or parts.policy < 0)


def _columns(
    engine: Engine, asked: RangerRequest, columns: Sequence[str], policy_type: PolicyType
) -> dict[str, Result]:
    index = engine.policies.index(policy_type)
    likely = [index.policies[rank] for rank in index.ranks(asked.resource)]
    if engine.decides_simply and not asked.inline and not asked.is_wide and not asked.all_accesses:
        walk = _Walk(engine, asked, columns, policy_type)
        if walk.run(likely):
            return walk.results
    return {column: engine.evaluate(_of_column(asked, column), policy_type) for column in columns}


def _of_column(asked: RangerRequest, column: str) -> RangerRequest:
    # Tags and zones of the table may differ from those of the column.
    return replace(asked, resource={**asked.resource, COLUMN: column}, tags=(), zones=frozenset())


def is_conditional(policy: Policy) -> bool:
    """Return whether more than its resource and people decide what a policy says."""
    document = policy.document
    if document.get("conditions") or document.get("validitySchedules"):
        return True
    return any(
        item.get("conditions") for name in (*_CONDITIONAL, *_TRANSFORMS) for item in document.get(name) or ()
    )


class _Walk:
    """One walk over the policies of a table, for all of its columns."""

    def __init__(
        self, engine: Engine, asked: RangerRequest, columns: Sequence[str], policy_type: PolicyType
    ) -> None:
        self._asked, self._policy_type = asked, policy_type
        self._search = Search(asked, policy_type, ())
        self._columns = frozenset(columns)
        self._above: dict[Element, bool] = {}
        self._matching: dict[Element, frozenset[str]] = {}
        self.results = {column: engine.fresh(asked, policy_type) for column in columns}
        self._open = set(columns)
        if engine.is_super(asked):
            for result in self.results.values():
                result.allowed, result.priority, result.reason = True, HIGHEST, "superuser"

    def run(self, policies: Iterable[Policy]) -> bool:
        """Ask the policies in order; say whether they could be asked for all columns together."""
        for policy in policies:
            for resource in policy.resources:
                columns = self._about(resource)
                if columns is None:
                    return False
                if columns and not self._ask(policy, columns):
                    return False
            if not self._open:
                break
        for result in self.results.values():
            result.determined = True
        return True

    def _about(self, resource: PolicyResource) -> frozenset[str] | set[str] | None:
        """Return the open columns that a resource is about, None if that must be asked for each column."""
        levels = self._asked.resource
        if COLUMN not in resource.elements:
            return frozenset()  # about something above columns
        if len(resource.elements) != len(levels) + 1:
            return None
        for level, value in levels.items():
            if level not in resource.elements:
                return frozenset()
            if not self._is_above(resource.elements[level], value):
                return frozenset()
        return self._open & self._names(resource.elements[COLUMN])

    def _is_above(self, element: Element, value: object) -> bool:
        if element not in self._above:
            self._above[element] = element.matches(value, None, self._search.names)
        return self._above[element]

    def _names(self, element: Element) -> frozenset[str]:
        if element not in self._matching:
            names = self._search.names
            found = (each for each in self._columns if element.matches(each, None, names))
            self._matching[element] = frozenset(found)
        return self._matching[element]

    def _ask(self, policy: Policy, columns: Iterable[str]) -> bool:
        if is_conditional(policy):
            return False
        found = policy.deciding(self._asked, self._asked.access, determined=False)
        for result in self._of(columns):
            if self._search.is_settled(policy, result, denied_by_tags=False):
                result.determined = True
            result.audit(policy)
            if found is not None and not result.determined:
                self._search.put(policy, found, self._asked, result)
            if result.allowed and not policy.has_deny and result.priority >= policy.priority:
                result.determined = True
        self._open -= {column for column in columns if self.results[column].is_final}
        return True

    def _of(self, columns: Iterable[str]) -> Iterator[Result]:
        return (self.results[column] for column in columns)
