"""Expiry: old snapshots are removed, with the files that nothing newer needs.

If changes outlive snapshots (options `changelog.*`), a snapshot becomes a changelog before its removal, and
the files with its changes stay; see `expire_changelogs`.

Source: Paimon's `ExpireSnapshotsImpl`. Data files go first, then manifests, then snapshots, so that an expiry
that is killed can be repeated and then finishes the work. Unlike in Paimon, the age of a snapshot counts from
the commit of the next one, because its readers began before that. Both the writer's clock and the store's
record that moment; the later one counts, since either may be hours off (`clock`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.options import NO_CHANGELOG
from lockgate.framework.store.history.reachable_files import changelog_files_of
from lockgate.framework.store.maintenance.retention import (
    Retention,
    changes_outlive,
    forget_idle_consumers,
    snapshot_retention,
)
from lockgate.framework.store.manifests.index_manifest import IndexManifest, index_path, read_index_manifest
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.metadata.generations import generation_of, same_partitions
from lockgate.framework.store.metadata.references import kept_changelogs, protected_snapshots
from lockgate.framework.store.metadata.snapshot import Snapshot

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@dataclass(frozen=True)
class ExpireResult:
    """Numbers of removed snapshots, data files (with indexes and change logs) and manifests (with lists).

    `bytes` counts what they held on disk, `earliest_snapshot` is the oldest that remains. After a dry run:
    what would be removed.
    """

    snapshots: int = 0
    data_files: int = 0
    manifests: int = 0
    bytes: int = 0
    earliest_snapshot: int | None = None


@checked_arguments
def expire_snapshots(
    table: TableHandle,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than_millis: int | None = None,
    max_deletes: int | None = None,
    dry_run: bool = False,
) -> ExpireResult:
    """Remove old snapshots, and the files that no remaining snapshot, tag or branch needs.

    The newest `retain_min` stay whatever their age; beyond `retain_max` it removes even young ones. Between
    the two it removes those that had been replaced by `older_than_millis` (milliseconds since the epoch), so
    queries begun later keep what they read. It removes at most `max_deletes` snapshots, and keeps those that
    consumers still need. Omitted arguments come from the table's options. Raises InputError if the limits
    contradict each other and CorruptFileError if metadata cannot be read.
    """
    limits = snapshot_retention(table, retain_max, retain_min, older_than_millis, max_deletes)
    end = _first_retained(table, limits, dry_run)
    ids = table.snapshot_files.ids()
    expired = [snapshot_id for snapshot_id in ids if end is not None and snapshot_id < end]
    if end is None or not expired:
        return ExpireResult(earliest_snapshot=ids[0] if ids else None)
    going = []
    for snapshot_id in expired:
        with suppress(SnapshotNotFoundError):  # someone else expires too
            going.append(table.snapshot(snapshot_id))
    removal = _Removal(table, table.snapshot(end), going if changes_outlive(table) else [])
    for snapshot in going:
        removal.add(snapshot)
    removal.check()
    if not dry_run:
        removal.run(end)
    return removal.result(end)


def _first_retained(table: TableHandle, limits: Retention, dry_run: bool) -> int | None:
    """Return the id of the first snapshot to keep; None if there are none."""
    ids = table.snapshot_files.ids()
    if not ids:
        return None
    earliest, latest = ids[0], ids[-1]
    needed = forget_idle_consumers(table, dry_run=dry_run)
    end = min(latest - limits.least + 1, earliest + limits.limit, *needed)
    must_go_before = max(latest - limits.most + 1, earliest)
    stored = table.snapshot_files.modified_millis()
    for snapshot_id in range(must_go_before, end):
        with suppress(SnapshotNotFoundError):
            written = table.snapshot(snapshot_id + 1).time_millis
            if max(written, stored.get(snapshot_id + 1, 0)) >= limits.older_than_millis:
                return snapshot_id
    return max(end, earliest)


@dataclass
class _Removal:
    """Files that go with the expired snapshots, path → bytes; `retained` is the first snapshot that stays.

    `outlived` are those that become changelogs.
    """

    table: TableHandle
    retained: Snapshot
    outlived: Sequence[Snapshot]
    _snapshots: list[Snapshot] = field(default_factory=list)
    _data: dict[str, int] = field(default_factory=dict)
    _manifests: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keepers = [(self.table, self.retained), *protected_snapshots(self.table)]
        self._kept_files = {
            entry.file.file_name
            for branch, keeper in keepers
            for entry in branch.manifests.live_files(keeper)
        }
        self._kept_manifests = {name for _, keeper in keepers for name in self._manifest_names(keeper)}
        indexes = {keeper.index_manifest: branch for branch, keeper in keepers if keeper.index_manifest}
        self._kept_index = {
            name for index, branch in indexes.items() for name in read_index_manifest(branch, index).names
        }
        self._kept_statistics = {keeper.statistics for _, keeper in keepers}
        self._keep_changelogs()
        # Only expired snapshots need the files that the first retained one deleted.
        self._add_data(self.table.manifests.delta_entries(self.retained))

    def _keep_changelogs(self) -> None:
        writes = self.table.schema.changelog_producer == NO_CHANGELOG
        outlived = {each.id for each in self.outlived}
        kept = [changelog_files_of(self.table, each, with_writes=writes) for each in self.outlived]
        kept += [changelog_files_of(branch, each) for branch, each in kept_changelogs(self.table, outlived)]
        for data, metadata in kept:
            self._kept_files |= {path.rpartition("/")[2] for path in data}
            self._kept_manifests |= {path.rpartition("/")[2] for path in metadata}

    def _manifest_names(self, snapshot: Snapshot) -> dict[str, int]:
        """Return lists and manifests of a snapshot with their sizes; those that are gone are left out."""
        lists = {
            snapshot.base_manifest_list: snapshot.base_manifest_list_size,
            snapshot.delta_manifest_list: snapshot.delta_manifest_list_size,
            snapshot.changelog_manifest_list: snapshot.changelog_manifest_list_size,
        }
        found: dict[str, int] = {}
        for name, size in lists.items():
            if name is not None and self._manifest_exists(name):
                found |= {
                    meta.file_name: meta.file_size for meta in self.table.manifests.read_list(name, size)
                }
                # After what it names: an expiry that is killed in between would leave that to nobody.
                found[name] = size or 0
        if snapshot.index_manifest is not None:
            found[snapshot.index_manifest] = 0
        return found

    def _manifest_exists(self, name: str) -> bool:
        return self.table.file_system.exists(self.table.paths.manifest(name))

    def _index(self, name: str) -> IndexManifest:
        return read_index_manifest(self.table, name)

    def add(self, snapshot: Snapshot) -> None:
        """Add what only an expired snapshot needs."""
        self._snapshots.append(snapshot)
        for list_name, size in (
            (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
            (snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size),
        ):
            # An earlier expiry that was killed may have got as far as the manifests.
            if list_name is not None and self._manifest_exists(list_name):
                is_changelog = list_name == snapshot.changelog_manifest_list
                for meta in self.table.manifests.read_list(list_name, size):
                    if self._manifest_exists(meta.file_name):
                        self._add_data(self.table.manifests.read_manifest(meta), all_kinds=is_changelog)
        if self._was_left_behind(snapshot):
            live = self.table.manifests.live_files(snapshot)
            self._add_data(live, all_kinds=True)
        for name, bytes_ in self._manifest_names(snapshot).items():
            if name not in self._kept_manifests:
                self._manifests[self.table.paths.manifest(name)] = bytes_
        if snapshot.index_manifest is not None and self._manifest_exists(snapshot.index_manifest):
            for entry in self._index(snapshot.index_manifest).entries:
                if entry.file_name not in self._kept_index:
                    self._data[index_path(self.table, entry)] = entry.file_size
        if snapshot.statistics is not None and snapshot.statistics not in self._kept_statistics:
            self._manifests[self.table.paths.statistics_file(snapshot.statistics)] = 0

    def _was_left_behind(self, snapshot: Snapshot) -> bool:
        """Say whether the next one is of a table partitioned otherwise, which names no file of this one."""
        try:
            after = self.table.schema_of(self.table.snapshot(snapshot.id + 1).schema_id)
        except SnapshotNotFoundError:
            return False
        before = self.table.schema_of(snapshot.schema_id)
        return generation_of(before) != generation_of(after) and not same_partitions(before, after)

    def _add_data(self, entries: Iterable[ManifestEntry], *, all_kinds: bool = False) -> None:
        """Add files that were deleted; one that moved to another level was deleted and is still in use."""
        for entry in entries:
            file = entry.file
            if (entry.kind is FileKind.DELETE or all_kinds) and file.file_name not in self._kept_files:
                path = self.table.paths.data_file(entry.partition, entry.bucket, file)
                self._data[path] = file.file_size
                for extra in self.table.paths.extra_files(entry.partition, entry.bucket, file):
                    self._data[extra] = 0

    def check(self) -> None:
        """Check all paths before the first file goes."""
        self.table.check_deletable([*self._data, *self._manifests])

    def run(self, end: int) -> None:
        """Delete it all."""
        files, changelogs = self.table.file_system, self.table.changelog_files
        for snapshot in self.outlived:
            changelogs.store(snapshot)
        if self.outlived:
            changelogs.hint_latest(self.outlived[-1].id)
            changelogs.hint_earliest(changelogs.ids()[0])
        for paths in (self._data, self._manifests):
            for path in list(paths):
                if not files.delete(path):
                    del paths[path]
        for snapshot in self._snapshots:
            self.table.snapshot_files.delete(snapshot.id)
        self.table.snapshot_files.hint_earliest(end)

    def result(self, end: int) -> ExpireResult:
        """Return the counts."""
        sizes = [*self._data.values(), *self._manifests.values()]
        return ExpireResult(len(self._snapshots), len(self._data), len(self._manifests), sum(sizes), end)
