"""`purge_files`: removes the whole content and history of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io import FileInfo
from lockgate.framework.store import CommitKind, Table, check_writable, expire_snapshots, grant
from lockgate.framework.store.history import NeededFiles, branch_names, delete_branch, delete_tags
from lockgate.framework.store.maintenance import data_files_in, expire_changelogs
from lockgate.framework.store.metadata.references import tagged_snapshots
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext


class PurgeFiles(Procedure):
    """Removes all rows, branches, tags, consumers, changelogs, and all snapshots but an empty one.

    Schemas and options stay. Data is only deleted, never read, so no key is needed. If killed halfway, it can
    be called again. Source: Paimon's `PurgeFilesProcedure`.
    """

    name = "purge_files"
    description = "Remove everything that a table holds or held, and keep its schema."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("confirm", "BOOLEAN", False, "must be true, for nothing of it can be restored"),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be removed"),
    )
    result = (
        ("deleted_branches_count", "BIGINT"),
        ("deleted_tags_count", "BIGINT"),
        ("deleted_consumers_count", "BIGINT"),
        ("deleted_changelogs_count", "BIGINT"),
        ("deleted_snapshots_count", "BIGINT"),
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
        ("snapshot_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Purge; InputError, with nothing removed, unless `confirm` is given."""
        table = context.table(arguments["table"])
        if table.identifier.branch is not None:
            raise InputError(f"{table.identifier} is a branch: delete_branch removes it")
        check_writable(table.schema)
        grant(table, Action.DELETE)
        grant(table, Action.ALTER)
        contents = _Contents.of(table)
        if arguments["dry_run"]:
            return [contents.counts(len(contents.snapshots), None)]
        if not arguments["confirm"]:
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

    def purge(self) -> tuple[Any, ...]:
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

    def counts(self, snapshots: int, snapshot_id: int | None) -> tuple[Any, ...]:
        """Return the values of the result."""
        named = (len(self.branches), len(self.tags), len(self.consumers), len(self.changelogs))
        size = sum(info.size for info in self.files)
        return (*named, snapshots, len(self.files), size, snapshot_id)
