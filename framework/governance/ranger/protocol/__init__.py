"""Ranger's protocol: policies, roles, users and tags from its admin, kept on disk for when it is down."""

from lockgate.framework.governance.ranger.protocol.client import AdminClient
from lockgate.framework.governance.ranger.protocol.settings import AdminSettings
from lockgate.framework.governance.ranger.protocol.source import AdminPolicies

__all__ = ["AdminClient", "AdminPolicies", "AdminSettings"]
