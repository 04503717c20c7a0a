"""The access types of a request: the engine decides each one over all policies and combines the answers.

Most requests have one. `_any` stands for all of the service's. Groups of access types need one of each
group. Semantics: RangerDefaultPolicyEvaluator.evaluatePolicyItems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.policies.definition import PolicyType
from lockgate.framework.governance.ranger.policies.policy import Policy


class SeveralAccesses:
    """The answers so far by access type, over all policies of one search."""

    def __init__(self, asked: RangerRequest, accesses: Sequence[str]) -> None:
        self._any, self.accesses = asked.is_any, accesses
        self._ignores_descendants = asked.ignores_descendant_deny
        self._lenient = asked.if_not_denied
        self._groups: Sequence[Sequence[str]] = asked.access_groups
        if self._any and not asked.ignores_descendant_deny:
            self._groups = [[access] for access in accesses]
        self._found: dict[str, Result] = {}

    def add(self, access: str, policy: Policy, one: Result) -> bool:
        """Add a policy's answer about one access type; say whether the policy need not be asked further."""
        if not one.allowed and not one.determined:
            return False
        previous = self._found.get(access)
        if previous is None or self._counts(policy, previous, one):
            self._found[access] = one
        return self._any and (one.allowed if self._ignores_descendants else not one.allowed)

    def _counts(self, policy: Policy, previous: Result, one: Result) -> bool:
        if previous.allowed:
            equal = not one.allowed or policy.policy_type is not PolicyType.ACCESS
            return policy.priority >= previous.priority if equal else policy.priority > previous.priority
        if one.allowed and self._any and policy.priority >= previous.priority:
            return True
        return policy.priority > previous.priority

    def composed(self, policy_type: PolicyType) -> Result | None:
        """Return the answer to the whole, None while it is open."""
        if not self._groups:
            found = self._of_group(self.accesses)
            lenient = bool(self._lenient) and self._lenient.issuperset(self.accesses)
            return Result(policy_type, allowed=True) if found is None and lenient else found
        answers = [(group, self._of_group(group)) for group in self._groups]
        refused = next((found for _, found in answers if found is not None and not found.allowed), None)
        if refused is not None:
            return refused
        open_ones = [group for group, found in answers if found is None]
        if any(not self._lenient or not self._lenient.issuperset(group) for group in open_ones):
            return None
        return next((found for _, found in answers if found is not None), Result(policy_type, allowed=True))

    def _of_group(self, group: Iterable[str]) -> Result | None:
        answers = [self._found.get(access) for access in group]
        allowed = next((found for found in answers if found is not None and found.allowed), None)
        if allowed is not None:
            return allowed
        return answers[0] if answers and all(found is not None for found in answers) else None
