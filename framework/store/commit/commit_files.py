"""The manifests and lists of one commit: written under new names, reused by later attempts, and cleaned
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lockgate.framework.plugins import ListedManifest
from lockgate.framework.store.commit.own_index import OwnIndexFiles
from lockgate.framework.store.manifests.index_manifest import (
    WrittenIndex,
    read_index_manifest,
    write_index_manifest,
)
from lockgate.framework.store.manifests.manifest import ManifestEntry, ManifestFileMeta
from lockgate.framework.store.manifests.manifest_merge import MergedManifests, merge_manifests

if TYPE_CHECKING:
    from lockgate.framework.plugins import IndexFileChanges, ManifestParticipant
    from lockgate.framework.store.confidential.exposed_statistics import ExposedStatistics
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot


class IndexChanges(Protocol):
    """What a commit changes of a table's indexes."""

    def write(self) -> WrittenIndex | None:
        """Write what is new; return what the snapshot has then, None if it is what it had."""


@dataclass(frozen=True)
class _OwnList:
    """A list of entries that the commit itself brings, with their manifest."""

    entries: tuple[ManifestEntry, ...]
    manifest: ManifestFileMeta | None
    name: str
    size: int


class CommitFiles:
    """Files that the attempts of a commit write; nothing refers to them before the snapshot is written."""

    def __init__(
        self,
        table: TableHandle,
        own_index: Sequence[IndexFileChanges | None],
        of_manifests: Sequence[ManifestParticipant] = (),
    ) -> None:
        """Start; `own_index` are changes of plugins' files, which are written once for all attempts.

        `of_manifests` make further ones for each attempt.
        """
        self.table = table
        self.own_index = OwnIndexFiles(table, own_index, of_manifests)
        # The files written, to be deleted if the commit fails.
        self._written: list[str] = []
        self._own: dict[str, _OwnList] = {}
        self._merged: MergedManifests | None = None
        self._index: list[str] = []
        self._base: Sequence[ManifestFileMeta] = ()

    def index(self, before: str | None, changes: IndexChanges | None) -> str | None:
        """Write index files and their manifest in the place of those of an attempt before; its name.

        `before` is the index manifest of the newest snapshot. Called once the lists of manifests are there.
        """
        self._drop_index()
        written = None if changes is None else changes.write()
        if written is None and self.own_index.changes_nothing:
            return before
        self._index = [] if written is None else list(written.paths)
        there = () if before is None else read_index_manifest(self.table, before).entries
        entries = self.own_index.applied(there if written is None else written.entries, self._listed())
        if written is None and entries == [*there]:
            return before
        if not entries:
            return None
        name = write_index_manifest(self.table, entries)
        self._index.append(self.table.paths.manifest(name))
        return name

    def _listed(self) -> list[ListedManifest]:
        """Return the manifests of the attempt's snapshot."""
        new = {} if self._merged is None else self._merged.entries
        listed = [ListedManifest(meta, new.get(meta.file_name)) for meta in self._base]
        own = self._own["delta"]
        return listed if own.manifest is None else [*listed, ListedManifest(own.manifest, own.entries)]

    def _drop_index(self) -> None:
        for path in self._index:
            with suppress(OSError):
                self.table.file_system.delete(path)
        self._index = []

    def base_list(
        self,
        base: list[ManifestFileMeta],
        plain: ExposedStatistics,
        *,
        scrub: bool,
        everything: bool = False,
    ) -> tuple[str, int]:
        """Write the list of the manifests before, with `everything` all of them merged; its name and bytes.

        They are merged where they have become many, and with `scrub` where they show values of encrypted
        columns.
        """
        self._base = self._merged_base(base, plain, scrub, everything)
        name, size = self.table.manifests.write_list(self._base)
        self._written.append(name)
        return name, size

    def delta_list(self, changes: tuple[ManifestEntry, ...]) -> tuple[str, int]:
        """Write the list of the commit's own changes, unless an attempt before has; its name and bytes."""
        return self._own_list("delta", changes)

    def changelog_list(self, changelog: tuple[ManifestEntry, ...]) -> tuple[str | None, int | None]:
        """Write the list of the commit's changelog, if it has one; its name and bytes."""
        return self._own_list("changelog", changelog) if changelog else (None, None)

    def _own_list(self, what: str, entries: tuple[ManifestEntry, ...]) -> tuple[str, int]:
        before = self._own.get(what)
        if before is None or before.entries != entries:
            meta = self.table.manifests.write_manifest(entries) if entries else None
            if meta is not None:
                self._written.append(meta.file_name)
            name, size = self.table.manifests.write_list([meta] if meta else [])
            self._written.append(name)
            before = self._own[what] = _OwnList(entries, meta, name, size)
        return before.name, before.size

    def _merged_base(
        self, base: list[ManifestFileMeta], plain: ExposedStatistics, scrub: bool, everything: bool
    ) -> list[ManifestFileMeta]:
        applied = self._merged.apply(base) if self._merged else None
        if applied is not None and not (scrub and plain.in_manifests(self.table.manifests, applied)):
            return applied
        manifests, options = self.table.manifests, self.table.options
        self._merged = merge_manifests(manifests, base, options, plain, scrub=scrub, everything=everything)
        if self._merged is None:
            return base
        self._written.extend(meta.file_name for meta in self._merged.manifests)
        return self._merged.apply(base) or base

    def drop_unused(self, snapshot: Snapshot) -> None:
        """Delete what earlier attempts wrote and the snapshot does not use."""
        used = {snapshot.base_manifest_list}
        for own in self._own.values():
            used |= {own.name, *([] if own.manifest is None else [own.manifest.file_name])}
        if self._merged is not None:
            used.update(meta.file_name for meta in self._merged.manifests)
        self.clean_up([name for name in self._written if name not in used])
        self.own_index.drop_unused()

    def clean_up(self, names: Sequence[str] | None = None) -> None:
        """Delete what was written, or some of it."""
        if names is None:
            self._drop_index()
            self.own_index.clean_up()
        names = list(self._written) if names is None else names
        for name in names:
            with suppress(OSError):
                self.table.manifests.delete(name)
        dropped = set(names)
        self._written = [name for name in self._written if name not in dropped]
