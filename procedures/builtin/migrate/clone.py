"""`clone`: the newest state of a table as a table of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import AlreadyExistsError, InputError
from lockgate.framework.access import Action
from lockgate.framework.store import (
    Catalog,
    Identifier,
    Table,
    check_writable,
    grant,
    grant_by_name,
    require_unrestricted,
)
from lockgate.framework.store.history import TableClone as ClonedState
from lockgate.procedures.arguments import Partitions, Where, parse_selection
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TypedProcedure


@dataclass(frozen=True)
class _Arguments:
    table: Annotated[str, "the source; may be a branch"]
    target_table: Annotated[str, "the new table"]
    partitions: Partitions = None
    parallelism: Annotated[Int | None, "files copied at a time (default: up to 8)"] = None
    dry_run: DryRun = False
    where: Where = None


@dataclass(frozen=True)
class _Row:
    copied_data_files_count: Annotated[int, "data files, and files of deletion vectors and hash indexes"]
    copied_index_files_count: int
    copied_bytes: Annotated[int, "their size"]
    rows: Annotated[int, "rows in them, not merged"]
    snapshot_id: Annotated[
        int | None, "the only snapshot of the new table; NULL if it is empty, or after a dry run"
    ]


class Clone(TypedProcedure[_Arguments, _Row]):
    """Make a table with the newest rows of another one, from the same files.

    Files are copied as they are, by hard links where there are some, so no key is needed and encrypted
    columns stay encrypted. History, tags, branches and consumers are left behind. If anything fails, the new
    table is dropped; if killed halfway, an empty one may be left.
    """

    name = "clone"
    right = None  # its source is read, and its target created

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Clone; AlreadyExistsError if the target exists, AccessDeniedError where rows are hidden."""
        source = context.table(arguments.table)
        target = Identifier.parse(context.identifier(arguments.target_table))
        threads = arguments.parallelism or min(8, os.cpu_count() or 1)
        if threads < 1:
            raise InputError(f"parallelism must be 1 or more, not {threads}")
        # Policies are bound to table names: the source's row filter would not apply to the clone.
        require_unrestricted(source, grant(source, Action.SELECT, source.schema.field_names), "a clone")
        check_writable(source.schema)
        chosen = parse_selection(arguments.partitions, arguments.where, source.schema)
        state = ClonedState.of(source, chosen)
        made = _handle(context.catalog, source, target)
        snapshot = None
        if not arguments.dry_run:
            state.create(made)
            try:
                snapshot = state.fill(made, threads)
            except BaseException:
                context.catalog.drop_table(str(target))
                raise
        rows = sum(each.live_rows for each in state.entries)
        numbers = (len(state.entries), len(state.index), state.bytes, rows)
        return [_Row(*numbers, None if snapshot is None else snapshot.id)]


def _handle(catalog: Catalog, source: Table, target: Identifier) -> Table:
    """Return the table that is to be, checked as one that is created."""
    if target.branch is not None:
        raise InputError(f"{target} is a branch: create_branch makes one")
    if catalog.table_exists(target):
        raise AlreadyExistsError(f"table {target} exists: give another target_table, or drop it first")
    catalog.check_namespace(target.namespace)
    location = catalog.location(target)
    grant_by_name(Action.CREATE, target, location, principal=catalog.principal)
    if catalog.file_system.list(f"{location}/snapshot"):
        raise AlreadyExistsError(f"{location} holds the remains of a table; delete the folder first")
    return Table(target, location, source.schema, catalog.table_context)
