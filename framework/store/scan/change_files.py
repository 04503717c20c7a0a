"""The scan of changes: which files say what a commit did to the rows of a table.

Streams and ranges of snapshots share it. Source: Paimon's `DeltaFollowUpScanner`, `ChangelogFollowUpScanner`
and `InputChangelogFollowUpScanner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from lockgate.errors import SnapshotNotFoundError, UnsupportedError
from lockgate.framework.options import COMPACTION_CHANGELOG, LOOKUP_CHANGELOG, NO_CHANGELOG
from lockgate.framework.store.deletion_vectors.snapshot_vectors import read_vector
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.metadata.references import held_snapshot
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.scan.readable_files import stored_entries, top_level, visible_entries
from lockgate.framework.types import DataType, Kind

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


class ChangeSource(StrEnum):
    """What says which rows a commit changed."""

    NOTHING = "nothing"  # no row changed, or a later commit tells
    DELTA = "delta"  # the files that it added
    CHANGELOG = "changelog"  # its changelog files
    STATES = "states"  # only the rows before and after it: it removed some without naming them


@dataclass(frozen=True)
class ChangeFiles:
    """The files that say what a commit did: `removed` and `added` are rows before and after it.

    Entries have the deletion vectors of their state; those of a file in both states, of a table without a
    primary key, show only the rows that went or came. Unless the states tell, `removed` is empty.
    """

    snapshot: Snapshot
    source: ChangeSource
    added: tuple[ManifestEntry, ...] = ()
    removed: tuple[ManifestEntry, ...] = ()

    @property
    def deleted_rows(self) -> int:
        """Return how many rows more were there before than after, in the files of both states."""
        return sum(each.live_rows for each in self.removed) - sum(each.live_rows for each in self.added)


def change_source(table: TableHandle, snapshot: Snapshot) -> ChangeSource:
    """Say what tells the changes of a snapshot, by the producer that held when it was committed."""
    kind = snapshot.commit_kind
    if kind is CommitKind.ANALYZE:
        return ChangeSource.NOTHING
    produces = table.schema_of(snapshot.schema_id).changelog_producer != NO_CHANGELOG
    if produces and snapshot.changelog_manifest_list is not None:
        return ChangeSource.CHANGELOG
    if kind is CommitKind.COMPACT:
        return ChangeSource.NOTHING
    delta = table.manifests.delta_entries(snapshot)
    if kind is CommitKind.OVERWRITE or any(each.kind is FileKind.DELETE for each in delta):
        return ChangeSource.STATES
    return ChangeSource.NOTHING if produces else ChangeSource.DELTA


def change_files(table: TableHandle, snapshot: Snapshot, *, as_states: bool = False) -> ChangeFiles:
    """Return the files that say what a snapshot changed.

    With `as_states` they are those before and after it, even if others tell. Raises SnapshotNotFoundError if
    the state before is needed and has expired.
    """
    source = ChangeSource.STATES if as_states else change_source(table, snapshot)
    if source is ChangeSource.DELTA:
        return ChangeFiles(snapshot, source, tuple(table.manifests.delta_entries(snapshot)))
    if source is ChangeSource.CHANGELOG:
        metas = table.manifests.changelog_manifests(snapshot)
        entries = [entry for meta in metas for entry in table.manifests.read_manifest(meta)]
        return ChangeFiles(snapshot, source, tuple(each for each in entries if each.kind is FileKind.ADD))
    if source is ChangeSource.STATES:
        return _states(table, snapshot)
    return ChangeFiles(snapshot, source)


def settled_entries(table: TableHandle, snapshot: Snapshot) -> Sequence[ManifestEntry]:
    """Return the files of a snapshot of whose rows no later changelog tells, with their vectors.

    Source: Paimon's `ChangelogProducer` and `DataTableStreamScan`.
    """
    entries = stored_entries(table, snapshot)
    schema = table.schema_of(snapshot.schema_id)
    if schema.changelog_producer == LOOKUP_CHANGELOG:
        return [entry for entry in entries if entry.file.level > 0]
    if schema.changelog_producer == COMPACTION_CHANGELOG:
        top = top_level(schema)
        return [entry for entry in entries if entry.file.level >= top]
    return entries


def _states(table: TableHandle, snapshot: Snapshot) -> ChangeFiles:
    after = settled_entries(table, snapshot)
    before: Sequence[ManifestEntry] = ()
    if snapshot.id > 1:
        try:
            before = settled_entries(table, table.snapshot(snapshot.id - 1))
        except SnapshotNotFoundError as error:
            raise SnapshotNotFoundError(
                f"snapshot {snapshot.id} of table {table.identifier} removed rows, and the state before it "
                f"is gone: {error}"
            ) from None
    if not table.schema.has_primary_key:
        gone, came = _rows_that_went(table, before, after), _rows_that_went(table, after, before)
        return ChangeFiles(snapshot, ChangeSource.STATES, tuple(came), tuple(gone))
    gone, came = _differing(table, before, after), _differing(table, after, before)
    # The rows of one key meet in a bucket only, so that all of its files count.
    touched = {(each.partition, each.bucket) for each in (*gone, *came)}
    return ChangeFiles(
        snapshot,
        ChangeSource.STATES,
        tuple(each for each in after if (each.partition, each.bucket) in touched),
        tuple(each for each in before if (each.partition, each.bucket) in touched),
    )


def differing_entries(
    table: TableHandle, first: int, last: int, *, of_first: bool, whole: bool = False
) -> list[ManifestEntry]:
    """Return the files of a state (0: the empty table) that another does not have, or not alike; all if
    `whole`.

    In tables with a primary key these are all files of the buckets where states differ. Raises
    SnapshotNotFoundError for a state that no snapshot, tag or branch holds.
    """
    before, after = (
        visible_entries(table, held_snapshot(table, number)) if number else [] for number in (first, last)
    )
    chosen = before if of_first else after
    if whole:
        return chosen
    gone, came = _differing(table, before, after), _differing(table, after, before)
    if not table.schema.has_primary_key:
        return gone if of_first else came
    touched = {(each.partition, each.bucket) for each in (*gone, *came)}
    return [each for each in chosen if (each.partition, each.bucket) in touched]


def no_list_of_files(table: TableHandle) -> UnsupportedError:
    """Return the error where the difference of two states of a table is asked for as files."""
    maps = [field.name for field in table.schema.fields if _has_map(field.type)]
    if maps:
        why = (
            f"column {maps[0]} has a MAP, whose values Spark cannot compare: read it by Table.read in Python"
        )
    else:
        why = "it is no list of files: read it by Table.read, or as a table in Spark"
    return UnsupportedError(f"the difference of two states of table {table.identifier}: {why}")


def _has_map(found: DataType) -> bool:
    parts = [*(each.type for each in found.fields), *([] if found.element is None else [found.element])]
    return found.kind is Kind.MAP or any(map(_has_map, parts))


def _differing(
    table: TableHandle, entries: Sequence[ManifestEntry], others: Sequence[ManifestEntry]
) -> list[ManifestEntry]:
    """Return the entries whose file, or whose deleted rows, the others do not have."""
    others_by_file = {each.identifier: each for each in others}
    return [
        each
        for each in entries
        if each.identifier not in others_by_file
        or not _same_rows(table, each, others_by_file[each.identifier])
    ]


def _rows_that_went(
    table: TableHandle, before: Sequence[ManifestEntry], after: Sequence[ManifestEntry]
) -> list[ManifestEntry]:
    """Return the files of one state that another does not have, and the rows that only its vectors delete."""
    later = {each.identifier: each for each in after}
    found = []
    for each in before:
        if each.identifier not in later:
            found.append(each)
        elif (vector := later[each.identifier].vector) not in (None, each.vector):
            assert vector is not None, "a file without a vector has lost no row"
            rows = each.file.row_count
            gone = read_vector(table, vector, rows)
            if each.vector is not None:
                gone = gone - read_vector(table, each.vector, rows)
            if len(gone):
                found.append(replace(each, vector=replace(vector, shows=len(gone), but_not=each.vector)))
    return found


def _same_rows(table: TableHandle, one: ManifestEntry, other: ManifestEntry) -> bool:
    """Say whether the vectors of one file in two states delete the same rows, wherever they lie."""
    if one.vector == other.vector:
        return True
    if one.vector is None or other.vector is None or one.vector.cardinality != other.vector.cardinality:
        return False
    rows = one.file.row_count
    marked, others = read_vector(table, one.vector, rows), read_vector(table, other.vector, rows)
    return np.array_equal(marked.positions, others.positions)
