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
        "lockgate.framework.governance": (
            "AdminPolicies AdminSettings AuditLog Check GrantChange Negotiation Point PointGrant PolicyApi "
            "PolicyFiles RangerAuthorizer Record RequestFolder covers enforced_policies missing points_of "
            "policy_of service_definition"
        ),
        "lockgate.framework.governance.audit.destinations": "FileAudit FolderAudit LoggerAudit SolrAudit",
    },
)
