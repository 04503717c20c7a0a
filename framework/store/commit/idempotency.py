"""Earlier attempts of a stream's commit, so that no commit happens twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store.commit.stream_progress import noted_progress, own_progress

if TYPE_CHECKING:
    from lockgate.framework.store.commit.commit_request import PreparedCommit
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


class EarlierTries:
    """The search for the snapshot of an earlier try of one commit; it looks at each snapshot once."""

    def __init__(self, table: TableHandle, request: PreparedCommit) -> None:
        self._table = table
        self._request = request
        self._seen_snapshot = 0

    def forget(self) -> None:
        """Look at all snapshots again, since some were taken back."""
        self._seen_snapshot = 0

    def find(self, head: Snapshot | None) -> Snapshot | None:
        """Return the snapshot that an earlier try of the same stream made; None if there is none."""
        if head is None or not self._request.is_stream:
            return None
        if head.id < self._seen_snapshot:
            self.forget()  # a rollback
        request = self._request
        for snapshot in snapshots_back(self._table, head, self._seen_snapshot):
            if snapshot.commit_user == request.user and (own := own_progress(snapshot)) is not None:
                if own.covers(request.identifier, request.kind):
                    return snapshot
                if own.identifier < request.identifier:
                    break
            # The stream's own commits may have expired; their note is handed on.
            noted = noted_progress(snapshot)
            if noted is not None:
                last = noted.get(request.user)
                if last is not None and last.covers(request.identifier, request.kind):
                    return self._snapshot_or(last.snapshot_id, snapshot)
                break
        self._seen_snapshot = head.id
        return None

    def _snapshot_or(self, snapshot_id: int, other: Snapshot) -> Snapshot:
        with suppress(SnapshotNotFoundError):
            return self._table.snapshot(snapshot_id)
        return other


def snapshots_back(table: TableHandle, head: Snapshot | None, until: int = 0) -> Iterator[Snapshot]:
    """Go from a snapshot back to the oldest that exists, or to the one after `until`."""
    if head is None or head.id <= until:
        return
    yield head
    for snapshot_id in range(head.id - 1, until, -1):
        try:
            yield table.snapshot(snapshot_id)
        except SnapshotNotFoundError:
            return
