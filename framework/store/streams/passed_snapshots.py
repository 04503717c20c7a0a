"""Snapshots that a stream passes: those of the table, and changelogs that outlived theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import SnapshotNotFoundError

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


def oldest_change(table: TableHandle) -> int | None:
    """Return the oldest snapshot whose changes can be read; None if there is none."""
    ids = sorted({*table.snapshot_files.ids(), *table.changelog_files.ids()})
    if not ids:
        return None
    oldest = ids[-1]
    for number in reversed(ids):
        if number < oldest - 1:
            break
        oldest = number
    return oldest


def passed_snapshot(table: TableHandle, number: int) -> Snapshot:
    """Return a snapshot that a stream must read; SnapshotNotFoundError if its changes have expired."""
    try:
        return table.snapshot(number)
    except SnapshotNotFoundError:
        pass
    try:
        return table.changelog_files.load(number)
    except SnapshotNotFoundError:
        raise SnapshotNotFoundError(
            f"the stream must read snapshot {number} of table {table.identifier} next, which has expired "
            f"before its rows were read; the oldest change left is that of snapshot {oldest_change(table)}. "
            "Start a query with a checkpoint of its own, which reads the table again or begins where "
            "'scan.snapshot-id' says"
        ) from None
