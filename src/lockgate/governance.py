"""Governance: decisions by policies of Apache Ranger, permission points, and records of decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.governance import (
        AdminPolicies,
        AdminSettings,
        AuditLog,
        Check,
        FileAudit,
        FolderAudit,
        GrantChange,
        LoggerAudit,
        Negotiation,
        Point,
        PointGrant,
        PolicyApi,
        PolicyFiles,
        RangerAuthorizer,
        Record,
        RequestFolder,
        SolrAudit,
        covers,
        enforced_policies,
        missing,
        points_of,
        policy_of,
        service_definition,
    )

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
        "AdminPolicies": "lockgate.framework.governance",
        "AdminSettings": "lockgate.framework.governance",
        "AuditLog": "lockgate.framework.governance",
        "Check": "lockgate.framework.governance",
        **dict.fromkeys(
            ("FileAudit", "FolderAudit", "LoggerAudit", "SolrAudit"),
            "lockgate.framework.governance.audit.destinations",
        ),
        "GrantChange": "lockgate.framework.governance",
        "Negotiation": "lockgate.framework.governance",
        "PolicyApi": "lockgate.framework.governance",
        "Point": "lockgate.framework.governance",
        "PointGrant": "lockgate.framework.governance",
        "PolicyFiles": "lockgate.framework.governance",
        "RangerAuthorizer": "lockgate.framework.governance",
        "Record": "lockgate.framework.governance",
        "RequestFolder": "lockgate.framework.governance",
        "covers": "lockgate.framework.governance",
        "missing": "lockgate.framework.governance",
        "enforced_policies": "lockgate.framework.governance",
        "points_of": "lockgate.framework.governance",
        "policy_of": "lockgate.framework.governance",
        "service_definition": "lockgate.framework.governance",
    },
)
