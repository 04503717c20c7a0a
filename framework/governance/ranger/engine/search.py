"""The search: evaluates policies one by one, in order, until nothing can change the answer.

Semantics: RangerDefaultPolicyEvaluator.evaluate and RangerPolicyEngineImpl.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from lockgate.framework.governance.ranger.conditions.evaluators import resolved
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.accesses import SeveralAccesses
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.matching.resource import Match
from lockgate.framework.governance.ranger.matching.value_tokens import Names
from lockgate.framework.governance.ranger.policies.definition import PolicyType
from lockgate.framework.governance.ranger.policies.item import Item, all_hold
from lockgate.framework.governance.ranger.policies.policy import Policy

_MASK = {"maskType": "dataMaskType", "maskCondition": "conditionExpr", "maskedValue": "valueExpr"}
_TOKEN = "token:"  # noqa: S105 - a prefix of names, no password


def names_of(asked: RangerRequest) -> Names:
    """Return what a request has for tokens and expressions in policies."""
    tokens = {
        key.removeprefix(_TOKEN): value for key, value in asked.context.items() if key.startswith(_TOKEN)
    }
    tokens["USER"] = asked.user
    if asked.owner:
        tokens["OWNER"] = asked.owner
    return Names(tokens, partial(resolved, asked=asked))


class Search:
    """One request and kind, over the tag policies and those of one zone."""

    def __init__(self, asked: RangerRequest, policy_type: PolicyType, accesses: tuple[str, ...]) -> None:
        several = asked.all_accesses or (accesses if asked.is_any else (asked.access,))
        self.asked, self.policy_type = asked, policy_type
        self.names = names_of(asked)
        self._several = SeveralAccesses(asked, several)

    def walk(self, policies: Iterable[Policy], result: Result, denied_by_tags: bool) -> None:
        """Ask the policies of a zone, in order; `result` is what the tags came to."""
        for policy in policies:
            if not policy.is_valid(self.asked):
                continue
            if self.is_settled(policy, result, denied_by_tags):
                result.determined = True
            self.ask(policy, self.asked, result)
            # Policies that deny come first among those of one priority, so none of this one's is left.
            # Ranger asks neither the priority nor whether the policy matches: after an allow by tags any
            # policy that its index offers ends the search, so `policies` must be exactly those.
            if result.allowed and not policy.has_deny:
                result.determined = True
            if result.is_final:
                return

    def is_settled(self, policy: Policy, result: Result, denied_by_tags: bool) -> bool:
        """Return whether what is found so far stands against this policy and those after it."""
        if denied_by_tags:
            return result.priority >= policy.priority
        if not result.allowed:
            return False
        later = result.priority > policy.priority
        return later or (self.policy_type is not PolicyType.ACCESS and result.priority == policy.priority)

    def ask(self, policy: Policy, asked: RangerRequest, result: Result) -> None:
        """Ask one policy, by each of its resources."""
        for resource in policy.resources:
            if result.is_final:
                return
            match = policy.match(resource, asked, self.names)
            if not _is_about(match, asked) or not all_hold(
                policy.conditions, asked, protects=policy.protects
            ):
                continue
            result.audit(policy)
            if not result.determined:
                self._decide(policy, asked, match, result)

    def _decide(self, policy: Policy, asked: RangerRequest, match: Match, result: Result) -> None:
        for access in self._several.accesses:
            one = Result(self.policy_type)
            self._decide_one(policy, asked, access, match, one)
            if self._several.add(access, policy, one):
                break
        found = self._several.composed(self.policy_type)
        if found is not None:
            result.decide_as(found)

    def _decide_one(
        self, policy: Policy, asked: RangerRequest, access: str, match: Match, result: Result
    ) -> None:
        found = policy.deciding(asked, access, determined=result.determined)
        if found is None:
            return
        if found[1] or match is not Match.DESCENDANT or not asked.ignores_descendant_deny:
            self.put(policy, found, asked, result)

    def put(
        self, policy: Policy, found: tuple[Item | None, bool], asked: RangerRequest, result: Result
    ) -> None:
        """Put what a policy says upon a result."""
        item, allows = found
        if not allows:
            result.deny(policy, "deny-all-else" if item is None else None)
        elif item is not None and self._transform(item, asked, result):
            result.allow(policy)

    def _transform(self, item: Item, asked: RangerRequest, result: Result) -> bool:
        """Note the mask or the row filter of an item; say whether there is what its kind needs."""
        if self.policy_type is PolicyType.MASK:
            if item.mask is None:
                return False
            # All of it: nothing is left of a mask whose place it takes.
            result.info = {
                key: resolved(str(item.mask[name]), asked)
                for key, name in _MASK.items()
                if item.mask.get(name) is not None
            }
        elif self.policy_type is PolicyType.FILTER:
            if item.row_filter is None:
                return False
            result.info["filterExpr"] = resolved(item.row_filter, asked)
        return True


def _is_about(match: Match, asked: RangerRequest) -> bool:
    if match is Match.DESCENDANT:
        return asked.is_wide
    return match.is_whole or (match is Match.ANCESTOR and asked.tag is not None)
