"""Rewrites of files by a query: Spark's tasks read the files that a procedure names and write their rows
again; the procedure commits.

The query names the rewrite, where it reads and where it writes, by an option with a handle that nobody can
guess.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lockgate.errors import CommitConflictError, NotFoundError, UnsupportedError
from lockgate.framework.plugins import plugins

if TYPE_CHECKING:
    from lockgate.framework.spark.context.operation_context import OperationContext
    from lockgate.framework.spark.messages.scan_messages import PlanRequest
    from lockgate.framework.spark.messages.shared_messages import TableRequest
    from lockgate.framework.store import CommitMessage, Table

REWRITE = "lockgate.rewrite"
"""The option with the handle; the connector knows it too, and leaves the rows of such a write in order."""


@dataclass
class FileRewrite:
    """The files at `paths` of one snapshot, as a query is to read them, and the `messages` on the new ones.

    `table` has the options by which the new files are written.
    """

    table: Table
    snapshot_id: int
    paths: Sequence[str]
    messages: list[CommitMessage] = field(default_factory=list)

    def hold(self, messages: Sequence[CommitMessage]) -> None:
        """Keep what was written until the procedure commits it."""
        self.messages += messages


class FileRewrites:
    """The rewrites that procedures have begun and not ended, by their handles."""

    def __init__(self) -> None:
        self._rewrites: dict[str, FileRewrite] = {}

    @contextmanager
    def begun(self, rewrite: FileRewrite) -> Iterator[str]:
        """Let queries inside `with` name a rewrite by the handle that this yields."""
        handle = str(uuid.uuid4())
        self._rewrites[handle] = rewrite
        try:
            yield handle
        finally:
            del self._rewrites[handle]

    def get(self, handle: str) -> FileRewrite:
        """Return the rewrite of a handle; NotFoundError if it has ended."""
        found = self._rewrites.get(handle)
        if found is None:
            raise NotFoundError(f"option {REWRITE!r} names no rewrite of files that is running: leave it out")
        return found


class RewriteHolder(Protocol):
    """A keeper of messages on new files, until they are committed."""

    def hold(self, messages: Sequence[CommitMessage]) -> None:
        """Keep messages."""


def rewrite_of(context: OperationContext, request: TableRequest) -> FileRewrite | None:
    """Return the rewrite that a request names, None if it names none.

    Raises NotFoundError for one that is not running, CommitConflictError if the table was altered since it
    began, and UnsupportedError where policies decide what is read: hidden rows would be lost, masks stored.
    """
    handle = next((text for key, text in request["options"].items() if key.lower() == REWRITE), None)
    if handle is None:
        return None
    found = context.dispatcher.rewrites.get(handle)
    if plugins().decides_access():
        raise UnsupportedError(
            f"the files of table {found.table.identifier} cannot be written again by a query, because "
            "policies decide what it reads"
        )
    given = (context.identifier(), request["schema_id"])
    if given != (str(found.table.identifier), found.table.schema.id):
        raise CommitConflictError(
            f"table {found.table.identifier} was altered while its files were written again; repeat the call"
        )
    return found


def as_rewrite_reads(context: OperationContext, request: PlanRequest) -> PlanRequest:
    """Return a request to plan a scan; that of a rewrite reads its files alone, strictly."""
    rewrite = rewrite_of(context, request)
    if rewrite is None:
        return request
    return {
        **request,
        "options": {key: text for key, text in request["options"].items() if key.lower() != REWRITE},
        "snapshot_id": rewrite.snapshot_id,
        "time_travel": True,
        "strict": True,
        "files": [context.hadoop_path(rewrite.table, path) for path in rewrite.paths],
    }


def written_table(context: OperationContext, request: TableRequest) -> Table:
    """Return the table of a write, with the options of the rewrite that the write belongs to."""
    table, rewrite = context.table(), rewrite_of(context, request)
    return table if rewrite is None else rewrite.table


def holder_of(context: OperationContext, request: TableRequest) -> RewriteHolder | None:
    """Return what keeps the files of a write: the table that is to come, or a rewrite; None: it commits."""
    return rewrite_of(context, request) if request["replacement"] is None else context.replacement()
