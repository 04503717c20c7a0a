"""Governance: who may see what, decided in Python by policies."""

from lockgate.framework.governance.audit_log import AuditLog
from lockgate.framework.governance.authorizer import RangerAuthorizer, Record
from lockgate.framework.governance.policy_files import PolicyFiles

__all__ = ["AuditLog", "PolicyFiles", "RangerAuthorizer", "Record"]
