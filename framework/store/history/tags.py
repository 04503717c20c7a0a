"""Tags made, renamed and deleted, with the files that only they hold; `manifests.tag_files` reads them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import (
    AlreadyExistsError,
    InputError,
    SnapshotNotFoundError,
)
from lockgate.framework.store.history.reachable_files import NeededFiles, data_files_of, metadata_files_of
from lockgate.framework.store.metadata.references import held_snapshot, tagged_snapshots
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.tag_files import Tag, load_tag, tag_path

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


_FORBIDDEN = '/\\:*?"<>|,'


@dataclass(frozen=True)
class Released:
    """Files that went with a tag: data files (with indexes), other files, and the bytes of both."""

    data_files: int = 0
    manifests: int = 0
    bytes: int = 0


@dataclass
class _Release:
    """Files that only `tags` of a table hold; of the tags as stored, those in `without` do not count."""

    table: TableHandle
    tags: Sequence[Tag]
    without: Sequence[str]
    _data: dict[str, int] = field(default_factory=dict)
    _metadata: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        held = [tag.snapshot for tag in self.tags if not self._has_snapshot(tag)]
        if not held:
            return  # their snapshots need all of it
        needed = NeededFiles(self.table, without=self.without)
        for snapshot in held:
            self._data |= _others(
                data_files_of(self.table, self.table.manifests.live_files(snapshot)), needed
            )
            self._metadata |= _others(metadata_files_of(self.table, snapshot), needed)
        self.table.check_deletable([*self._data, *self._metadata])

    def _has_snapshot(self, tag: Tag) -> bool:
        try:
            # After a rollback another snapshot may have its number.
            return self.table.snapshot(tag.snapshot.id) == tag.snapshot
        except SnapshotNotFoundError:
            return False

    def run(self) -> None:
        """Delete them; who is killed here leaves files for orphan cleaning, never a broken table."""
        for paths in (self._data, self._metadata):
            for path in list(paths):
                if not self.table.file_system.delete(path):
                    del paths[path]

    def result(self) -> Released:
        sizes = [*self._data.values(), *self._metadata.values()]
        return Released(len(self._data), len(self._metadata), sum(sizes))


def _others(paths: dict[str, int], needed: NeededFiles) -> dict[str, int]:
    return {path: size for path, size in paths.items() if path.rpartition("/")[2] not in needed}


def _check_new_name(name: str) -> None:
    """Refuse what some file system, path or list of names cannot hold; tags of others may be called so."""
    if not name.strip() or name != name.strip() or any(char in _FORBIDDEN or char < " " for char in name):
        raise InputError(
            f"{name!r} cannot be the name of a tag: it must not be blank, start or end with a space, or "
            f"contain one of {_FORBIDDEN}"
        )


def new_tag(
    table: TableHandle, name: str, snapshot_id: int | None = None, retained: datetime.timedelta | None = None
) -> Tag:
    """Return a tag as `create_tag` would store it, without storing it."""
    _check_new_name(name)
    if retained is not None and retained <= datetime.timedelta(0):
        raise InputError(f"tag {name!r} cannot be kept for {retained}: give a time above 0")
    # Without a time to keep it, Paimon writes no time of creation, for the sake of its older readers.
    created = None if retained is None else datetime.datetime.now()
    return Tag(name, _snapshot_to_tag(table, snapshot_id), created, retained)


def _snapshot_to_tag(table: TableHandle, snapshot_id: int | None) -> Snapshot:
    if snapshot_id is None:
        latest = table.latest_snapshot()
        if latest is None:
            raise SnapshotNotFoundError(f"{table.identifier} has no snapshot yet that a tag could name")
        return latest
    return held_snapshot(table, snapshot_id)


def create_tag(table: TableHandle, tag: Tag) -> Tag:
    """Store a new tag and return it; of two that give one name at once exactly one succeeds.

    Raises AlreadyExistsError if the name is taken, and SnapshotNotFoundError, having left nothing, if the
    snapshot expires concurrently.
    """
    path = tag_path(table, tag.name)
    try:
        table.file_system.write_new(path, tag.to_bytes())
    except FileExistsError:
        raise AlreadyExistsError(
            f"{table.identifier} has a tag {tag.name!r} already: replace it, or choose another name"
        ) from None
    if not _is_held(table, tag):
        table.file_system.delete(path)
        raise _has_expired(tag)
    return tag


def _has_expired(tag: Tag) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(f"snapshot {tag.snapshot.id} expired while it was tagged")


def _is_held(table: TableHandle, tag: Tag) -> bool:
    """Say whether anything but the tag itself held its snapshot after it was stored."""
    if table.snapshot_files.exists(tag.snapshot.id):
        return True
    others = tagged_snapshots(table).items()
    return any(name != tag.name and snapshot == tag.snapshot for name, snapshot in others)


def replace_tag(table: TableHandle, tag: Tag, *, dry_run: bool = False) -> Released:
    """Let an existing tag name another snapshot, and delete the files that only the old one needed.

    Raises TagNotFoundError if there is no such tag, and SnapshotNotFoundError, having changed nothing, if the
    snapshot expires concurrently.
    """
    old, path = load_tag(table, tag.name), tag_path(table, tag.name)
    if not dry_run:
        before = table.file_system.read_bytes(path)
        table.file_system.write_atomic(path, tag.to_bytes())
        if old.snapshot != tag.snapshot and not _is_held(table, tag):
            table.file_system.write_atomic(path, before)
            raise _has_expired(tag)
    if old.snapshot == tag.snapshot:
        return Released()
    release = _Release(table, [old], [tag.name] if dry_run else [])
    if not dry_run:
        release.run()
    return release.result()


def delete_tags(table: TableHandle, names: Iterable[str], *, dry_run: bool = False) -> Released:
    """Delete tags, and the files that only they held, or only count those; all must exist.

    Nothing is deleted that a snapshot, another tag or a branch needs. Raises TagNotFoundError, and
    CorruptFileError if metadata cannot be read; nothing has changed then.
    """
    tags = [load_tag(table, name) for name in dict.fromkeys(names)]
    release = _Release(table, tags, [tag.name for tag in tags])
    if not dry_run:
        for tag in tags:
            table.file_system.delete(tag_path(table, tag.name))
        release.run()
    return release.result()


def rename_tag(table: TableHandle, name: str, target: str, *, dry_run: bool = False) -> Tag:
    """Give a tag another name, and return it.

    Stored under the new name before the old one goes, so that its files are held throughout; killed in
    between, it has both, and is called again. Raises TagNotFoundError and AlreadyExistsError.
    """
    old = load_tag(table, name)
    _check_new_name(target)
    path, files = tag_path(table, target), table.file_system
    content = files.read_bytes(tag_path(table, name))
    if name == target or (files.exists(path) and files.read_bytes(path) != content):
        raise AlreadyExistsError(f"{table.identifier} has a tag {target!r} already")
    if not dry_run:
        try:
            files.write_new(path, content)
        except FileExistsError:
            if files.read_bytes(path) != content:
                raise AlreadyExistsError(f"{table.identifier} has a tag {target!r} already") from None
        files.delete(tag_path(table, name))
    return Tag(target, old.snapshot, old.created, old.retained)
