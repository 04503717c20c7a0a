"""Requests for access, and the grants that answer them: where requests are kept, and how policies change."""

from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange, granted, revoked
from lockgate.framework.governance.requests.folder import AccessAsked, RequestFolder

__all__ = ["AccessAsked", "GrantChange", "RequestFolder", "granted", "revoked"]
