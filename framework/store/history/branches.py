"""Branches: lines of snapshots next to a table's own, over the same data.

A branch is read and written as the table `database.table$branch_<name>`. Its snapshots, schemas, tags and
consumers lie in `branch/branch-<name>/`; data files and manifests lie where the table's do, so nothing is
copied, and expiry and cleaning of any line spare what another one needs. Source: Paimon's
`FileSystemBranchManager`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptFileError,
    InputError,
    SnapshotNotFoundError,
    TableNotFoundError,
    nearest,
)
from lockgate.framework.store.history.reachable_files import (
    NeededFiles,
    changelog_files_of,
    data_files_of,
    metadata_files_of,
)
from lockgate.framework.store.history.tags import Released
from lockgate.framework.store.manifests.manifest import FileKind
from lockgate.framework.store.metadata.generations import current_schema
from lockgate.framework.store.metadata.identifier import Identifier
from lockgate.framework.store.metadata.paths import branch_folder
from lockgate.framework.store.metadata.references import held_snapshot, tagged_snapshots
from lockgate.framework.store.metadata.schema_files import SchemaFiles
from lockgate.framework.store.metadata.snapshot_files import SnapshotFiles
from lockgate.framework.store.metadata.tag_files import load_tag, load_tags, tag_path

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

MAIN = "main"
_PREFIX = "branch-"
# In the folder of the new name, while a branch gets it.
_RENAMED_FROM = "lockgate-renamed-from"
_NAME = re.compile(r"\w[\w.-]*")


def branch_names(table: TableHandle) -> list[str]:
    """Return the names of a table's branches, sorted."""
    infos = table.file_system.list(f"{table.location}/branch")
    names = [info.name.removeprefix(_PREFIX) for info in infos if info.name.startswith(_PREFIX)]
    return sorted(name for name in names if _schemas(table, name).ids())


def load_branch(table: TableHandle, name: str) -> TableHandle:
    """Return a branch as a table with its newest schema; TableNotFoundError offers the nearest names."""
    snapshots = SnapshotFiles(table.file_system, branch_folder(table.location, name))
    schema = current_schema(_schemas(table, name), snapshots)
    if schema is None:
        hint = nearest(name, branch_names(table)) or "; the table has none"
        raise TableNotFoundError(f"{_main_name(table)} has no branch {name!r}{hint}")
    return table.sibling(_identifier(table, name), schema)


def _identifier(table: TableHandle, name: str) -> Identifier:
    return Identifier(table.identifier.namespace, f"{table.identifier.table}$branch_{name}")


def _main_name(table: TableHandle) -> Identifier:
    return Identifier(table.identifier.namespace, table.identifier.table)


def _schemas(table: TableHandle, name: str) -> SchemaFiles:
    return SchemaFiles(table.file_system, branch_folder(table.location, name), branch=True)


def _check_main(table: TableHandle) -> None:
    if table.identifier.branch is not None:
        raise InputError(f"{table.identifier} is a branch; name the table that it is a branch of")


def _check_new_name(table: TableHandle, name: str) -> None:
    if name == MAIN or name.isdigit() or not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a branch: use letters, digits, '_', '-' and '.', not digits "
            f"alone and not {MAIN!r}"
        )
    if table.file_system.list(branch_folder(table.location, name)):
        raise AlreadyExistsError(
            f"{table.identifier} has a branch {name!r} already"
            if _schemas(table, name).ids()
            else f"{table.identifier} holds the remains of a branch {name!r}: delete it first"
        )


