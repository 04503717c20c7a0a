"""The driver's Python answering the connector: one operation, JSON in, JSON out."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lockgate.errors import BridgeError, LockgateError, nearest
from lockgate.framework.access import Caller
from lockgate.framework.io import errors_named
from lockgate.framework.plugins import acting_as, answering_session, plugins
from lockgate.framework.spark.bridge.protocol import Question, decode_question, encode_answer, encode_error
from lockgate.framework.spark.context.jvm_sessions import Sessions
from lockgate.framework.spark.context.open_catalogs import Catalogs, KeyScopes
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.context.query_reports import ScanReports
from lockgate.framework.spark.enforcement import confidential_flow, file_rights
from lockgate.framework.spark.enforcement import decisions as governance_operations
from lockgate.framework.spark.enforcement import stream_rights as stream_right_operations
from lockgate.framework.spark.enforcement.scan_grants import Grants
from lockgate.framework.spark.messages.shapes import fault_in, messages_of
from lockgate.framework.spark.operations import (
    aggregate_operations,
    catalog_operations,
    key_operations,
    partition_operations,
    scan_operations,
    system_operations,
    write_operations,
)
from lockgate.framework.spark.operations import alterations as alter_operations
from lockgate.framework.spark.operations import assignments as assignment_operations
from lockgate.framework.spark.operations import replacements as replace_operations
from lockgate.framework.spark.operations import stream_batches as stream_operations
from lockgate.framework.spark.operations import stream_ranges as change_operations
from lockgate.framework.spark.operations.plans.file_rewrites import FileRewrites
from lockgate.framework.store import StreamConsumers, WriteSessions

if TYPE_CHECKING:
    from lockgate.framework.store import ReadRequest, Replacement, ScanSource, TableHandle
    from lockgate.framework.store.scan.scan_source import SourceMaker

Handler = Callable[[Any, Any], object]

# The number of remembered tables whose streams have written nothing yet.
_MADE_FOR_STREAMS = 256

_log = logging.getLogger("lockgate.spark")

_OWN: dict[str, Handler] = {
    **catalog_operations.OPERATIONS,
    **alter_operations.OPERATIONS,
    **partition_operations.OPERATIONS,
    **replace_operations.OPERATIONS,
    **scan_operations.OPERATIONS,
    **system_operations.OPERATIONS,
    **aggregate_operations.OPERATIONS,
    **write_operations.OPERATIONS,
    **assignment_operations.OPERATIONS,
    **stream_operations.OPERATIONS,
    **change_operations.OPERATIONS,
    **confidential_flow.OPERATIONS,
    **governance_operations.OPERATIONS,
    **stream_right_operations.OPERATIONS,
    **file_rights.OPERATIONS,
    **key_operations.OPERATIONS,
}


class Dispatcher:
    """Answers the connector, for all sessions of this process.

    Questions come by several threads at a time; nothing here is bound to one. `source` begins the scan of a
    table, of which operations know no more than its abilities.
    """

    def __init__(self, source: SourceMaker | None = None) -> None:
        self.source = source or _scan_of
        self.scopes = KeyScopes()
        self.catalogs = Catalogs(self.scopes)
        self.reports = ScanReports()
        self.writes = WriteSessions()
        self.grants = Grants()
        self.streams = StreamConsumers()
        # Tables that are written to and will replace others, by a handle.
        self.replacements: dict[str, Replacement] = {}
        self.rewrites = FileRewrites()
        # Ids of tables that `toTable` has made for streams, whose plans are known with the first batch only.
        self.made_for_streams: deque[str] = deque(maxlen=_MADE_FOR_STREAMS)
        self.sessions = Sessions()

    def reply(self, message: bytes) -> bytes:
        """Answer one question; whatever goes wrong is an answer too, never an exception."""
        operation = "?"
        try:
            question = decode_question(message)
            operation = question.operation
            answer = self._answer(question)
            return encode_answer(answer, governed=plugins().decides_access())
        except LockgateError as error:
            return encode_error(type(error).__name__, str(error))
        except RecursionError:
            _log.warning("operation %s failed", operation, exc_info=True)
            return encode_error(
                "BridgeError",
                f"the connector's request {operation!r} is nested too deeply for Python: write the statement "
                "with fewer levels, such as IN in place of many ORs",
            )
        except Exception as error:
            # An error that Lockgate did not raise is worth a look. A traceback names code, never the values
            # in it.
            _log.warning("operation %s failed", operation, exc_info=True)
            return encode_error(type(error).__name__, f"{type(error).__name__}: {error}")
        except BaseException as error:  # an interrupt must not end the thread that answers
            return encode_error(type(error).__name__, f"interrupted by {type(error).__name__}")

    def answer(self, operation: str, request: dict[str, Any]) -> object:
        """Answer one operation with plain values, asked by this process; raises what the operation raises."""
        return self._handler(operation, request)(OperationContext(self, request), request)

    def _answer(self, question: Question) -> object:
        session = self.sessions.request_session(question.asker)
        try:
            context = OperationContext(self, question.request, session, question.session)
            caller = Caller(question.user, "spark", question.session)
            with acting_as(caller), answering_session(context.session_conf), errors_named():
                return self._handler(question.operation, question.request)(context, question.request)
        finally:
            session.leave()

    def _handler(self, operation: str, request: Mapping[str, Any]) -> Handler:
        """Return what answers a request, which has what the operation declares; else BridgeError."""
        handler = _operation(operation)
        declared = messages_of(handler)
        fault = None if declared is None else fault_in(declared.request, request)
        if fault is not None:
            raise BridgeError(f"the connector's request {operation!r} is not as declared: {fault}")
        return handler


def _scan_of(table: TableHandle, request: ReadRequest) -> ScanSource:
    """Begin a scan of a table; Spark packs splits itself, so what is merged is kept apart for it."""
    from lockgate.framework.store import TableScan

    return TableScan(table, request, merge_apart=True)


def _operation(name: str) -> Handler:
    if name in _OWN:
        return _OWN[name]
    added: Mapping[str, Handler] = plugins().bridge_operations()
    if name not in added:
        raise BridgeError(f"no plugin answers {name!r}{nearest(name, [*_OWN, *added])}")
    return added[name]


def declared_operations() -> Mapping[str, Handler]:
    """Return the operations of this package and of its own plugins whose messages are declared."""
    return {
        name: handler
        for name, handler in {**_OWN, **plugins().bridge_operations()}.items()
        if messages_of(handler) is not None and handler.__module__.startswith("lockgate.")
    }


_lock = threading.Lock()
_process_dispatcher: Dispatcher | None = None


def dispatcher() -> Dispatcher:
    """Return the process's dispatcher."""
    global _process_dispatcher
    with _lock:
        if _process_dispatcher is None:
            _process_dispatcher = Dispatcher()
        return _process_dispatcher
