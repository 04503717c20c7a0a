"""`create_branch`, `delete_branch`, `rename_branch`, `fast_forward`: lines next to a table's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.store.history import create_branch, delete_branch, fast_forward, rename_branch
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure


@dataclass(frozen=True)
class _CreateBranchArguments:
    table: TableName
    branch: Annotated[str, "the name: letters, digits, `_`, `-`, `.`; not digits alone and not `main`"]
    tag: Annotated[str | None, "the tag to start from"] = None
    snapshot: Annotated[int | None, "the snapshot to start from"] = None
    dry_run: Annotated[bool, "only check the names"] = False
    ignore_if_exists: Annotated[bool, "leave a branch that exists as it is"] = False


@dataclass(frozen=True)
class _CreateBranchRow:
    created_branches_count: Annotated[int, "1; 0 if it was there"]
    snapshot_id: Annotated[int | None, "the snapshot it starts from; NULL if it is empty"]


class CreateBranch(TypedProcedure[_CreateBranchArguments, _CreateBranchRow]):
    """Create a branch of a table, empty or from a tag or snapshot."""

    name = "create_branch"

    def run(self, context: ProcedureContext, arguments: _CreateBranchArguments) -> list[_CreateBranchRow]:
        """Create the branch; `snapshot_id` is NULL if it is empty."""
        table = context.table(arguments.table)
        if arguments.ignore_if_exists and arguments.branch in table.branches():
            return [_CreateBranchRow(0, None)]
        start = create_branch(
            table,
            arguments.branch,
            arguments.snapshot,
            tag=arguments.tag,
            dry_run=arguments.dry_run,
        )
        return [_CreateBranchRow(1, None if start is None else start.id)]


@dataclass(frozen=True)
class _DeleteBranchArguments:
    table: TableName
    branch: Annotated[str, "the name, or several separated by commas"]
    dry_run: DryRun = False


@dataclass(frozen=True)
class _DeleteBranchRow:
    deleted_branches_count: Annotated[int, "branches"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]


class DeleteBranch(TypedProcedure[_DeleteBranchArguments, _DeleteBranchRow]):
    """Delete branches of a table and the files that only they held."""

    name = "delete_branch"

    def run(self, context: ProcedureContext, arguments: _DeleteBranchArguments) -> list[_DeleteBranchRow]:
        """Delete the branches; TableNotFoundError, with nothing deleted, if one of them does not exist."""
        table = context.table(arguments.table)
        names = list(dict.fromkeys(name.strip() for name in arguments.branch.split(",") if name.strip()))
        if not names:
            raise InputError("delete_branch needs the name of a branch")
        for name in names:
            delete_branch(table, name, dry_run=True)
        done = [delete_branch(table, name, dry_run=arguments.dry_run) for name in names]
        data, manifests = sum(each.data_files for each in done), sum(each.manifests for each in done)
        return [_DeleteBranchRow(len(names), data, manifests, sum(each.bytes for each in done))]


@dataclass(frozen=True)
class _RenameBranchArguments:
    table: TableName
    from_branch: Annotated[str, "the name"]
    to_branch: Annotated[str, "the new name, which must not be taken"]
    dry_run: Annotated[bool, "only check the names"] = False


@dataclass(frozen=True)
class _RenameBranchRow:
    renamed_branches_count: Annotated[int, "1"]


class RenameBranch(TypedProcedure[_RenameBranchArguments, _RenameBranchRow]):
    """Rename a branch of a table."""

    name = "rename_branch"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _RenameBranchArguments) -> list[_RenameBranchRow]:
        """Rename the branch; TableNotFoundError or AlreadyExistsError if the names do not allow it."""
        table = context.table(arguments.table)
        rename_branch(table, arguments.from_branch, arguments.to_branch, dry_run=arguments.dry_run)
        return [_RenameBranchRow(1)]


@dataclass(frozen=True)
class _FastForwardArguments:
    table: TableName
    branch: Annotated[str, "the branch"]
    dry_run: DryRun = False


@dataclass(frozen=True)
class _FastForwardRow:
    added_snapshots_count: Annotated[int, "snapshots added to the table"]
    snapshot_id: Annotated[int | None, "its newest snapshot; NULL if it has none"]


class FastForward(TypedProcedure[_FastForwardArguments, _FastForwardRow]):
    """Move a table forward to the state of its branch."""

    name = "fast_forward"

    def run(self, context: ProcedureContext, arguments: _FastForwardArguments) -> list[_FastForwardRow]:
        """Go forward; CommitConflictError if the table has commits that the branch does not have."""
        table = context.table(arguments.table)
        count = fast_forward(table, arguments.branch, dry_run=arguments.dry_run)
        latest = table.latest_snapshot()
        return [_FastForwardRow(count, None if latest is None else latest.id)]
