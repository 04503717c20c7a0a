"""Reachable files: those that a table's snapshots, tags and branches need, or that one snapshot alone needs.

Names identify files, because writers never reuse one. Source: Paimon's `OrphanFilesClean` and `TagDeletion`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError, SnapshotNotFoundError
from lockgate.framework.store.manifests.index_manifest import read_index_manifest
from lockgate.framework.store.manifests.manifest import FileKind, FileSource, ManifestEntry
from lockgate.framework.store.metadata.references import branch_snapshots, kept_changelogs, tagged_snapshots
from lockgate.framework.store.metadata.snapshot import Snapshot

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def data_files_of(table: TableHandle, entries: Iterable[ManifestEntry]) -> dict[str, int]:
    """Return the paths of data files, and of the files that belong to them, with their bytes (0: unknown)."""
    found: dict[str, int] = {}
    for entry in entries:
        where = (entry.partition, entry.bucket, entry.file)
        found[table.paths.data_file(*where)] = entry.file.file_size
        found |= dict.fromkeys(table.paths.extra_files(*where), 0)
    return found


def metadata_files_of(table: TableHandle, snapshot: Snapshot) -> dict[str, int]:
    """Return the paths of lists, manifests, index and statistics files with their bytes (0: unknown).

    The list of a change log is left out if it is gone, since it expires before the rest. Raises
    CorruptFileError if metadata cannot be read.
    """
    paths, files = table.paths, table.file_system
    lists = [
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    ]
    if _has_changelog(table, snapshot):
        lists.append((str(snapshot.changelog_manifest_list), snapshot.changelog_manifest_list_size))
    found: dict[str, int] = {}
    for name, size in lists:
        found[paths.manifest(name)] = size or 0
        found |= {
            paths.manifest(meta.file_name): meta.file_size for meta in table.manifests.read_list(name, size)
        }
    if snapshot.index_manifest is not None:
        found |= read_index_manifest(table, snapshot.index_manifest).paths(table)
        path = paths.manifest(snapshot.index_manifest)
        found[path] = files.size(path)
    if snapshot.statistics is not None:
        found[paths.statistics_file(snapshot.statistics)] = 0
    return found


def changelog_files_of(
    table: TableHandle, changelog: Snapshot, *, with_writes: bool = True, with_removals: bool = False
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the paths of data files and of metadata that a changelog needs without its snapshot.

    Where a table produces no changelog, its writes are one: `with_writes` says whether they count. With
    `with_removals` come the files that the snapshot replaced, which Paimon's expiry leaves until then. What
    its snapshot alone needed may be gone. Source: Paimon's `ChangelogDeletion`.
    """
    recorded, metadata = _left_of_list(
        table, changelog.changelog_manifest_list, changelog.changelog_manifest_list_size
    )
    if with_writes:
        delta = (changelog.delta_manifest_list, changelog.delta_manifest_list_size)
        written, manifests = _left_of_list(table, *delta)
        recorded += [entry for entry in written if with_removals or _is_written(entry)]
        metadata |= manifests
    return data_files_of(table, recorded), metadata


def _left_of_list(
    table: TableHandle, name: str | None, size: int | None
) -> tuple[list[ManifestEntry], dict[str, int]]:
    """Return the entries of a manifest list and the paths of its files, so far as they are there.

    An expiry that was killed may have deleted some; it deletes a list after what that names.
    """
    exists, path = table.file_system.exists, table.paths.manifest
    if name is None or not exists(path(name)):
        return [], {}
    metas = [meta for meta in table.manifests.read_list(name, size) if exists(path(meta.file_name))]
    found = {path(meta.file_name): meta.file_size for meta in metas}
    entries = [entry for meta in metas for entry in table.manifests.read_manifest(meta)]
    return entries, {**found, path(name): size or 0}


def _is_written(entry: ManifestEntry) -> bool:
    return entry.kind is FileKind.ADD and entry.file.file_source != FileSource.COMPACT


def _has_changelog(table: TableHandle, snapshot: Snapshot) -> bool:
    name = snapshot.changelog_manifest_list
    return name is not None and table.file_system.exists(table.paths.manifest(name))


class NeededFiles:
    """The names of all files that a snapshot, a tag, a branch or a changelog of a table needs, as of now.

    Tags in `without`, branches in `without_branches` and changelogs in `without_changelogs` count as deleted,
    as do snapshots after `rolled_back_to`, which itself counts. Raises CorruptFileError if anything that
    exists cannot be read: then nobody may decide what is not needed.
    """

    def __init__(
        self,
        table: TableHandle,
        *,
        without: Collection[str] = (),
        without_branches: Collection[str] = (),
        without_changelogs: Collection[int] = (),
        rolled_back_to: Snapshot | None = None,
    ) -> None:
        self._table = table
        self._names: set[str] = set()
        # Tags first: one that is created from now on holds a snapshot that is read below.
        tags = tagged_snapshots(table)
        self._seen = table.snapshot_files.latest_id() or 0
        tagged = [(table, [snapshot]) for name, snapshot in tags.items() if name not in without]
        main = table.snapshots()
        if rolled_back_to is not None:
            main = [*(each for each in main if each.id < rolled_back_to.id), rolled_back_to]
        self._add_snapshots(table, main, main=rolled_back_to is None)
        for branch, snapshots in [*tagged, *branch_snapshots(table, without_branches)]:
            self._add_snapshots(branch, snapshots, main=False)
        for branch, changelog in kept_changelogs(table, without_changelogs, without_branches):
            for paths in changelog_files_of(branch, changelog):
                self._names.update(path.rpartition("/")[2] for path in paths)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def catch_up(self) -> None:
        """Add what the snapshots need that were committed since then."""
        head = self._table.snapshot_files.latest_id() or 0
        for snapshot_id in range(self._seen + 1, head + 1):
            try:
                snapshot = self._table.snapshot(snapshot_id)
            except SnapshotNotFoundError:
                continue  # it has expired already
            self._add(self._table, snapshot, self._table.manifests.delta_entries(snapshot))
        self._seen = max(self._seen, head)

    def _add_snapshots(self, table: TableHandle, snapshots: Sequence[Snapshot], *, main: bool) -> None:
        """Add snapshots of which each follows the one before.

        Of the first, all live files count; of the others what their own manifests add, because a file that
        is live in both is named by the first.
        """
        seen: set[str] | None = None
        for snapshot in snapshots:
            try:
                seen = self._add_next(table, snapshot, seen)
            except CorruptFileError:
                if main and not self._table.snapshot_files.exists(snapshot.id):
                    continue  # it expired while it was read
                raise

    def _add_next(self, table: TableHandle, snapshot: Snapshot, seen: set[str] | None) -> set[str]:
        manifests = table.manifests.manifests(snapshot)
        if seen is None:
            entries = table.manifests.live_files(snapshot)
        else:
            new = [meta for meta in manifests if meta.file_name not in seen]
            entries = [entry for meta in new for entry in table.manifests.read_manifest(meta)]
        self._add(table, snapshot, entries)
        return (seen or set()) | {meta.file_name for meta in manifests}

    def _add(self, table: TableHandle, snapshot: Snapshot, entries: Iterable[ManifestEntry]) -> None:
        added = [entry for entry in entries if entry.kind is FileKind.ADD]
        if _has_changelog(table, snapshot):
            name, size = str(snapshot.changelog_manifest_list), snapshot.changelog_manifest_list_size
            for meta in table.manifests.read_list(name, size):
                added += table.manifests.read_manifest(meta)
        paths = [*data_files_of(table, added), *metadata_files_of(table, snapshot)]
        self._names.update(path.rpartition("/")[2] for path in paths)
