"""The files of partitions, and their removal in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.framework.access import Action
from lockgate.framework.store import CommitMessage, Snapshot, Table
from lockgate.framework.store.grants import grant
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.framework.store.scan.readable_files import stored_entries
from lockgate.framework.store.schema.unsupported_features import check_writable

Partition = tuple[Any, ...]


@dataclass(frozen=True)
class PartitionFiles:
    """The files of a snapshot by partition, in the order of the files."""

    table: Table
    snapshot: Snapshot | None
    entries: tuple[ManifestEntry, ...]

    @classmethod
    def of(cls, table: Table) -> PartitionFiles:
        """Return the files of the newest snapshot."""
        snapshot = table.latest_snapshot()
        return cls(table, snapshot, () if snapshot is None else tuple(stored_entries(table, snapshot)))

    def partitions(self, chosen: Callable[[Sequence[Any]], bool]) -> list[Partition]:
        """Return the partitions with files that a predicate accepts."""
        return [each for each in dict.fromkeys(entry.partition for entry in self.entries) if chosen(each)]

    def drop(
        self, partitions: Sequence[Partition], *, dry_run: bool
    ) -> tuple[int, int, int, int, int | None]:
        """Remove all files of partitions in one snapshot; return counts and the snapshot.

        These are the numbers of partitions, files, rows (not merged) and bytes, and the snapshot's number.

        Rows that others add at the same time stay. Raises CommitConflictError if one of the files was
        replaced.
        """
        grant(self.table, Action.DELETE)
        check_writable(self.table.schema)
        wanted = set(partitions)
        gone = [entry for entry in self.entries if entry.partition in wanted]
        snapshot_id = None
        if gone and not dry_run and self.snapshot is not None:
            messages = [CommitMessage.replacing([entry]) for entry in gone]
            made = self.table.commit(messages, kind=CommitKind.OVERWRITE, base_snapshot_id=self.snapshot.id)
            snapshot_id = made.id
        rows = sum(entry.live_rows for entry in gone)
        size = sum(entry.file.file_size for entry in gone)
        return len(wanted), len(gone), rows, size, snapshot_id
