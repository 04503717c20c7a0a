"""The snapshot that changes were computed from, and the check at their commit that it is still valid.

Statements run under snapshot isolation, as in Paimon and by choice in Iceberg: each sees the table at one
snapshot, and if two change the same thing, the later one is refused. That thing depends on the kind of
change: the rows of a key, the rewritten files, the replaced partitions. Under `write.isolation-level` =
`serializable`, any concurrent change refuses a statement that read the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, SnapshotNotFoundError
from lockgate.framework.store.manifests.index_manifest import DELETION_VECTORS, read_index_manifest
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.scan.readable_files import waits

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@dataclass(frozen=True)
class BaseSnapshot:
    """The snapshot that changes were computed from; 0 is the empty table.

    `commit_id` (see `Snapshot.commit_id`) tells it from another that got its number after a rollback.
    """

    snapshot_id: int
    commit_id: str | None = None


class BaseSnapshotCheck:
    """Refuses changes whose base snapshot is out of date; an earlier attempt's entries are not read again."""

    def __init__(self, table: TableHandle, base: BaseSnapshot) -> None:
        self._table = table
        self._base = base
        self._seen: Snapshot | None = None

    def check(
        self, head: Snapshot, concerns: Callable[[ManifestEntry], bool], *, marks_concern: bool = False
    ) -> None:
        """Raise CommitConflictError if a file that `concerns` the changes came or went after its base.

        With `marks_concern` also if rows were deleted by vectors, of whatever file.
        """
        base_id = self._base.snapshot_id
        if base_id > head.id or self._was_given_again():
            raise CommitConflictError(
                f"the changes were computed from snapshot {base_id}, which was rolled back; "
                "repeat the statement"
            )
        if self._seen is None:
            self._check_shown(concerns)
        for snapshot_id in range(self._first_unseen(), head.id + 1):
            self._check_one(snapshot_id, concerns, marks_concern)
        self._seen = head

    def _check_shown(self, concerns: Callable[[ManifestEntry], bool]) -> None:
        """Refuse changes of rows of the base snapshot that none of its queries shows."""
        if not self._table.schema.has_primary_key or not self._table.schema.has_vectors:
            return
        try:
            snapshot = self._table.snapshot(self._base.snapshot_id)
        except SnapshotNotFoundError:
            return
        schema = self._table.schema
        for entry in self._table.manifests.live_files(snapshot):
            if waits(entry, schema, snapshot) and concerns(entry):
                raise CommitConflictError(
                    f"snapshot {snapshot.id}, from which the changes were computed, has rows in partition "
                    f"{entry.partition!r}, bucket {entry.bucket}, that no query shows before their "
                    "compaction; repeat the statement after it"
                )

    def _was_given_again(self) -> bool:
        """Return whether another snapshot has the id of the base now; after its expiry that is never so."""
        if self._base.commit_id is None or self._base.snapshot_id == 0:
            return False
        try:
            return self._table.snapshot(self._base.snapshot_id).commit_id != self._base.commit_id
        except SnapshotNotFoundError:
            return False

    def _first_unseen(self) -> int:
        seen = self._seen
        if seen is not None and seen.id > self._base.snapshot_id:
            try:
                if self._table.snapshot(seen.id).commit_id == seen.commit_id:
                    return seen.id + 1
            except SnapshotNotFoundError:
                pass  # a rollback, or expiry, which the first snapshot that is missing tells of
        return self._base.snapshot_id + 1

    def _check_one(
        self, snapshot_id: int, concerns: Callable[[ManifestEntry], bool], marks_concern: bool
    ) -> None:
        base_id = self._base.snapshot_id
        try:
            snapshot = self._table.snapshot(snapshot_id)
        except SnapshotNotFoundError:
            raise CommitConflictError(
                f"the changes were computed from snapshot {base_id}, and snapshot {snapshot_id} has expired "
                "since, so its changes are unknown; repeat the statement"
            ) from None
        # A compaction changes no row, so that whatever it meets keeps its meaning.
        if snapshot.commit_kind is CommitKind.COMPACT:
            return
        if marks_concern and snapshot.commit_kind is CommitKind.OVERWRITE and self._marks(snapshot):
            raise CommitConflictError(
                f"snapshot {snapshot_id} deleted rows after snapshot {base_id}, from which the changes were "
                "computed; repeat the statement"
            )
        for entry in self._table.manifests.delta_entries(snapshot):
            if concerns(entry):
                raise CommitConflictError(
                    f"snapshot {snapshot_id} changed partition {entry.partition!r}, bucket {entry.bucket}, "
                    f"after snapshot {base_id}, which the changes were computed from; repeat the statement"
                )

    def _marks(self, snapshot: Snapshot) -> bool:
        """Say whether a snapshot may have deleted rows by vectors; where the one before is gone, it may."""
        try:
            before = self._table.snapshot(snapshot.id - 1)
        except SnapshotNotFoundError:
            return bool(self._vector_files(snapshot))
        return not self._vector_files(snapshot) <= self._vector_files(before)

    def _vector_files(self, snapshot: Snapshot) -> set[str]:
        if snapshot.index_manifest is None:
            return set()
        entries = read_index_manifest(self._table, snapshot.index_manifest).entries
        return {entry.file_name for entry in entries if entry.kind == DELETION_VECTORS}
