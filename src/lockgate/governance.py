"""Governance: decisions by policies of Apache Ranger, permission points, and records of decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.governance import AuditLog, PolicyFiles, RangerAuthorizer, Record, RequestFolder
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
        "AdminPolicies": "lockgate.framework.governance.ranger.protocol.policy_source",
        "AdminSettings": "lockgate.framework.governance.ranger.protocol.admin_settings",
        "AuditLog": "lockgate.framework.governance",
        "Check": "lockgate.framework.governance.statement_checks",
        **dict.fromkeys(
            ("FileAudit", "FolderAudit", "LoggerAudit", "SolrAudit"),
            "lockgate.framework.governance.audit.destinations",
        ),
        "GrantChange": "lockgate.framework.governance.ranger.policies.grant_changes",
        "Negotiation": "lockgate.framework.governance.ranger.protocol.kerberos",
        "PolicyApi": "lockgate.framework.governance.ranger.protocol.policy_api",
        "Point": "lockgate.framework.governance.points.point",
        "PointGrant": "lockgate.framework.governance.points.policies",
        "PolicyFiles": "lockgate.framework.governance",
        "RangerAuthorizer": "lockgate.framework.governance",
        "Record": "lockgate.framework.governance",
        "RequestFolder": "lockgate.framework.governance",
        "covers": "lockgate.framework.governance.points.cover",
        "missing": "lockgate.framework.governance.points.cover",
        "enforced_policies": "lockgate.framework.governance.points.enforced",
        "points_of": "lockgate.framework.governance.points.policies",
        "policy_of": "lockgate.framework.governance.points.policies",
        "service_definition": "lockgate.framework.governance.ranger.service_definition",
    },
)