def create_branch(
    table: TableHandle,
    name: str,
    snapshot_id: int | None = None,
    *,
    tag: str | None = None,
    dry_run: bool = False,
) -> Snapshot | None:
    """Create a branch and return the snapshot it begins with; None for an empty one of the same columns.

    It begins with a snapshot, or with a tag, which the branch then has too. Of two that give one name at once
    exactly one succeeds. Raises AlreadyExistsError, SnapshotNotFoundError, TagNotFoundError, and InputError
    for a name that cannot be.
    """
    _check_main(table)
    if snapshot_id is not None and tag is not None:
        raise InputError(f"give either the snapshot ({snapshot_id}) or the tag ({tag!r}) to branch from")
    _check_new_name(table, name)
    tagged = None if tag is None else load_tag(table, tag)
    start = tagged.snapshot if tagged is not None else None
    if snapshot_id is not None:
        start = held_snapshot(table, snapshot_id)
    schema = table.schema if start is None else table.schema_of(start.schema_id)
    if dry_run:
        return start
    branch = table.sibling(_identifier(table, name), schema)
    try:
        # The schema last: a branch that is killed in the making is none, and holds what it needs.
        if start is not None and not branch.snapshot_files.create(start):
            raise FileExistsError
        if tagged is not None:
            table.file_system.write_new(tag_path(branch, tagged.name), tagged.to_bytes())
        _copy_schemas(table, branch, schema.id)
    except FileExistsError:
        raise AlreadyExistsError(f"{table.identifier} has a branch {name!r} already") from None
    if start is not None:
        if not _is_held(table, start):
            table.file_system.delete_tree(branch.branch_location)
            raise SnapshotNotFoundError(f"snapshot {start.id} expired while the branch was created")
        branch.snapshot_files.hint_latest(start.id)
        branch.snapshot_files.hint_earliest(start.id)
    return start


def _copy_schemas(source: TableHandle, target: TableHandle, newest: int, *, again: bool = False) -> None:
    """Copy schemas, the first of all last; FileExistsError if another did so too, unless `again`."""
    for schema_id in sorted(source.schema_files.ids(), reverse=True):
        if schema_id <= newest:
            with suppress(*([FileExistsError] if again else [])):
                target.schema_files.create(source.schema_files.load(schema_id))


def _is_held(table: TableHandle, snapshot: Snapshot) -> bool:
    with suppress(SnapshotNotFoundError):
        if table.snapshot(snapshot.id) == snapshot:
            return True
    return snapshot in tagged_snapshots(table).values()


def delete_branch(table: TableHandle, name: str, *, dry_run: bool = False) -> Released:
    """Delete a branch, and the files that only it held, or only count those.

    Raises TableNotFoundError if there is no such branch. Killed in between, it leaves files that nothing
    refers to, never a broken table.
    """
    _check_main(table)
    folder = branch_folder(table.location, name)
    if not table.file_system.list(folder):
        load_branch(table, name)
    data, metadata = _files_of(table, name)
    needed = NeededFiles(table, without_branches=[name])
    files = table.file_system
    table.check_deletable([*data, *metadata])
    if not dry_run:
        # Without its first schema it is no branch any more, and nothing is committed to it.
        _schemas(table, name).hide()
        files.delete_tree(folder)
        needed = NeededFiles(table)
    counted = []
    for paths in (data, metadata):
        unneeded = {path: size for path, size in paths.items() if path.rpartition("/")[2] not in needed}
        counted.append([size for path, size in unneeded.items() if dry_run or files.delete(path)])
    return Released(len(counted[0]), len(counted[1]), sum(counted[0]) + sum(counted[1]))


