"""References to files of a table other than its snapshots: tags and branches.

Source: Paimon's `TagManager` and `BranchManager`: a tag is a copy of its snapshot's file, a branch a folder
with snapshots and tags of its own over the same data.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store.metadata.generations import current_schema
from lockgate.framework.store.metadata.identifier import Identifier
from lockgate.framework.store.metadata.paths import branch_folder
from lockgate.framework.store.metadata.schema_files import SchemaFiles
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.snapshot_files import CHANGELOG, SnapshotFiles

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def protected_snapshots(table: TableHandle) -> list[tuple[TableHandle, Snapshot]]:
    """Return the snapshots that tags and branches hold, expired or not, each with its table or branch."""
    found = [(table, snapshot) for snapshot in tagged_snapshots(table).values()]
    return found + [
        (branch, snapshot) for branch, snapshots in branch_snapshots(table) for snapshot in snapshots
    ]


def tagged_snapshots(table: TableHandle) -> dict[str, Snapshot]:
    """Return what the tags of the table itself hold, by the tag's name."""
    return _snapshots_in(table, f"{table.branch_location}/tag", "tag-")


def held_snapshot(table: TableHandle, snapshot_id: int) -> Snapshot:
    """Return a snapshot that exists, or has expired and is held by a tag; SnapshotNotFoundError otherwise."""
    try:
        return table.snapshot(snapshot_id)
    except SnapshotNotFoundError:
        for snapshot in tagged_snapshots(table).values():
            if snapshot.id == snapshot_id:
                return snapshot
        raise


def branch_snapshots(
    table: TableHandle, without: Collection[str] = ()
) -> list[tuple[TableHandle, list[Snapshot]]]:
    """Return the snapshots of each other branch in order, and each that a tag of it holds by itself.

    Each line comes with its branch, since only that knows the schemas its files were written under. For a
    branch, the table's main line is another one. Branches in `without` count as deleted.
    """
    branches = []
    for name, folder in _other_branches(table, without):
        snapshots = sorted(
            _snapshots_in(table, f"{folder}/snapshot", "snapshot-").values(), key=lambda each: each.id
        )
        tagged = _snapshots_in(table, f"{folder}/tag", "tag-").values()
        found = [each for each in (snapshots, *([snapshot] for snapshot in tagged)) if each]
        branches += [(branch_table(table, name), each) for each in found]
    return branches


def kept_changelogs(
    table: TableHandle, without: Collection[int] = (), without_branches: Collection[str] = ()
) -> list[tuple[TableHandle, Snapshot]]:
    """Return the changelogs that outlive their snapshots, each with its table or branch.

    Those of the table itself whose numbers are in `without` are left out, as are those of some branches.
    """
    found = [(table, each) for each in table.changelog_files.load_all() if each.id not in without]
    for name, folder in _other_branches(table, without_branches):
        kept = _snapshots_in(table, f"{folder}/{CHANGELOG}", f"{CHANGELOG}-")
        found += [(branch_table(table, name), each) for each in kept.values()]
    return found


def _other_branches(table: TableHandle, without: Collection[str]) -> list[tuple[str | None, str]]:
    """Return the names and folders of the branches, and of the main line (None), but of this line itself."""
    infos = table.file_system.list(f"{table.location}/branch")
    names = [info.name.removeprefix("branch-") for info in infos if info.name.startswith("branch-")]
    branches: list[tuple[str | None, str]] = [(None, table.location)]
    branches += [(name, branch_folder(table.location, name)) for name in names if name not in without]
    own = table.branch_location.rstrip("/")
    return [(name, folder) for name, folder in branches if folder.rstrip("/") != own]


def branch_table(table: TableHandle, name: str | None) -> TableHandle:
    """Return another line of a table, by the name of its branch.

    A branch that is only half made, renamed or deleted may have no schemas; then the table's own are taken.
    """
    folder = table.location if name is None else branch_folder(table.location, name)
    schemas = SchemaFiles(table.file_system, folder, branch=name is not None)
    schema = current_schema(schemas, SnapshotFiles(table.file_system, folder))
    if schema is None:
        return table
    own = table.identifier.table if name is None else f"{table.identifier.table}$branch_{name}"
    return table.sibling(Identifier(table.identifier.namespace, own), schema)


def _snapshots_in(table: TableHandle, folder: str, prefix: str) -> dict[str, Snapshot]:
    """Return the snapshots in the files of a folder, by what follows `prefix` in the file's name.

    A file that is renamed during a listing may be missed under both names, so the folder is listed until
    nothing in it moves.
    """
    paths: dict[str, str] | None = None
    found: dict[str, Snapshot] = {}
    while True:
        infos = table.file_system.list(folder)
        listed = {info.name.removeprefix(prefix): info.path for info in infos if info.name.startswith(prefix)}
        if listed == paths:
            return found
        paths, found = listed, {}
        for name, path in listed.items():
            with suppress(FileNotFoundError):
                found[name] = Snapshot.from_bytes(table.file_system.read_bytes(path), path)
