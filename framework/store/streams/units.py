"""Units of a stream: the files that a batch reads together, in an order that never changes.

A position in a stream counts units, so their order is a part of what checkpoints mean: by partition, by
bucket, then by key or as committed. A snapshot never changes, nor do its units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.merge.merge import RowKind
from lockgate.framework.store.pruning.split import (
    Section,
    Split,
    append_sections,
    by_bucket,
    sections_of,
)
from lockgate.framework.store.scan.change_files import (
    ChangeFiles,
    ChangeSource,
    change_files,
    change_source,
    settled_entries,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot
    from lockgate.framework.store.schema.schema import TableSchema


@dataclass(frozen=True)
class Unit:
    """Files that are read together; `kind` is that of all their rows, None: each row has its own."""

    section: Section
    kind: RowKind | None = None

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.section.entries)

    @property
    def bytes(self) -> int:
        """Bytes of the files."""
        return sum(entry.file.file_size for entry in self.section.entries)

    @property
    def rows(self) -> int:
        """Rows in the files, before a merge."""
        return self.section.row_count

    @property
    def retracts(self) -> int:
        """Rows that say what is gone (-U, -D), as far as the metadata counts them, before a merge."""
        if self.kind is not None:
            return self.rows if self.kind is RowKind.DELETE else 0
        return sum(entry.file.delete_row_count or 0 for entry in self.section.entries)

    def split(self, table: TableHandle, schema: TableSchema) -> Split:
        """Return what readers read."""
        entries = self.section.entries
        first = entries[0]
        return Split(
            partition=dict(zip(schema.partition_keys, first.partition, strict=True)),
            bucket=first.bucket,
            files=tuple(entry.file for entry in entries),
            paths=tuple(table.paths.data_file(each.partition, each.bucket, each.file) for each in entries),
            merge=self.section.merge,
            vectors=tuple(entry.vector for entry in entries),
        )


@dataclass(frozen=True)
class Units:
    """The units of one snapshot, and what is left out of its changes.

    `of_states`: their rows are merged to states, so that no deletion is among those that have no kind given.
    `removed` counts rows that a commit took away without naming them, and that no unit shows.
    """

    snapshot: Snapshot
    units: tuple[Unit, ...] = ()
    of_states: bool = False
    removed: int = 0
    overwrites: int = 0


def units_of_state(table: TableHandle, schema: TableSchema, snapshot: Snapshot) -> Units:
    """Return the units of a snapshot's rows, without those of which a later changelog tells."""
    return Units(snapshot, tuple(_units(schema, settled_entries(table, snapshot))), of_states=True)


def units_of_changes(
    table: TableHandle, schema: TableSchema, snapshot: Snapshot, *, kinds: bool, overwrites: bool | None
) -> Units:
    """Return the units of what a snapshot changed.

    With `kinds` rows say of themselves whether they came or went. `overwrites` says whether rows of an
    OVERWRITE are read; None: with kinds only.
    """
    source = change_source(table, snapshot)
    if source is ChangeSource.STATES:
        if overwrites is False:
            return Units(snapshot, overwrites=1)
        return _units_of_overwrite(schema, change_files(table, snapshot), kinds=kinds)
    changes = change_files(table, snapshot)
    if source is ChangeSource.CHANGELOG:
        # Rows of a changelog are changes already, so that no two of them make one.
        buckets = _sorted_buckets(changes.added)
        sections = [section for bucket in buckets for section in append_sections(bucket)]
        return Units(snapshot, tuple(Unit(section) for section in sections))
    return Units(snapshot, tuple(_units(schema, changes.added)))


def units_of_states(schema: TableSchema, changes: ChangeFiles) -> tuple[Unit, ...]:
    """Return the units of the rows before a commit, as gone, and of those after it, as new."""
    removed = _units(schema, changes.removed, RowKind.DELETE)
    return (*removed, *_units(schema, changes.added, RowKind.INSERT))


def _units_of_overwrite(schema: TableSchema, changes: ChangeFiles, *, kinds: bool) -> Units:
    if kinds:
        return Units(changes.snapshot, units_of_states(schema, changes), of_states=True)
    units = tuple(_units(schema, changes.added, RowKind.INSERT))
    return Units(
        changes.snapshot,
        units,
        of_states=True,
        removed=max(changes.deleted_rows, 0),
        overwrites=1 if units else 0,
    )


def _units(schema: TableSchema, entries: Iterable[ManifestEntry], kind: RowKind | None = None) -> list[Unit]:
    buckets = _sorted_buckets(entries)
    return [Unit(section, kind) for bucket in buckets for section in sections_of(schema, bucket)]


def _sorted_buckets(entries: Iterable[ManifestEntry]) -> list[list[ManifestEntry]]:
    return sorted(by_bucket(list(entries)), key=lambda bucket: (repr(bucket[0].partition), bucket[0].bucket))
