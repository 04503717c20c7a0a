"""Visible files: those of a snapshot that queries read, and which of their rows are deleted.

Of a key table with deletion vectors level 0 is read once a compaction has looked for older rows of its keys;
buckets below 0 hold rows that wait for their bucket. Source: Paimon's `SnapshotReaderImpl` and
`KeyValueFileStoreScan`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.options import MERGE_ENGINE, NUM_LEVELS
from lockgate.framework.store.deletion_vectors.snapshot_vectors import location_of, ranges_of
from lockgate.framework.store.manifests.file_table import FileTable, Mask
from lockgate.framework.store.manifests.manifest import ManifestEntry, VectorLocation
from lockgate.framework.store.merge.merge_plan import FIRST_ROW
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.schema.unsupported_features import (
    check_no_fallback_branch,
    check_readable,
    check_unselected,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema

POSTPONED = -2
"""The number of buckets of tables whose rows wait for a compaction to give them a bucket."""

# Paimon's default for `num-levels`: compaction trigger + 1.
_SORTED_RUNS = "num-sorted-run.compaction-trigger"
_MERGE_ON_READ = "deletion-vectors.merge-on-read"


def readable_files(
    table: TableHandle, snapshot: Snapshot, schema: TableSchema, unopened: Collection[str] = ()
) -> FileTable:
    """Return the entries of a snapshot with their vectors; raises CorruptFileError for damaged ones.

    Those of manifests named in `unopened` are left out.
    """
    files = table.manifests.files(snapshot, unopened)
    vectors = _vectors(table, snapshot, files)
    hidden = _hidden(files, schema, snapshot)
    return files.with_vectors(vectors, hidden) if vectors or hidden.any() else files


def merged_files(files: FileTable, schema: TableSchema) -> FileTable:
    """Return those of a snapshot's files whose rows need no merge: of a key table the top level's.

    Rows that a deletion vector takes from them are missing, as in Paimon, also where a file below has newer
    ones. Source: Paimon's `ReadOptimizedTable`.
    """
    if not schema.has_primary_key:
        return files
    top = top_level(schema)
    below = np.fromiter((entry.file.level < top for entry in files.entries), np.bool_, len(files))
    return files.with_vectors({}, below)


def top_level(schema: TableSchema) -> int:
    """Return the number of the highest level of a key table."""
    levels, runs = schema.options.get(NUM_LEVELS.key), schema.options.get(_SORTED_RUNS)
    if levels is None and runs is not None and runs.strip().isdecimal():
        return int(runs)
    return schema.table_options.get_option(NUM_LEVELS) - 1


def visible_entries(table: TableHandle, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the live files of a snapshot that queries read, with their vectors."""
    files = readable_files(table, snapshot, table.schema)
    return files.select(files.live)


def stored_entries(table: TableHandle, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the live files of a snapshot, those that queries pass over included, with their vectors."""
    files = table.manifests.files(snapshot)
    vectors = _vectors(table, snapshot, files)
    shown = files.with_vectors(vectors, np.zeros(len(files), np.bool_)) if vectors else files
    return shown.select(shown.live)


def hides_level_0(schema: TableSchema, snapshot: Snapshot) -> bool:
    """Say whether queries pass over level 0, whose rows may be newer than rows of higher levels.

    With first-row they may also be rows of keys that the table has, of which nothing is ever seen. Paimon
    knows the option that has them merged since its writers put their version into snapshots.
    """
    if schema.has_primary_key and schema.table_options.get_option(MERGE_ENGINE) == FIRST_ROW:
        return True
    if not schema.has_primary_key or not schema.has_vectors:
        return False
    merges = schema.options.get(_MERGE_ON_READ, "false").strip().lower() == "true"
    return not (merges and snapshot.writer_version is not None)


def waits(entry: ManifestEntry, schema: TableSchema, snapshot: Snapshot) -> bool:
    """Say whether queries pass over a file until a compaction has dealt with it."""
    return entry.bucket < 0 or (entry.file.level == 0 and hides_level_0(schema, snapshot))


def can_block(schema: TableSchema, snapshot: Snapshot) -> bool:
    """Say whether rows of a table are shown by the compaction after the commit that wrote them."""
    return hides_level_0(schema, snapshot) or (schema.has_primary_key and schema.bucket_count == POSTPONED)


def newest_change(table: TableHandle) -> Snapshot | None:
    """Return the newest snapshot that may show other rows than the one before; None if there is none.

    In some tables a compaction shows the rows that were committed before it. Raises UnsupportedError for
    tables whose newest snapshot is not what queries read.
    """
    check_readable(table.schema)
    check_unselected(table.schema)
    check_no_fallback_branch(table.schema)
    found = latest = table.latest_snapshot()
    while found is not None and not _changes_rows(table, found):
        try:
            found = table.snapshot(found.id - 1)
        except SnapshotNotFoundError:
            return latest
    return found


def _changes_rows(table: TableHandle, snapshot: Snapshot) -> bool:
    if snapshot.commit_kind is CommitKind.COMPACT:
        return can_block(table.schema, snapshot)
    return snapshot.commit_kind is not CommitKind.ANALYZE


def _hidden(files: FileTable, schema: TableSchema, snapshot: Snapshot) -> Mask:
    if not schema.has_primary_key:
        return np.zeros(len(files), np.bool_)
    hidden = files.bucket < 0
    if hides_level_0(schema, snapshot):
        hidden |= np.fromiter((entry.file.level == 0 for entry in files.entries), np.bool_, len(files))
    return hidden


def _vectors(table: TableHandle, snapshot: Snapshot, files: FileTable) -> dict[int, VectorLocation]:
    ranges = ranges_of(table, snapshot)
    if not ranges:
        return {}
    found = {}
    for number in np.flatnonzero(files.live):
        file = files.entries[number].file
        if file.file_name in ranges:
            found[int(number)] = location_of(table, *ranges[file.file_name], file.row_count)
    return found
