"""Expiry of changelogs that outlived their snapshots.

Source: Paimon's `ExpireChangelogImpl`. The files of a changelog count like those of a snapshot, so nothing
goes that a snapshot, a tag, a branch or another changelog needs. Data files go first, then manifests, then
changelogs: an expiry that is killed can be repeated and then finishes the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.framework.store.history.reachable_files import NeededFiles, changelog_files_of
from lockgate.framework.store.maintenance.retention import (
    Retention,
    changelog_retention,
    forget_idle_consumers,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


@dataclass(frozen=True)
class ExpiredChangelogs:
    """Numbers of removed changelogs, data files (with their indexes) and manifests (with lists).

    `bytes` counts what the files held, `earliest` is the oldest changelog that remains. After a dry run: what
    would be removed.
    """

    changelogs: int = 0
    data_files: int = 0
    manifests: int = 0
    bytes: int = 0
    earliest: int | None = None


def expire_changelogs(
    table: TableHandle,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than_millis: int | None = None,
    max_deletes: int | None = None,
    delete_all: bool = False,
    dry_run: bool = False,
) -> ExpiredChangelogs:
    """Remove changelogs that outlived their snapshots, and the files that nothing else needs.

    Commits are counted from the newest snapshot back: of the newest `retain_min` the changes stay whatever
    their age, beyond `retain_max` even young ones go, and in between those committed before
    `older_than_millis` (milliseconds since the epoch). At most `max_deletes` changelogs go at once. What
    consumers still need stays, unless with `delete_all` every changelog goes. What is not given comes from
    the table's options. Raises InputError if the limits contradict each other and CorruptFileError, having
    removed nothing, if metadata cannot be read.
    """
    limits = changelog_retention(table, retain_max, retain_min, older_than_millis, max_deletes)
    changelogs = table.changelog_files.load_all()
    going = changelogs if delete_all else _expired(table, changelogs, limits, dry_run)
    left = [each.id for each in changelogs[len(going) :]]
    removal = _Removal(table, going)
    if going and not dry_run:
        removal.run()
        _hint(table, left)
    return removal.result(min(left, default=None))


def _expired(
    table: TableHandle, changelogs: Sequence[Snapshot], limits: Retention, dry_run: bool
) -> Sequence[Snapshot]:
    """Return the changelogs to remove, which are the oldest."""
    latest = table.snapshot_files.latest_id() or 0
    end = min(latest - limits.least + 1, *forget_idle_consumers(table, dry_run=dry_run), latest + 1)
    count = 0
    for each in changelogs[: limits.limit]:
        is_old = each.id <= latest - limits.most or each.time_millis < limits.older_than_millis
        if each.id >= end or not is_old:
            break
        count += 1
    return changelogs[:count]


def _hint(table: TableHandle, left: Sequence[int]) -> None:
    if left:
        table.changelog_files.hint_earliest(left[0])
    else:
        table.changelog_files.delete_hints()


@dataclass
class _Removal:
    """Files that go with changelogs, path → bytes."""

    table: TableHandle
    changelogs: Sequence[Snapshot]
    _data: dict[str, int] = field(default_factory=dict)
    _manifests: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.changelogs:
            return
        needed = NeededFiles(self.table, without_changelogs=[each.id for each in self.changelogs])
        for changelog in self.changelogs:
            data, manifests = changelog_files_of(self.table, changelog, with_removals=True)
            for found, paths in ((self._data, data), (self._manifests, manifests)):
                found |= {path: size for path, size in paths.items() if path.rpartition("/")[2] not in needed}
        self.table.check_deletable([*self._data, *self._manifests])

    def run(self) -> None:
        """Delete it all."""
        for paths in (self._data, self._manifests):
            for path in list(paths):
                if not self.table.file_system.delete(path):
                    del paths[path]
        for changelog in self.changelogs:
            self.table.changelog_files.delete(changelog.id)

    def result(self, earliest: int | None) -> ExpiredChangelogs:
        """Return the counts."""
        sizes = [*self._data.values(), *self._manifests.values()]
        counts = (len(self.changelogs), len(self._data), len(self._manifests), sum(sizes))
        return ExpiredChangelogs(*counts, earliest)
