"""`purge_files`: removes the whole content and history of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io import FileInfo
from lockgate.framework.store import CommitKind, Table, check_writable, expire_snapshots, grant
from lockgate.framework.store.history import NeededFiles, branch_names, delete_branch, delete_tags
from lockgate.framework.store.maintenance import data_files_in, expire_changelogs
from lockgate.framework.store.metadata.references import tagged_snapshots
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    confirm: Annotated[bool, "must be true, unless `dry_run` is: nothing can be restored"] = False
    dry_run: DryRun = False


@dataclass(frozen=True)
class _Row:
    deleted_branches_count: Annotated[int, "branches, tags and consumers"]
    deleted_tags_count: int
    deleted_consumers_count: int
    deleted_changelogs_count: Annotated[int, "changelogs, and snapshots before the empty one"]
    deleted_snapshots_count: int
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_bytes: Annotated[int, "their size on disk"]
    snapshot_id: Annotated[int | None, "the empty snapshot; NULL after a dry run"]


class PurgeFiles(TypedProcedure[_Arguments, _Row]):
    """Remove everything that a table holds or held, and keep its schema.

    Schemas and options stay. Data is only deleted, never read, so no key is needed. If killed halfway, it can
    be called again. Source: Paimon's `PurgeFilesProcedure`.
    """

    name = "purge_files"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Purge; InputError, with nothing removed, unless `confirm` is given."""
        table = context.table(arguments.table)
        if table.identifier.branch is not None:
            raise InputError(f"{table.identifier} is a branch: delete_branch removes it")
        check_writable(table.schema)
        grant(table, Action.DELETE)
        grant(table, Action.ALTER)
        contents = _Contents.of(table)
        if arguments.dry_run:
            return [contents.counts(len(contents.snapshots), None)]
        if not arguments.confirm:
            raise InputError(
                f"purge_files removes all that table {table.identifier} holds and held, for good: look with "
                "dry_run => true, then call it with confirm => true"
            )
        return [contents.purge()]


@dataclass
class _Contents:
    """All that a table holds under some name, and the data files that are needed for it."""

    table: Table
    branches: list[str]
    tags: list[str]
    consumers: list[str]
    changelogs: list[int]
    snapshots: list[int]
    files: list[FileInfo]

    @classmethod
    def of(cls, table: Table) -> _Contents:
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

    def purge(self) -> _Row:
        """Remove it all, and return the values of the result."""
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

    def counts(self, snapshots: int, snapshot_id: int | None) -> _Row:
        """Return the values of the result."""
        named = (len(self.branches), len(self.tags), len(self.consumers), len(self.changelogs))
        size = sum(info.size for info in self.files)
        return _Row(*named, snapshots, len(self.files), size, snapshot_id)
