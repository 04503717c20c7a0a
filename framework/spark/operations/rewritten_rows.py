"""The rows that a DELETE, UPDATE or MERGE marks as deleted, and the files that it replaces."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, SnapshotNotFoundError
from lockgate.framework.spark.messages.write_messages import EndRequest
from lockgate.framework.store import CommitMessage, visible_entries
from lockgate.framework.store.commit.vector_changes import MarkedRows
from lockgate.framework.store.deletion_vectors.deletion_vector import DeletedRows, from_bitmap
from lockgate.framework.store.metadata.references import held_snapshot

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot, Table


def marked_rows(table: Table, request: EndRequest) -> tuple[list[MarkedRows], list[CommitMessage]]:
    """Return the rows that a DELETE, UPDATE or MERGE deletes where they lie, and files that lose all rows."""
    found: dict[str, DeletedRows] = {}
    for message in request["messages"]:
        if "marked" in message:
            name = message["marked"].rpartition("/")[2]
            deleted = from_bitmap(base64.b64decode(message["positions"]))
            found[name] = found[name] | deleted if name in found else deleted
    if not found:
        return [], []
    entries = visible_entries(table, read_snapshot(table, request))
    read = {entry.file.file_name: entry for entry in entries if entry.file.file_name in found}
    if len(read) < len(found):
        raise rolled_back(request)
    marked, emptied = [], []
    for name, entry in read.items():
        if len(found[name]) == entry.live_rows:
            emptied.append(CommitMessage.replacing([entry]))
        else:
            marked.append(MarkedRows(entry, found[name]))
    return marked, emptied


def read_snapshot(table: Table, request: EndRequest) -> Snapshot:
    """Return the snapshot whose files were read; CommitConflictError if a rollback has removed it."""
    try:
        snapshot = held_snapshot(table, request["base_snapshot_id"] or 0)
    except SnapshotNotFoundError:
        raise CommitConflictError(
            f"the statement has read snapshot {request['base_snapshot_id']} of {table.identifier}, which has "
            "expired or was rolled back since; repeat the statement"
        ) from None
    if request["base_commit_id"] not in (None, snapshot.commit_id):
        raise rolled_back(request)
    return snapshot


def rolled_back(request: EndRequest) -> CommitConflictError:
    """Return the error of a statement whose snapshot is not that of its number any more."""
    return CommitConflictError(
        f"the statement has read snapshot {request['base_snapshot_id']}, which was rolled back; "
        "repeat the statement"
    )


def rewritten_files(table: Table, request: EndRequest) -> list[CommitMessage]:
    """Return the files that a DELETE, UPDATE or MERGE has read and written again, as deletions.

    Each is one of the snapshot that was read; whether it still is one of the table the commit checks. Rows
    that others have added since are not seen, as if they had come later.
    """
    if not request["replaced"]:
        return []
    names = frozenset(request["replaced"])
    read = [
        entry
        for entry in visible_entries(table, read_snapshot(table, request))
        if entry.file.file_name in names
    ]
    if len(read) < len(names):
        raise rolled_back(request)
    return [CommitMessage.replacing([entry]) for entry in read]
