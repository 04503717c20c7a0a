"""Operations on streaming reads: their start, their batches, and their progress as consumers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lockgate.errors import BridgeError, SnapshotNotFoundError
from lockgate.framework.access import Action
from lockgate.framework.plugins import StreamProgressed, plugins, publish
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.decisions import check_grant, readable_columns
from lockgate.framework.spark.messages.stream_messages import (
    BatchAnswer,
    BatchRequest,
    EndAnswer,
    ProgressRequest,
    StreamEndRequest,
    StreamRequest,
)
from lockgate.framework.spark.operations.scan_operations import plan_answer, warn_of_masks
from lockgate.framework.store import ScanPlan, grant, require_unrestricted, visibility

if TYPE_CHECKING:
    from lockgate.framework.store import Table
    from lockgate.framework.store.streams.position import StreamPlace
    from lockgate.framework.store.streams.stream import Batch, TableStream

# Letters that no name of a consumer has.
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
# A start may expire between its choice and the note that keeps it.
_TRIES = 10


def start(context: OperationContext, request: StreamRequest) -> str:
    """Choose where a new query starts, and keep it from expiry."""
    table = context.table()
    _authorize(context, table, request)
    stream = _stream(table, request)
    zone = str(context.spark.conf.get("spark.sql.session.timeZone"))
    named = stream.consumer
    for _ in range(_TRIES):
        begin = stream.start(zone, table.consumers().get(named) if named else None)
        for name in _consumers(stream, request):
            context.dispatcher.streams.record(_query(request), table, name, begin.snapshot_id)
        if begin.snapshot_id > stream.newest() or table.snapshot_files.exists(begin.snapshot_id):
            break
        if not begin.scans_state and table.changelog_files.exists(begin.snapshot_id):
            break
    else:
        raise SnapshotNotFoundError(
            f"table {table.identifier} expires its snapshots faster than a stream can begin: retain more, by "
            "'snapshot.num-retained.min' or 'snapshot.time-retained'"
        )
    return begin.to_json()


def newest(context: OperationContext, request: StreamRequest) -> int:
    """Return the newest snapshot, 0 if there is none."""
    return _stream(context.table(), request).newest()


def end(context: OperationContext, request: StreamEndRequest) -> EndAnswer:
    """Choose where a batch ends."""
    table = context.table()
    stream = _stream(table, request)
    begin = stream.place(request["start"])
    _keep(context, table, stream, request, begin)
    found = stream.end_of_batch(
        begin,
        upto=request["upto"],
        limited=request["limited"],
        waited_millis=request["waited_millis"],
    )
    return {"end": found.to_json(), "newest": stream.newest()}


def batch(context: OperationContext, request: BatchRequest) -> BatchAnswer:
    """Return the files of a batch; raises what the table's rights and keys say at this time."""
    table = context.table()
    _authorize(context, table, request)
    stream = _stream(table, request)
    begin = stream.place(request["start"])
    _keep(context, table, stream, request, begin)
    found = stream.batch(begin, stream.place(request["end"]))
    seen = visibility(table, readable=readable_columns(context))
    warn_of_masks(table, seen, {*request["columns"]})
    planned = ScanPlan.of_splits(table, found.snapshot_id, found.splits, request["columns"])
    keep_deletes = request["kinds"] and not found.of_states
    plan = plan_answer(context, table, planned, request, keep_deletes=keep_deletes)
    for split, kind in zip(plan["splits"], found.kinds, strict=True):
        split["kind"] = None if kind is None else int(kind)
    _publish(table, request, found)
    return {
        "plan": plan,
        "drops_retracts": not request["kinds"] and table.schema.has_primary_key,
        "left_out": found.left_out,
        "overwrites": found.overwrites,
    }


def progress(context: OperationContext, request: ProgressRequest) -> bool:
    """Note that everything before a position was read and committed: expiry need not keep it."""
    table = context.table()
    stream = _stream(table, request)
    reached = stream.place(request["end"]).snapshot_id
    for name in _consumers(stream, request):
        context.dispatcher.streams.record(_query(request), table, name, reached)
    return True


def stop(context: OperationContext, request: StreamRequest) -> bool:
    """Stop renewing the consumers of a query, which stay in the table."""
    context.dispatcher.streams.forget(_query(request))
    return True


def _stream(table: Table, request: StreamRequest) -> TableStream:
    return table.stream(request["options"], kinds=request["kinds"])


def _authorize(context: OperationContext, table: Table, request: StreamRequest) -> None:
    """Ask for the rights of the user of the query.

    With a grant, its plan puts row filter and masks on each row, and drops denied columns. Kinds of changes
    have none: no filter can judge rows that are gone.
    """
    readable = readable_columns(context)
    if readable is not None and plugins().decides_access() and not request["kinds"]:
        check_grant(context, table, readable.intersection(request["columns"]), request["grant"])
    else:
        require_unrestricted(table, grant(table, Action.SELECT, request["columns"]), "a stream")


def _consumers(stream: TableStream, request: StreamRequest) -> list[str]:
    """Return the names of a query's consumers: its own, which no other query has, and one that it names."""
    named = stream.consumer
    return [f"stream-{_query(request)}", *([named] if named else [])]


def _query(request: StreamRequest) -> str:
    """Return what names one read of one query, also after a restart."""
    query = request["properties"]["query_id"]
    if query is None:
        raise BridgeError("a stream was asked for outside a streaming query")
    return f"{query}-{_NO_NAME.sub('_', request['source'])}"


def _keep(
    context: OperationContext, table: Table, stream: TableStream, request: StreamRequest, begin: StreamPlace
) -> None:
    """Keep what a query reads next, also after a restart, before Spark says what was committed."""
    for name in _consumers(stream, request):
        context.dispatcher.streams.keep(_query(request), table, name, begin.snapshot_id)


def _publish(table: Table, request: BatchRequest, found: Batch) -> None:
    number, query = request["properties"]["batch_id"], request["properties"]["query_id"]
    if number is None or query is None:
        return
    publish(
        StreamProgressed(
            query=query,
            batch=int(number),
            table=table.location,
            use="read",
            snapshot_id=found.snapshot_id,
        )
    )


OPERATIONS = {
    "stream.start": start,
    "stream.newest": newest,
    "stream.end": end,
    "stream.batch": batch,
    "stream.progress": progress,
    "stream.stop": stop,
}