def _files_of(table: TableHandle, name: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the files that a branch refers to; what is damaged is left to orphan cleaning."""
    data: dict[str, int] = {}
    metadata: dict[str, int] = {}
    if not _schemas(table, name).ids():
        return data, metadata
    branch = load_branch(table, name)
    snapshots = branch.snapshots()
    for snapshot in [*snapshots, *(tag.snapshot for tag in load_tags(branch))]:
        with suppress(CorruptFileError):
            entries = branch.manifests.delta_entries(snapshot)
            if snapshot is not snapshots[0] and snapshot in snapshots:
                entries = [entry for entry in entries if entry.kind is FileKind.ADD]
            else:
                entries = branch.manifests.live_files(snapshot)
            data |= data_files_of(branch, entries)
            metadata |= metadata_files_of(branch, snapshot)
    for changelog in [*snapshots, *branch.changelog_files.load_all()]:
        with suppress(CorruptFileError):
            recorded, manifests = changelog_files_of(branch, changelog)
            data |= recorded
            metadata |= manifests
    return data, metadata


def rename_branch(table: TableHandle, name: str, target: str, *, dry_run: bool = False) -> None:
    """Give a branch another name; what it holds is held throughout.

    Commits to it that are under way fail or are there afterwards. Killed in between, call it again; until
    then both names may be there. Raises TableNotFoundError and AlreadyExistsError.
    """
    _check_main(table)
    note = f"{branch_folder(table.location, target)}/{_RENAMED_FROM}"
    begun = _begun_from(table, note) == name
    if not begun:
        load_branch(table, name)
        _check_new_name(table, target)
    if dry_run:
        return
    if not begun:
        table.file_system.write_new(note, name.encode())
    old, new = (table.sibling(_identifier(table, each), table.schema) for each in (name, target))
    _copy_branch(old, new)
    if schema_ids := old.schema_files.ids():
        _copy_schemas(old, new, schema_ids[-1], again=True)
    # Without its first schema it is no branch any more, and nothing is committed under the old name.
    old.schema_files.hide()
    _copy_branch(old, new)
    table.file_system.delete_tree(old.branch_location)
    table.file_system.delete(note)


def _begun_from(table: TableHandle, note: str) -> str | None:
    """Return the branch that was to get a name when the process was killed."""
    try:
        return table.file_system.read_bytes(note).decode()
    except FileNotFoundError:
        return None


def _copy_branch(old: TableHandle, new: TableHandle) -> None:
    for snapshot in old.snapshots():
        new.snapshot_files.create(snapshot)
    for tag in load_tags(old):
        with suppress(FileExistsError):
            new.file_system.write_new(tag_path(new, tag.name), tag.to_bytes())
    for consumer, needed in old.consumer_files.load_all().items():
        new.consumer_files.record(consumer, needed)
    for changelog in old.changelog_files.load_all():
        new.changelog_files.create(changelog)
    for files in (new.snapshot_files, new.changelog_files):
        if ids := files.ids():
            files.hint_latest(ids[-1])
            files.hint_earliest(ids[0])


def fast_forward(table: TableHandle, name: str, *, dry_run: bool = False) -> int:
    """Bring a table to where a branch of it is, and return how many snapshots it gains.

    The table must not have changed since the branch began: its newest snapshot must be one of the branch's.
    The branch stays. Raises TableNotFoundError, CommitConflictError if the table has commits or schemas that
    the branch does not have, or gains one concurrently; then it has the branch's snapshots up to that one.
    """
    _check_main(table)
    branch = load_branch(table, name)
    snapshots = branch.snapshots()
    if not snapshots:
        raise SnapshotNotFoundError(f"{branch.identifier} has no snapshot to go forward to")
    head = table.latest_snapshot()
    if head is not None and head not in snapshots:
        raise CommitConflictError(
            f"{table.identifier} has changed since branch {name!r} began: its snapshot {head.id} is not in "
            f"the branch, which begins with snapshot {snapshots[0].id}; roll it back to one that is, or "
            "keep both"
        )
    gained = [snapshot for snapshot in snapshots if head is None or snapshot.id > head.id]
    own = table.schema_files.ids()
    for schema_id in branch.schema_files.ids():
        if schema_id in own and table.schema_files.load(schema_id) != branch.schema_files.load(schema_id):
            raise CommitConflictError(
                f"{table.identifier} has been altered since branch {name!r} began: schema {schema_id} differs"
            )
    if dry_run:
        return len(gained)
    for schema_id in branch.schema_files.ids():
        with suppress(FileExistsError):
            table.schema_files.create(branch.schema_files.load(schema_id))
    for snapshot in gained:
        if not table.snapshot_files.create(snapshot):
            raise CommitConflictError(
                f"{table.identifier} was changed while it went forward to branch {name!r}: it now has the "
                f"branch's snapshots before {snapshot.id}, and another one in its place"
            )
        table.snapshot_files.hint_latest(snapshot.id)
    if head is None:
        table.snapshot_files.hint_earliest(gained[0].id)
    # Also if nothing was gained: who was killed right before calls again.
    for tag in load_tags(branch):
        with suppress(FileExistsError):
            table.file_system.write_new(tag_path(table, tag.name), tag.to_bytes())
    return len(gained)
