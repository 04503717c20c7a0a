"""Restoring of an earlier state as the newest snapshot, without removing any history.

Files of that state which were deleted since come back under new names, by hard links where there are some:
expiry deletes a file for good by the name under which it was deleted once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lockgate.errors import CommitConflictError, SnapshotNotFoundError
from lockgate.framework.io import link_or_copy
from lockgate.framework.store.commit.commit import commit_messages
from lockgate.framework.store.commit.commit_request import InnerCommit
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.manifests.index_manifest import (
    IndexEntry,
    WrittenIndex,
    index_path,
    read_index_manifest,
)
from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry
from lockgate.framework.store.metadata.generations import check_generation
from lockgate.framework.store.metadata.paths import new_data_file_name
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.framework.store.scan.readable_files import stored_entries
from lockgate.framework.store.write.abort import abort_messages

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


@dataclass(frozen=True)
class RestoreResult:
    """The snapshot before, the new one (None after a dry run), and the files that go and come back."""

    previous_snapshot: int
    snapshot: int | None
    removed_files: int
    restored_files: int
    restored_bytes: int


def restore(table: TableHandle, target: Snapshot, *, dry_run: bool = False) -> RestoreResult:
    """Commit the state of `target` as a new snapshot, of kind OVERWRITE.

    The schema stays the newest. Raises CommitConflictError if another commit lands first,
    SnapshotNotFoundError if the target expires before it is done, InputError if the table was replaced since.
    Then nothing has changed.
    """
    head = table.latest_snapshot()
    assert head is not None, "a table with a target has snapshots"
    check_generation(table.schema, table.schema_of(target.schema_id), f"snapshot {target.id}")
    now = {each.identifier: each for each in stored_entries(table, head)}
    then = {each.identifier: each for each in table.manifests.live_files(target)}
    gone = [each for name, each in now.items() if name not in then]
    back = [each for name, each in then.items() if name not in now]
    made = None if dry_run else _commit(table, head, target, gone, back).id
    size = sum(each.file.file_size for each in back)
    return RestoreResult(head.id, made, len(gone), len(back), size)


def _commit(
    table: TableHandle,
    head: Snapshot,
    target: Snapshot,
    gone: Sequence[ManifestEntry],
    back: Sequence[ManifestEntry],
) -> Snapshot:
    messages = [CommitMessage.replacing([each]) for each in gone]
    names = {}
    try:
        for number, each in enumerate(back):
            file = _renamed(table, each, number)
            names[each.file.file_name] = file.file_name
            message = CommitMessage(each.partition, each.bucket, each.total_buckets, (file,))
            messages.append(message)
            _link(table, each, file)
        index = RestoredIndex(table, head, target, names)
        return commit_messages(table, InnerCommit(messages, CommitKind.OVERWRITE, index=index))
    except FileNotFoundError as error:
        abort_messages(table, messages)
        raise SnapshotNotFoundError(
            f"snapshot {target.id} of {table.identifier} expired while it was restored: {error}"
        ) from None
    except BaseException:
        abort_messages(table, messages)
        raise


def _renamed(table: TableHandle, entry: ManifestEntry, number: int) -> DataFileMeta:
    old = entry.file.file_name
    name = new_data_file_name(number, suffix=f".{old.rpartition('.')[2]}")
    extra = tuple(each.replace(old, name) for each in entry.file.extra_files)
    return replace(entry.file, file_name=name, extra_files=extra, external_path=None)


def _link(table: TableHandle, entry: ManifestEntry, file: DataFileMeta) -> None:
    old, new = (entry.partition, entry.bucket, entry.file), (entry.partition, entry.bucket, file)
    files, paths = table.file_system, table.paths
    pairs = [(paths.data_file(*old), paths.data_file(*new))]
    pairs += zip(paths.extra_files(*old), paths.extra_files(*new), strict=True)
    for source, copy in pairs:
        link_or_copy(files, source, files, copy)


class RestoredIndex:
    """The index of a target, under new names; its vectors are those of files by the names that they get."""

    def __init__(
        self, table: TableHandle, head: Snapshot, target: Snapshot, names: Mapping[str, str]
    ) -> None:
        self._table, self._head, self._target, self._names = table, head, target, names

    def check(self, head: Snapshot | None) -> None:
        """Raise CommitConflictError unless the commit comes right after the state that was looked at."""
        if head is None or head.commit_id != self._head.commit_id:
            raise CommitConflictError(
                f"{self._table.identifier} was changed by another commit while it was restored; call again"
            )

    def write(self) -> WrittenIndex:
        """Write it and return it."""
        name = self._target.index_manifest
        entries = read_index_manifest(self._table, name).entries if name else ()
        made = [self._copied(entry) for entry in entries]
        return WrittenIndex(tuple(made), [index_path(self._table, each) for each in made])

    def _copied(self, entry: IndexEntry) -> IndexEntry:
        vectors = tuple(
            replace(each, data_file=self._names.get(each.data_file, each.data_file)) for each in entry.vectors
        )
        made = replace(entry, file_name=f"index-{uuid.uuid4()}-0", vectors=vectors, external_path=None)
        files = self._table.file_system
        link_or_copy(files, index_path(self._table, entry), files, index_path(self._table, made))
        return made
