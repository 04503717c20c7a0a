"""Governance: decisions in Python, by policies, about what each user may see and do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.governance.audit.log import AuditLog
from lockgate.framework.governance.audit.record import Record
from lockgate.framework.governance.authorizer import RangerAuthorizer
from lockgate.framework.governance.policy_files import PolicyFiles
from lockgate.framework.governance.requests.folder import RequestFolder
from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.governance.audit.destinations import (
        FileAudit,
        FolderAudit,
        LoggerAudit,
        SolrAudit,
    )
    from lockgate.framework.governance.points.cover import covers, missing
    from lockgate.framework.governance.points.enforced import enforced_policies
    from lockgate.framework.governance.points.point import Point
    from lockgate.framework.governance.points.policies import PointGrant, points_of, policy_of
    from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange
    from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
    from lockgate.framework.governance.ranger.protocol.kerberos import Negotiation
    from lockgate.framework.governance.ranger.protocol.policy_api import PolicyApi
    from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies
    from lockgate.framework.governance.ranger.service_definition import service_definition
    from lockgate.framework.governance.statement_checks import Check


__all__ = [
    "AdminPolicies",
    "AdminSettings",
    "AuditLog",
    "Check",
    "FileAudit",
    "FolderAudit",
    "GrantChange",
    "LoggerAudit",
    "Negotiation",
    "Point",
    "PointGrant",
    "PolicyApi",
    "PolicyFiles",
    "RangerAuthorizer",
    "Record",
    "RequestFolder",
    "SolrAudit",
    "covers",
    "enforced_policies",
    "missing",
    "points_of",
    "policy_of",
    "service_definition",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".audit.destinations": "FileAudit FolderAudit LoggerAudit SolrAudit",
        ".points.cover": "covers missing",
        ".points.enforced": "enforced_policies",
        ".points.point": "Point",
        ".points.policies": "PointGrant points_of policy_of",
        ".ranger.policies.grant_changes": "GrantChange",
        ".ranger.protocol.admin_settings": "AdminSettings",
        ".ranger.protocol.kerberos": "Negotiation",
        ".ranger.protocol.policy_api": "PolicyApi",
        ".ranger.protocol.policy_source": "AdminPolicies",
        ".ranger.service_definition": "service_definition",
        ".statement_checks": "Check",
    },
)
