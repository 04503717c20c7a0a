"""What refers to files of a table besides its snapshots: tags and branches.

Source: Paimon's `TagManager` and `BranchManager`: a tag is a copy of its snapshot's file, a branch a folder
with snapshots and tags of its own over the same data.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store.metadata.snapshot import Snapshot

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def protected_snapshots(table: TableHandle) -> list[Snapshot]:
    """Return the snapshots that tags and branches hold, whether or not they have expired."""
    found = list(tagged_snapshots(table).values())
    for line in branch_lines(table):
        found += line
    return found


def tagged_snapshots(table: TableHandle) -> dict[str, Snapshot]:
    """Return what the tags of the table itself hold, by the tag's name."""
    return _snapshots_in(table, f"{table.line_location}/tag", "tag-")


def held_snapshot(table: TableHandle, snapshot_id: int) -> Snapshot:
    """Return a snapshot that exists, or has expired and is held by a tag; SnapshotNotFoundError otherwise."""
    try:
        return table.snapshot(snapshot_id)
    except SnapshotNotFoundError:
        for snapshot in tagged_snapshots(table).values():
            if snapshot.id == snapshot_id:
                return snapshot
        raise


def branch_lines(table: TableHandle, without: Collection[str] = ()) -> list[list[Snapshot]]:
    """Return the snapshots of each other branch in order, and each that a tag of it holds by itself.

    For a branch, the table's main line is another one. Branches in `without` count as deleted.
    """
    lines = []
    infos = table.file_system.list(f"{table.location}/branch")
    folders = [info.path for info in infos if info.name.removeprefix("branch-") not in without]
    for folder in (table.location, *folders):
        if folder.rstrip("/") == table.line_location.rstrip("/"):
            continue
        line = _snapshots_in(table, f"{folder}/snapshot", "snapshot-").values()
        lines.append(sorted(line, key=lambda snapshot: snapshot.id))
        lines += [[snapshot] for snapshot in _snapshots_in(table, f"{folder}/tag", "tag-").values()]
    return [line for line in lines if line]


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
