"""The commit participant that adds a segment of the commit's new files, and merges small segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.framework import options as index_options
from lockgate.framework.index.database.index_segments import KIND, entries_of, is_sound, opened
from lockgate.framework.index.database.segment_collector import NAME
from lockgate.framework.plugins import IndexFileChanges, NewIndexFile
from lockgate.framework.store import (
    FileKind,
    IndexEntry,
    Snapshot,
    TableHandle,
    TableSchema,
    confidential_in,
)
from lockgate.pushdown.index import PartName, Segment, merge_segments, segment_of

if TYPE_CHECKING:
    from lockgate.framework.store import PreparedCommit

# Commits merge segments below this size.
SMALL = 16 * 2**20
Partition = tuple[Any, ...]


class SegmentParticipant:
    """Adds a segment to each commit with new files; replaces small segments when there are many."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._request: PreparedCommit | None = None

    def prepare(self, request: PreparedCommit) -> None:
        """Take the request with the collectors' results."""
        self._request = request

    def index_files(self) -> IndexFileChanges:
        """Return the new segment, and the small segments that it replaces."""
        request = self._request
        assert request is not None, "prepare is called first"
        if request.index_files is not None:
            return IndexFileChanges()
        segments_by_file = {file: each[NAME] for file, each in request.collected.items() if NAME in each}
        partitions = {
            entry.file.file_name: entry.partition for entry in request.changes if entry.kind is FileKind.ADD
        }
        new = [named_segment(data, file) for file, data in segments_by_file.items()]
        added = IndexFileChanges(_new_files(new, [partitions[file] for file in segments_by_file]))
        return with_merged(self._table, new, added)

    def committed(self, snapshot: Snapshot) -> None:
        """Do nothing: the segment is part of the snapshot."""

    def aborted(self) -> None:
        """Do nothing: the commit deletes what it wrote."""


def _new_files(new: Sequence[Segment], partitions: Sequence[Partition]) -> tuple[NewIndexFile, ...]:
    """Return the segments of new files as one index file; the segment of a single file is not merged."""
    if len(new) != 1:
        return merged_files(new, partitions)
    return (NewIndexFile(KIND, new[0].copied(), 1, partitions[0]),)


def named_segment(data: bytes, file: str) -> Segment:
    """Return a collector's segment, with the file's name set."""
    segment = segment_of(data, f"the index of {file}")
    segment.rename((file,))
    return segment


def merged_files(
    segments: Sequence[Segment],
    partitions: Sequence[Partition | None],
    name_of: Callable[[str], str | None] = lambda name: name,
    keeps: Callable[[PartName], bool] = lambda part: True,
) -> tuple[NewIndexFile, ...]:
    """Return segments merged into one index file; none if no file remains.

    `partitions` has the partition of each segment, None for a segment of several.
    """
    data = merge_segments(segments, name_of, keeps) if segments else None
    if data is None:
        return ()
    partition = partitions[0] if len(set(partitions)) == 1 else None
    return (NewIndexFile(KIND, data, len(segment_of(data, "a new segment").files.names), partition),)


def keeps_parts(schema: TableSchema) -> Callable[[PartName], bool]:
    """Return the predicate for parts to keep in merged segments: those of existing, unencrypted columns."""
    confidential_ids = {path[0] for path in confidential_in(schema).keys}
    readable_ids = {each.id for each in schema.fields} - confidential_ids
    return lambda part: part.field in readable_ids


def partition_of(table: TableHandle, entry: IndexEntry) -> Partition | None:
    """Return the partition of a segment, None if it has several."""
    keys = table.schema.partition_keys
    values = table.partition_values(entry.partition)
    return None if keys and all(value is None for value in values) else values


def live_only(table: TableHandle, snapshot: Snapshot | None) -> Callable[[str], str | None]:
    """Return a function that returns the name of a live file of a snapshot, None for other files."""
    live = {entry.file.file_name for entry in table.manifests.live_files(snapshot)}
    return lambda name: name if name in live else None


def with_merged(table: TableHandle, new: Sequence[Segment], added: IndexFileChanges) -> IndexFileChanges:
    """Return changes that also merge small segments if there are many, or remove encrypted columns."""
    snapshot = table.latest_snapshot()
    entries = entries_of(table, snapshot)
    candidates = [entry for entry in entries if entry.file_size < SMALL]
    if len(candidates) < table.options.get_option(index_options.MERGE_AT):
        candidates = _with_confidential_columns(table, entries)
    opened_segments = ((entry, opened(table, entry)) for entry in candidates)
    segments = [(entry, each) for entry, each in opened_segments if each is not None and is_sound(each)]
    if not segments:
        return added
    live, names = live_only(table, snapshot), {name for each in new for name in each.files.names}
    merged = merged_files(
        [*(segment for _, segment in segments), *new],
        [*(partition_of(table, entry) for entry, _ in segments), *(each.partition for each in added.added)],
        lambda name: name if name in names else live(name),
        keeps_parts(table.schema),
    )
    return IndexFileChanges(merged, frozenset(entry.file_name for entry, _ in segments), added)


def _with_confidential_columns(table: TableHandle, entries: Sequence[IndexEntry]) -> list[IndexEntry]:
    """Return the segments with parts of columns that have become encrypted."""
    confidential_ids = {path[0] for path in confidential_in(table.schema).keys}
    entries_with_parts = []
    for entry in entries if confidential_ids else ():
        segment = opened(table, entry)
        if segment is not None and any(part.field in confidential_ids for part in segment.parts):
            entries_with_parts.append(entry)
    return entries_with_parts
