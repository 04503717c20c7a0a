"""Tables whose partitions come from two lines: the table's own and a branch.

With `scan.fallback-branch` a partition that the table lacks is read from the branch, with
`scan.primary-branch` one that the branch has, with `branch` every one. Source: Paimon's
`FallbackReadFileStoreTable`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.errors import AccessDeniedError, TableNotFoundError
from lockgate.framework.store.grants import has_same_visibility
from lockgate.framework.store.handle import SCHEMAS_OF_BRANCH, read_branch
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.metadata.references import branch_table
from lockgate.framework.store.scan.readable_files import readable_files

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.manifest import ManifestEntry
    from lockgate.framework.store.metadata.snapshot import Snapshot


def with_partitions_of_branch(table: TableHandle, files: FileTable, snapshot: Snapshot | None) -> FileTable:
    """Return the files of a snapshot with those of partitions that are read from a branch.

    Raises TableNotFoundError if there is no such branch, and AccessDeniedError if the current user does
    not see the same of it as of the table.
    """
    chosen = read_branch(table.schema)
    if chosen is None:
        return files
    branch = _branch(table, chosen.name)
    there = _state(branch, table, snapshot)
    others = [] if there is None else _entries(branch, there)
    own = files.select(files.live)
    if chosen.alone:
        own = []
    if chosen.first:
        taken = {entry.partition for entry in others}
        own = [entry for entry in own if entry.partition not in taken]
    else:
        taken = {entry.partition for entry in own}
        others = [entry for entry in others if entry.partition not in taken]
    return FileTable([*own, *others])


def _branch(table: TableHandle, name: str) -> TableHandle:
    branch = branch_table(table, name)
    if branch.identifier.branch != name:
        raise TableNotFoundError(
            f"table {table.identifier} has no branch {name!r}, but its options read partitions from it"
        )
    if not has_same_visibility(table, branch):
        needed = f"SELECT on branch {branch.identifier}, as on table {table.identifier}"
        raise AccessDeniedError(f"partitions of {table.identifier} come from a branch: {needed}", (needed,))
    return branch


def _state(branch: TableHandle, table: TableHandle, snapshot: Snapshot | None) -> Snapshot | None:
    """Return the branch's newest snapshot, or for an older state of the table the one of that time."""
    newest = table.latest_snapshot()
    if snapshot is None or newest is None or newest.id == snapshot.id:
        return branch.latest_snapshot()
    older = (each for each in reversed(branch.snapshots()) if each.time_millis <= snapshot.time_millis)
    return next(older, None)


def _entries(branch: TableHandle, snapshot: Snapshot) -> list[ManifestEntry]:
    files = readable_files(branch, snapshot, branch.schema)
    return [
        replace(entry, file=replace(entry.file, schema_id=SCHEMAS_OF_BRANCH + entry.file.schema_id))
        for entry in files.select(files.live)
    ]
