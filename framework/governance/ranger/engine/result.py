"""Results of Ranger's engine, during and after a search."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockgate.framework.governance.ranger.policies.definition import PolicyType
from lockgate.framework.governance.ranger.policies.policy import Policy

NO_POLICY = -1
HIGHEST = 1 << 30


@dataclass
class Result:
    """An answer: `determined` ends the search, `allowed` alone may still be denied.

    `policy` and `audit_policy` are ids, -1 for none. `info` has maskType, maskedValue and maskCondition of a
    mask, filterExpr of a row filter.
    """

    policy_type: PolicyType
    allowed: bool = False
    determined: bool = False
    audited: bool = False
    audit_determined: bool = False
    policy: int = NO_POLICY
    priority: int = 0
    audit_policy: int = NO_POLICY
    zone: str | None = None
    reason: str | None = None
    info: dict[str, str] = field(default_factory=dict, repr=False)

    def allow(self, policy: Policy) -> None:
        """Let a policy allow, unless one did; a mask or filter takes the place of one of lower priority."""
        if not self.allowed or self.policy_type is not PolicyType.ACCESS:
            self.allowed, self.priority, self.policy, self.reason = True, policy.priority, policy.id, None

    def deny(self, policy: Policy, reason: str | None) -> None:
        """Let a policy deny, which ends the search."""
        self.allowed, self.determined = False, True
        self.priority, self.policy, self.reason = policy.priority, policy.id, reason

    def audit(self, policy: Policy) -> None:
        """Let the first matching policy with audit enabled say that there is a record."""
        if policy.is_audited and not self.audit_determined:
            self.audited = self.audit_determined = True
            self.audit_policy = policy.id

    def decide_as(self, other: Result) -> None:
        """Take another result's decision."""
        self.allowed, self.determined = other.allowed, other.determined
        self.policy, self.priority, self.reason = other.policy, other.priority, other.reason
        self.info = dict(other.info)

    def audit_as(self, other: Result) -> None:
        """Copy another result's audit flag."""
        self.audited, self.audit_determined = other.audited, other.audit_determined
        self.audit_policy = other.audit_policy

    @property
    def is_final(self) -> bool:
        """Return whether no policy can change anything."""
        return self.determined and self.audit_determined
