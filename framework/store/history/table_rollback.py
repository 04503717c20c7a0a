"""Rollback: restores a table to an earlier snapshot, and removes everything later.

Source: Paimon's `RollbackHelper`, which deletes snapshots and tags beyond the target and leaves their files.
Here a *fence* comes first: a snapshot with the target's content, created exclusively on top of all others. It
makes the rollback visible at once, and every commit that was about to land on top of the old state loses its
race and is applied to the new one. Only then are the snapshots in between removed, and the fence last. A
commit that is delayed beyond all of that notices it itself (see `commit`). So a rollback may be killed at any
step: the table is whole before and after, and calling it again finishes the work.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, CorruptFileError, SnapshotNotFoundError
from lockgate.framework.store.commit.stream_progress import progress_after, with_progress
from lockgate.framework.store.history.reachable_files import (
    NeededFiles,
    changelog_files_of,
    data_files_of,
    metadata_files_of,
)
from lockgate.framework.store.manifests.manifest import FileKind
from lockgate.framework.store.metadata.references import held_snapshot, tagged_snapshots
from lockgate.framework.store.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lockgate.framework.store.metadata.tag_files import load_tag, tag_path
from lockgate.framework.store.schema.schema import now_millis
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@dataclass(frozen=True)
class RollbackResult:
    """Removals of a rollback, done or to be done: snapshots, tags and files, and the bytes of the files.

    `consumers` stood beyond the target and read next what is committed next.
    """

    previous_snapshot: int
    snapshot: int
    snapshots: int = 0
    tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0
    bytes: int = 0


def rollback(table: TableHandle, target: Snapshot, *, dry_run: bool = False) -> RollbackResult:
    """Roll a table back to a snapshot that it has, or that one of its tags holds, and clean up after it.

    Snapshots and tags with higher numbers go, with the files that nothing else needs; schemas stay as they
    are. The next commit takes the number after the target's. Raises CommitConflictError, having changed
    nothing, if another commit lands concurrently, and CorruptFileError if what stays cannot be read.
    """
    head = table.latest_snapshot()
    if head is None:
        raise SnapshotNotFoundError(f"{table.identifier} has no snapshot to roll back to")
    if head == target:
        return RollbackResult(head.id, target.id)
    run = _Rollback(table, head, target)
    if not dry_run:
        run.run()
    return run.result()


def snapshot_at(table: TableHandle, millis: int) -> Snapshot:
    """Return the newest snapshot committed at or before a time, in milliseconds since the epoch."""
    found = [snapshot for snapshot in table.snapshots() if snapshot.time_millis <= millis]
    if not found:
        raise SnapshotNotFoundError(f"{table.identifier} has no snapshot as old as that; it may have expired")
    return max(found, key=lambda snapshot: snapshot.id)


def target_of(table: TableHandle, snapshot_id: int | None, tag: str | None) -> Snapshot:
    """Return what a rollback by number or by tag goes to."""
    if tag is not None:
        return load_tag(table, tag).snapshot
    assert snapshot_id is not None
    return held_snapshot(table, snapshot_id)


@dataclass
class _Rollback:
    table: TableHandle
    head: Snapshot
    target: Snapshot
    _removed: list[Snapshot] = field(default_factory=list)
    _tags: dict[str, Snapshot] = field(default_factory=dict)
    _consumers: list[str] = field(default_factory=list)
    _changelogs: list[Snapshot] = field(default_factory=list)
    _data: dict[str, int] = field(default_factory=dict)
    _metadata: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # After an earlier rollback the target's number may be that of another snapshot.
        self._removed = [
            snapshot
            for snapshot in self.table.snapshots()
            if snapshot.id >= self.target.id and snapshot != self.target
        ]
        self._tags = self._tags_beyond()
        consumers = self.table.consumer_files.load_all().items()
        self._consumers = sorted(name for name, needed in consumers if needed > self.target.id + 1)
        # That of the target becomes a snapshot again.
        self._changelogs = [
            each for each in self.table.changelog_files.load_all() if each.id >= self.target.id
        ]
        self._collect()
        # Read before anything changes: where this fails, nobody may decide what is not needed.
        needed = NeededFiles(
            self.table,
            without=list(self._tags),
            without_changelogs=[each.id for each in self._changelogs],
            rolled_back_to=self.target,
        )
        self._keep(needed)
        self.table.check_deletable([*self._data, *self._metadata])

    def _tags_beyond(self) -> dict[str, Snapshot]:
        tags = tagged_snapshots(self.table).items()
        return {name: snapshot for name, snapshot in tags if snapshot.id > self.target.id}

    def _collect(self) -> None:
        """Note the files of all that goes; what is damaged is left to orphan cleaning."""
        manifests = self.table.manifests
        for snapshot in self._removed:
            with suppress(CorruptFileError):
                added = [entry for entry in manifests.delta_entries(snapshot) if entry.kind is FileKind.ADD]
                if snapshot is self._removed[0] and snapshot.id != self.target.id + 1:
                    # It alone knows the files of snapshots that have expired.
                    added += manifests.live_files(snapshot)
                self._data |= data_files_of(self.table, added)
                self._metadata |= metadata_files_of(self.table, snapshot)
            with suppress(CorruptFileError):
                recorded = manifests.changelog_manifests(snapshot)
                self._data |= data_files_of(
                    self.table, (entry for meta in recorded for entry in manifests.read_manifest(meta))
                )
        for changelog in self._changelogs:
            with suppress(CorruptFileError):
                data, metadata = changelog_files_of(self.table, changelog)
                self._data |= data
                self._metadata |= metadata
        for snapshot in self._tags.values():
            if snapshot not in self._removed:
                with suppress(CorruptFileError):
                    self._data |= data_files_of(self.table, manifests.live_files(snapshot))
                    self._metadata |= metadata_files_of(self.table, snapshot)

    def _keep(self, needed: NeededFiles) -> None:
        for paths in (self._data, self._metadata):
            for path in list(paths):
                if path.rpartition("/")[2] in needed:
                    del paths[path]

    # --- step by step ------------------------------------------------------------------------

    def run(self) -> None:
        fence = self._raise_fence()
        files = self.table.snapshot_files
        self._delete_tags(self._tags)
        for snapshot in reversed(self._removed):
            files.delete(snapshot.id)
        self._delete_changelogs()
        if not files.exists(self.target.id):
            files.create(self.target)
            files.hint_earliest(files.ids()[0])
        for name in self._consumers:
            self.table.consumer_files.record(name, self.target.id + 1)
        self._lower_fence(fence)
        # A tag given to a removed snapshot just before it went has been stored by now.
        self._delete_tags(name for name, snapshot in self._tags_beyond().items() if snapshot in self._removed)
        self._keep(NeededFiles(self.table))
        for paths in (self._data, self._metadata):
            for path in list(paths):
                if not self.table.file_system.delete(path):
                    del paths[path]

    def _delete_tags(self, names: Iterable[str]) -> None:
        for name in names:
            self.table.file_system.delete(tag_path(self.table, name))

    def _delete_changelogs(self) -> None:
        changelogs = self.table.changelog_files
        for changelog in reversed(self._changelogs):
            changelogs.delete(changelog.id)
        left = changelogs.ids() if self._changelogs else []
        if left:
            changelogs.hint_latest(left[-1])
        elif self._changelogs:
            changelogs.delete_hints()

    def _raise_fence(self) -> Snapshot:
        """Put the target's content on top of all snapshots; from here on nothing lands on the old state."""
        manifests, files = self.table.manifests, self.table.snapshot_files
        base, base_size = manifests.write_list(manifests.manifests(self.target))
        delta, delta_size = manifests.write_list([])
        user = str(uuid.uuid4())
        fence = dataclasses.replace(
            self.target,
            id=self.head.id + 1,
            base_manifest_list=base,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=None,
            changelog_manifest_list_size=None,
            changelog_record_count=None,
            commit_user=user,
            commit_identifier=BATCH_COMMIT_IDENTIFIER,
            commit_kind=CommitKind.OVERWRITE,
            time_millis=now_millis(),
            delta_record_count=0,
            uuid=str(uuid.uuid4()),
            writer_version=f"lockgate-{VERSION}",
            properties=with_progress(None, progress_after(self._history()), user, None),
        )
        if files.latest_id() != self.head.id or not files.create(fence):
            for name in (base, delta):
                manifests.delete(name)
            raise CommitConflictError(
                f"{self.table.identifier} cannot be rolled back to snapshot {self.target.id}: another commit "
                f"landed after snapshot {self.head.id}; see what it did, and roll back again"
            )
        files.hint_latest(fence.id)
        return fence

    def _history(self) -> Iterable[Snapshot]:
        """Go from the target back to the oldest snapshot."""
        yield self.target
        for snapshot_id in range(self.target.id - 1, 0, -1):
            try:
                yield self.table.snapshot(snapshot_id)
            except SnapshotNotFoundError:
                return

    def _lower_fence(self, fence: Snapshot) -> None:
        """Remove the fence, unless commits have landed on top of it: then it stays, and no number is missing.

        A commit on top of a fence that goes nevertheless notices it and is applied again.
        """
        files = self.table.snapshot_files
        if not files.exists(fence.id + 1):
            files.delete(fence.id)
            ids = files.ids()
            if ids[-1] < fence.id:
                files.hint_latest(ids[-1])
                for name in (fence.base_manifest_list, fence.delta_manifest_list):
                    self.table.manifests.delete(name)
                return
            files.create(fence)
        for snapshot_id in range(self.target.id + 1, fence.id):
            files.create(dataclasses.replace(fence, id=snapshot_id, uuid=str(uuid.uuid4())))

    def result(self) -> RollbackResult:
        """Return the counts."""
        sizes: Sequence[int] = [*self._data.values(), *self._metadata.values()]
        return RollbackResult(
            previous_snapshot=self.head.id,
            snapshot=self.target.id,
            snapshots=len(self._removed),
            tags=tuple(sorted(self._tags)),
            consumers=tuple(self._consumers),
            data_files=len(self._data),
            manifests=len(self._metadata),
            bytes=sum(sizes),
        )
