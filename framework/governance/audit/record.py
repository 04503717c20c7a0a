"""Records of decisions, and their form in Ranger's audit.

Source of the fields: Ranger's AuthzAuditEvent and RangerDefaultAuditHandler.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from lockgate.framework.access import mask_literals
from lockgate.framework.delivery import Line

# As many characters of a statement as Ranger keeps.
_LONGEST = 1800
_ENFORCER = "ranger-acl"


@dataclass(frozen=True)
class Record:
    """One decision, for audit: who asked for what, and by which policy it was decided.

    `access` is the access type of the service, `action` that of the statement, `statement` its text, and
    `service_type` the service's number of its type in Ranger.
    """

    user: str
    access: str
    resource: str
    kind: str
    allowed: bool
    policy: int
    version: int
    zone: str | None = None
    reason: str | None = None
    action: str | None = None
    statement: str | None = None
    service_type: int = 0


class Writer:
    """Makes lines of records, with numbers of their own.

    Literals in statements are masked unless `literals` is set: they may be values of hidden columns.
    """

    def __init__(self, service: str, *, cluster: str = "", literals: bool = False) -> None:
        self._service, self._cluster, self._literals = service, cluster, literals
        self._host, self._run = socket.gethostname(), uuid.uuid4().hex
        self._process = os.getpid()

    def line(self, record: Record, number: int) -> Line:
        """Return a record in Ranger's fields; the time is now."""
        if os.getpid() != self._process:  # a process that was forked from this one has a run of its own
            self._run, self._process = uuid.uuid4().hex, os.getpid()
        text = record.statement
        if text is not None:
            # Cut before masking: a text of megabytes must not hold up the query that it belongs to.
            text = text[: 4 * _LONGEST]
            text = (text if self._literals else mask_literals(text))[:_LONGEST]
        found = {
            "repoType": record.service_type,
            "repo": self._service,
            "reqUser": record.user,
            "evtTime": datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            "access": record.action or record.access,
            "resource": record.resource,
            "resType": record.kind,
            "action": record.access,
            "result": int(record.allowed),
            "agent": "lockgate",
            "policy": record.policy,
            "reason": record.reason,
            "enforcer": _ENFORCER,
            "reqData": text,
            "agentHost": self._host,
            "logType": "RangerAudit",
            "id": f"{self._run}-{number}",
            "seq_num": number,
            "event_count": 1,
            "event_dur_ms": 0,
            "cluster_name": self._cluster or None,
            "zone_name": record.zone,
            "policy_version": record.version,
        }
        return {key: value for key, value in found.items() if value is not None}
