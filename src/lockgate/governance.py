"""Governance: decisions by policies of Apache Ranger, permission points, and records of decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.governance import AuditLog, PolicyFiles, RangerAuthorizer, Record, RequestFolder
    from lockgate.framework.governance.checks import Check
    from lockgate.framework.governance.points import Point, covers, missing
    from lockgate.framework.governance.ranger.protocol import AdminPolicies, AdminSettings

__all__ = [
    "AdminPolicies",
    "AdminSettings",
    "AuditLog",
    "Check",
    "Point",
    "PolicyFiles",
    "RangerAuthorizer",
    "Record",
    "RequestFolder",
    "covers",
    "missing",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "AdminPolicies": "lockgate.framework.governance.ranger.protocol",
        "AdminSettings": "lockgate.framework.governance.ranger.protocol",
        "AuditLog": "lockgate.framework.governance",
        "Check": "lockgate.framework.governance.checks",
        "Point": "lockgate.framework.governance.points",
        "PolicyFiles": "lockgate.framework.governance",
        "RangerAuthorizer": "lockgate.framework.governance",
        "Record": "lockgate.framework.governance",
        "RequestFolder": "lockgate.framework.governance",
        "covers": "lockgate.framework.governance.points",
        "missing": "lockgate.framework.governance.points",
    },
)
