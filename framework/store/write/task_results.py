"""Results of a write's tasks: new files, rows marked as deleted where they lie, files written again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, SnapshotNotFoundError
from lockgate.framework.store.commit.base_snapshot import BaseSnapshot
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.commit.vector_changes import RowDeletions
from lockgate.framework.store.deletion_vectors.deletion_vector import DeletedRows, from_bitmap
from lockgate.framework.store.metadata.references import held_snapshot
from lockgate.framework.store.scan.readable_files import visible_entries

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


@dataclass(frozen=True)
class TaskFile:
    """A file that a task wrote, with rows or with changes of rows.

    `keys` are those for the index database, in base64; `has_key_file`: they are in a file of their own.
    """

    message: CommitMessage
    keys: str | None = None
    has_key_file: bool = False

    @property
    def name(self) -> str:
        """Return the name of the file."""
        (file,) = (*self.message.added, *self.message.changelog)
        return file.file_name


@dataclass(frozen=True)
class TaskResults:
    """All that the tasks of a write did.

    `deleted` pairs names of files with bitmaps of the rows that go from them, as deletion vectors have them;
    `rewritten` names files whose rows were read and written again.
    """

    files: Sequence[TaskFile] = ()
    deleted: Sequence[tuple[str, bytes]] = ()
    rewritten: frozenset[str] = frozenset()


def row_deletions(
    table: TableHandle, results: TaskResults, base: BaseSnapshot
) -> tuple[list[RowDeletions], list[CommitMessage]]:
    """Return the rows that a statement deletes where they lie, and files that lose all rows.

    Raises CommitConflictError if the snapshot that was read was rolled back.
    """
    found: dict[str, DeletedRows] = {}
    for name, bitmap in results.deleted:
        deleted = from_bitmap(bitmap)
        found[name] = found[name] | deleted if name in found else deleted
    if not found:
        return [], []
    entries = visible_entries(table, _read_snapshot(table, base))
    read = {entry.file.file_name: entry for entry in entries if entry.file.file_name in found}
    if len(read) < len(found):
        raise _rolled_back(base)
    marked, emptied = [], []
    for name, entry in read.items():
        if len(found[name]) == entry.live_rows:
            emptied.append(CommitMessage.replacing([entry]))
        else:
            marked.append(RowDeletions(entry, found[name]))
    return marked, emptied


def rewritten_files(table: TableHandle, results: TaskResults, base: BaseSnapshot) -> list[CommitMessage]:
    """Return the files that a statement has read and written again, as deletions.

    Each is one of the snapshot that was read; whether it still is one of the table the commit checks. Rows
    that others have added since are not seen, as if they had come later. Raises CommitConflictError if the
    snapshot was rolled back.
    """
    if not results.rewritten:
        return []
    entries = visible_entries(table, _read_snapshot(table, base))
    read = [entry for entry in entries if entry.file.file_name in results.rewritten]
    if len(read) < len(results.rewritten):
        raise _rolled_back(base)
    return [CommitMessage.replacing([entry]) for entry in read]


def _read_snapshot(table: TableHandle, base: BaseSnapshot) -> Snapshot:
    try:
        snapshot = held_snapshot(table, base.snapshot_id)
    except SnapshotNotFoundError:
        raise CommitConflictError(
            f"the statement has read snapshot {base.snapshot_id} of {table.identifier}, which has "
            "expired or was rolled back since; repeat the statement"
        ) from None
    if base.commit_id not in (None, snapshot.commit_id):
        raise _rolled_back(base)
    return snapshot


def _rolled_back(base: BaseSnapshot) -> CommitConflictError:
    return CommitConflictError(
        f"the statement has read snapshot {base.snapshot_id}, which was rolled back; repeat the statement"
    )
