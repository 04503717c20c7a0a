"""`create_branch`, `delete_branch`, `rename_branch`, `fast_forward`: lines next to a table's own."""

from __future__ import annotations

from typing import Any

from lockgate.errors import InputError
from lockgate.framework.store.history import create_branch, delete_branch, fast_forward, rename_branch
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE = Parameter("table", "STRING", doc="the table, 'database.table'")
_BRANCH = Parameter("branch", "STRING", doc="the name of the branch")


class CreateBranch(Procedure):
    """Creates a branch: empty, or as the table is at a tag or a snapshot. No file is copied."""

    name = "create_branch"
    description = "Create a branch of a table, empty or from a tag or snapshot."
    parameters = (
        _TABLE,
        _BRANCH,
        Parameter("tag", "STRING", None, "the tag to start from"),
        Parameter("snapshot", "BIGINT", None, "the snapshot to start from"),
        Parameter("dry_run", "BOOLEAN", False, "only check the names"),
        Parameter("ignore_if_exists", "BOOLEAN", False, "leave a branch that exists as it is"),
    )
    result = (("created_branches_count", "BIGINT"), ("snapshot_id", "BIGINT"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Create the branch; `snapshot_id` is NULL if it is empty."""
        table = context.table(arguments["table"])
        if arguments["ignore_if_exists"] and arguments["branch"] in table.branches():
            return [(0, None)]
        start = create_branch(
            table,
            arguments["branch"],
            arguments["snapshot"],
            tag=arguments["tag"],
            dry_run=arguments["dry_run"],
        )
        return [(1, None if start is None else start.id)]


class DeleteBranch(Procedure):
    """Deletes branches, and the files that no other line or tag needs; no key is needed."""

    name = "delete_branch"
    description = "Delete branches of a table and the files that only they held."
    parameters = (
        _TABLE,
        Parameter("branch", "STRING", doc="the name of the branch, or several separated by commas"),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be deleted"),
    )
    result = (
        ("deleted_branches_count", "BIGINT"),
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_manifests_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Delete the branches; TableNotFoundError, with nothing deleted, if one of them does not exist."""
        table = context.table(arguments["table"])
        names = list(dict.fromkeys(name.strip() for name in arguments["branch"].split(",") if name.strip()))
        if not names:
            raise InputError("delete_branch needs the name of a branch")
        for name in names:
            delete_branch(table, name, dry_run=True)
        done = [delete_branch(table, name, dry_run=arguments["dry_run"]) for name in names]
        data, manifests = sum(each.data_files for each in done), sum(each.manifests for each in done)
        return [(len(names), data, manifests, sum(each.bytes for each in done))]


class RenameBranch(Procedure):
    """Renames a branch; its files are held throughout."""

    name = "rename_branch"
    needs_all_rows = False
    description = "Rename a branch of a table."
    parameters = (
        _TABLE,
        Parameter("from_branch", "STRING", doc="the name of the branch"),
        Parameter("to_branch", "STRING", doc="the new name"),
        Parameter("dry_run", "BOOLEAN", False, "only check the names"),
    )
    result = (("renamed_branches_count", "BIGINT"),)

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Rename the branch; TableNotFoundError or AlreadyExistsError if the names do not allow it."""
        table = context.table(arguments["table"])
        rename_branch(table, arguments["from_branch"], arguments["to_branch"], dry_run=arguments["dry_run"])
        return [(1,)]


class FastForward(Procedure):
    """Moves a table forward to its branch, if the table has not changed since the branch began."""

    name = "fast_forward"
    description = "Move a table forward to the state of its branch."
    parameters = (_TABLE, _BRANCH, Parameter("dry_run", "BOOLEAN", False, "only count the snapshots"))
    result = (("added_snapshots_count", "BIGINT"), ("snapshot_id", "BIGINT"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Go forward; CommitConflictError if the table has commits that the branch does not have."""
        table = context.table(arguments["table"])
        count = fast_forward(table, arguments["branch"], dry_run=arguments["dry_run"])
        latest = table.latest_snapshot()
        return [(count, None if latest is None else latest.id)]
