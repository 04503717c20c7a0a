"""The driver's Python answering the connector: one operation, JSON in, JSON out."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.errors import BridgeError, LockgateError, nearest
from lockgate.framework.plugins import plugins
from lockgate.framework.spark import (
    aggregate_operations,
    alter_operations,
    catalog_operations,
    key_operations,
    partition_operations,
    replace_operations,
    scan_operations,
    write_operations,
)
from lockgate.framework.spark.catalogs import Catalogs, KeyScopes
from lockgate.framework.spark.context import Context
from lockgate.framework.spark.explain import ScanReports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.store.replace import Replacement
    from lockgate.framework.store.table import Table

Handler = Callable[[Any, dict[str, Any]], object]

# A reply above this many characters goes through a file: py4j would escape and copy it several times.
LARGEST_INLINE = 1 << 20

_log = logging.getLogger("lockgate.spark")

_OWN: dict[str, Handler] = {
    **catalog_operations.OPERATIONS,
    **alter_operations.OPERATIONS,
    **partition_operations.OPERATIONS,
    **replace_operations.OPERATIONS,
    **scan_operations.OPERATIONS,
    **aggregate_operations.OPERATIONS,
    **write_operations.OPERATIONS,
    **key_operations.OPERATIONS,
}


class Brain:
    """Answers the connector, for all sessions of this process.

    Requests come from any thread of the JVM, several at a time; nothing here is bound to a Python thread.
    """

    class Java:
        """What py4j needs to know."""

        implements = ("io.lockgate.spark.Brain",)

    def __init__(self) -> None:
        self.scopes = KeyScopes()
        self.catalogs = Catalogs(self.scopes)
        self.reports = ScanReports()
        # By the id of a write that has begun: the table as its files are written for.
        self.writes: dict[str, Table] = {}
        # Tables that are written to and will replace others, by a handle.
        self.replacements: dict[str, Replacement] = {}
        self._session: SparkSession | None = None
        # The JVM's class of sessions: to find it by its name takes more calls than all else.
        self._sessions: Any = None

    def use_session(self, session: SparkSession) -> None:
        """Make `session` the way to the JVM; the one that answers is still the JVM's active session."""
        jvm: Any = session.sparkContext._jvm
        self._sessions = jvm.org.apache.spark.sql.classic.SparkSession
        self._session = session

    def active_session(self) -> SparkSession:
        """Return the session that is active on the calling thread of the JVM."""
        from pyspark.sql import SparkSession

        if self._session is None:
            raise BridgeError("no Spark session is attached: call lockgate.attach(spark)")
        active = self._sessions.getActiveSession()
        return SparkSession(self._session.sparkContext, active.get()) if active.isDefined() else self._session

    def call(self, operation: str, request: str) -> str:
        """Answer one operation; whatever goes wrong is an answer too, never an exception."""
        try:
            decoded = _incoming(request)
            reply: dict[str, Any] = {"ok": self.answer(operation, decoded)}
            return _outgoing(json.dumps(reply))
        except LockgateError as error:
            return _error(type(error).__name__, str(error))
        except Exception as error:
            # Not one of ours, so worth a look; a traceback names code, never the values in it.
            _log.warning("operation %s failed", operation, exc_info=True)
            return _error(type(error).__name__, f"{type(error).__name__}: {error}")
        except BaseException as error:  # an interrupt must not unwind through the JVM's call
            return _error(type(error).__name__, f"interrupted by {type(error).__name__}")

    def answer(self, operation: str, request: dict[str, Any]) -> object:
        """Answer one operation with plain values; raises what the operation raises."""
        return self._handler(operation)(Context(self, request), request)

    def _handler(self, operation: str) -> Handler:
        if operation in _OWN:
            return _OWN[operation]
        added: Mapping[str, Handler] = plugins().bridge_operations()
        if operation not in added:
            raise BridgeError(f"no plugin answers {operation!r}{nearest(operation, [*_OWN, *added])}")
        return added[operation]


def _incoming(request: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(request)
    if decoded.keys() == {"ref"}:
        path = Path(decoded["ref"])
        try:
            decoded = json.loads(path.read_text(encoding="utf-8"))
        finally:
            path.unlink()
    return decoded


def _outgoing(reply: str) -> str:
    if len(reply) <= LARGEST_INLINE:
        return reply
    descriptor, path = tempfile.mkstemp(prefix="lockgate-", suffix=".json")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(reply)
    return json.dumps({"ref": path})


def _error(kind: str, message: str) -> str:
    return json.dumps({"error": {"type": kind, "message": message}})


_lock = threading.Lock()
_process_brain: Brain | None = None


def brain() -> Brain:
    """Return the process's brain."""
    global _process_brain
    with _lock:
        if _process_brain is None:
            _process_brain = Brain()
        return _process_brain
