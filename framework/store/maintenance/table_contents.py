"""All that a table holds, and its removal: rows, branches, tags, consumers, changelogs and snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockgate.framework.io import FileInfo
from lockgate.framework.store import Table
from lockgate.framework.store.history.branches import branch_names, delete_branch
from lockgate.framework.store.history.reachable_files import NeededFiles
from lockgate.framework.store.history.tags import delete_tags
from lockgate.framework.store.maintenance.changelog_expiry import expire_changelogs
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.data_folders import data_files_in
from lockgate.framework.store.metadata.references import tagged_snapshots
from lockgate.framework.store.metadata.snapshot import CommitKind


@dataclass
class TableContents:
    """All that a table holds under some name, and the data files that are needed for it."""

    table: Table
    branches: list[str]
    tags: list[str]
    consumers: list[str]
    changelogs: list[int]
    snapshots: list[int]
    files: list[FileInfo]

    @classmethod
    def of(cls, table: Table) -> TableContents:
        """Return what is there now."""
        files, needed = list(data_files_in(table)), NeededFiles(table)
        return cls(
            table,
            branch_names(table),
            list(tagged_snapshots(table)),
            list(table.consumers()),
            table.changelog_files.ids(),
            table.snapshot_files.ids(),
            [info for info in files if info.name in needed],
        )

    def purge(self) -> tuple[Any, ...]:
        """Remove it all, and return the counts, with the number of the empty snapshot that is left."""
        table = self.table
        for branch in self.branches:
            delete_branch(table, branch)
        delete_tags(table, self.tags)
        for consumer in self.consumers:
            table.delete_consumer(consumer)
        head = table.commit([], kind=CommitKind.OVERWRITE, overwrite={}) if self.snapshots else None
        done = expire_snapshots(table, retain_max=1, retain_min=1, max_deletes=head.id if head else 0)
        # Expiry may have made some of the snapshots that went.
        expire_changelogs(table, delete_all=True)
        left = {info.path for info in data_files_in(table)}
        self.files = [info for info in self.files if info.path not in left]
        return self.counts(done.snapshots, None if head is None else head.id)

    def counts(self, snapshots: int, snapshot_id: int | None) -> tuple[Any, ...]:
        """Return the numbers of all that is there, with bytes of data files and the number of a snapshot."""
        named = (len(self.branches), len(self.tags), len(self.consumers), len(self.changelogs))
        size = sum(info.size for info in self.files)
        return (*named, snapshots, len(self.files), size, snapshot_id)
