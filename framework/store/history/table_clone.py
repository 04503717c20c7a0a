"""Clones: a new table with the newest state of another, file by file.

Files keep their names, and are hard links where there are some, else copies; a clone has all schemas of its
source, since files are read by the one that they were written under. Source: Paimon's `CloneProcedure`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import AlreadyExistsError, CommitConflictError, SnapshotNotFoundError
from lockgate.framework.io import link_or_copy
from lockgate.framework.store.commit.commit import commit_messages
from lockgate.framework.store.commit.commit_request import InnerCommit
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.manifests.index_manifest import (
    IndexEntry,
    WrittenIndex,
    index_path,
)
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.scan.readable_files import stored_entries

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

PartitionCondition = Callable[[Sequence[Any]], bool]


@dataclass(frozen=True)
class TableClone:
    """The files of a table's newest state that a clone has, of all partitions or of chosen ones."""

    source: TableHandle
    snapshot: Snapshot | None
    entries: tuple[ManifestEntry, ...]
    index: tuple[IndexEntry, ...]

    @classmethod
    def of(cls, source: TableHandle, condition: PartitionCondition) -> TableClone:
        """Return what is to be cloned."""
        snapshot = source.latest_snapshot()
        stored = [] if snapshot is None else stored_entries(source, snapshot)
        entries = tuple(each for each in stored if condition(each.partition))
        named = None if snapshot is None else snapshot.index_manifest
        index = () if named is None else source.index_entries(named)
        mine = tuple(each for each in index if condition(source.partition_values(each.partition)))
        return cls(source, snapshot, entries, mine)

    @property
    def bytes(self) -> int:
        """Return the size of all data files and index files."""
        sizes = (each.file.file_size for each in self.entries)
        return sum(sizes) + sum(each.file_size for each in self.index)

    def create(self, target: TableHandle) -> None:
        """Store the source's schemas as those of a table that is not there yet; AlreadyExistsError else."""
        table_id = str(uuid.uuid4())
        for schema_id in self.source.schema_files.ids():
            try:
                target.schema_files.create(replace(self.source.schema_of(schema_id), table_id=table_id))
            except FileExistsError:
                raise AlreadyExistsError(f"table {target.identifier} exists") from None

    def fill(self, target: TableHandle, threads: int) -> Snapshot | None:
        """Give a new table the files, in one snapshot; None if there is nothing to clone.

        Raises SnapshotNotFoundError if the source's snapshot expires before that.
        """
        if not self.entries:
            return None
        try:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda each: self._copy(target, each), self.entries))
            messages = [
                CommitMessage(each.partition, each.bucket, each.total_buckets, (_inside(each).file,))
                for each in self.entries
            ]
            return commit_messages(
                target, InnerCommit(messages, "OVERWRITE", index=_ClonedIndex(self, target))
            )
        except FileNotFoundError as error:
            raise SnapshotNotFoundError(
                f"the newest snapshot of {self.source.identifier} expired while it was cloned: {error}"
            ) from None

    def _copy(self, target: TableHandle, entry: ManifestEntry) -> None:
        old = (entry.partition, entry.bucket, entry.file)
        new = (entry.partition, entry.bucket, _inside(entry).file)
        pairs = [(self.source.paths.data_file(*old), target.paths.data_file(*new))]
        pairs += zip(self.source.paths.extra_files(*old), target.paths.extra_files(*new), strict=True)
        for path, copy in pairs:
            link_or_copy(self.source.file_system, path, target.file_system, copy)


def _inside(entry: ManifestEntry) -> ManifestEntry:
    """Return a file as one in the folder of its table."""
    return replace(entry, file=replace(entry.file, external_path=None))


class _ClonedIndex:
    """The index of a clone: vectors and hashes, which name data files that keep their names."""

    def __init__(self, clone: TableClone, target: TableHandle) -> None:
        self._clone, self._target = clone, target

    def check(self, head: Snapshot | None) -> None:
        """Raise CommitConflictError unless the clone is empty."""
        if head is not None:
            raise CommitConflictError(f"{self._target.identifier} was written to while it was made")

    def write(self) -> WrittenIndex:
        """Write it and return it."""
        made = [replace(each, external_path=None) for each in self._clone.index]
        source, target = self._clone.source, self._target
        for old, new in zip(self._clone.index, made, strict=True):
            paths = index_path(source, old), index_path(target, new)
            link_or_copy(source.file_system, paths[0], target.file_system, paths[1])
        return WrittenIndex(tuple(made), [index_path(target, each) for each in made])
