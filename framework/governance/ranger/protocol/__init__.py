"""Ranger's protocol: downloads of policies, roles, users and tags from its admin, with a cache on disk."""

from lockgate.framework.governance.ranger.protocol.client import AdminClient
from lockgate.framework.governance.ranger.protocol.settings import AdminSettings
from lockgate.framework.governance.ranger.protocol.source import AdminPolicies

__all__ = ["AdminClient", "AdminPolicies", "AdminSettings"]
