"""Governance: decisions in Python, by policies, about what each user may see and do."""

from lockgate.framework.governance.audit.log import AuditLog
from lockgate.framework.governance.audit.record import Record
from lockgate.framework.governance.authorizer import RangerAuthorizer
from lockgate.framework.governance.policy_files import PolicyFiles
from lockgate.framework.governance.requests.folder import RequestFolder

__all__ = ["AuditLog", "PolicyFiles", "RangerAuthorizer", "Record", "RequestFolder"]
