"""Audit: decisions as JSON lines in Ranger's fields, written by a thread of their own from a bounded queue.

Nothing waits for the file. `dropped` counts records that did not fit into the queue or could not be written.
"""

from __future__ import annotations

import json
import logging
import queue
import socket
import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lockgate.framework.governance.authorizer import Record

_log = logging.getLogger("lockgate.governance")
_END = None
_ENFORCER = "ranger-acl"


class AuditLog:
    """A file of records; hand the object itself to `RangerAuthorizer(audit=...)`."""

    def __init__(
        self, path: str | Path, *, service: str, kind: str = "paimon", capacity: int = 10_000
    ) -> None:
        """Append to `path`; `service` and `kind` are the service's name and type in Ranger."""
        self._path, self._service, self._kind = Path(path), service, kind
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(capacity)
        self._count, self._lock = 0, threading.Lock()
        self._agent, self._run = socket.gethostname(), uuid.uuid4().hex
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="lockgate-audit", daemon=True)
        self._thread.start()

    def __call__(self, record: Record) -> None:
        """Queue a record; never waits and never raises."""
        with self._lock:
            self._count += 1
            count = self._count
        try:
            self._queue.put_nowait(self._line(record, count))
        except queue.Full:
            self._drop()

    def _line(self, record: Record, count: int) -> dict[str, Any]:
        return {
            "repo": self._service,
            "repoType": self._kind,
            "reqUser": record.user,
            "evtTime": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            "access": record.access,
            "action": record.access,
            "resource": record.resource,
            "resType": record.kind,
            "result": int(record.allowed),
            "policy": record.policy,
            "policy_version": record.version,
            "reason": record.reason,
            "zone_name": record.zone,
            "enforcer": _ENFORCER,
            "agent": "lockgate",
            "agentHost": self._agent,
            "logType": "RangerAudit",
            "id": f"{self._run}-{count}",
            "seq_num": count,
            "event_count": 1,
            "event_dur_ms": 0,
        }

    def _write(self) -> None:
        while (line := self._queue.get()) is not _END:
            self._append(line)

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self._path.open("a") as file:
                file.write(
                    json.dumps({key: value for key, value in line.items() if value is not None}) + "\n"
                )
        except OSError as error:
            self._drop()
            _log.warning("an audit record was not written: %s", error)

    def _drop(self) -> None:
        with self._lock:
            self.dropped += 1

    def close(self) -> None:
        """Write what is queued, and end."""
        self._queue.put(_END)
        self._thread.join()
