"""`purge_files`: removes the whole content and history of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.store import check_writable, grant
from lockgate.framework.store.maintenance import TableContents
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
        contents = TableContents.of(table)
        if arguments.dry_run:
            return [_Row(*contents.counts(len(contents.snapshots), None))]
        if not arguments.confirm:
            raise InputError(
                f"purge_files removes all that table {table.identifier} holds and held, for good: look with "
                "dry_run => true, then call it with confirm => true"
            )
        return [_Row(*contents.purge())]
