"""Participant of commits: one segment of all files that a commit adds, and merging once there are many."""

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
from lockgate.framework.store.codec.binary_row import decode_row
from lockgate.pushdown.index import PartName, Segment, merge_segments, segment_of

if TYPE_CHECKING:
    from lockgate.framework.store import CommitRequest

# Larger segments are not merged by commits.
SMALL = 16 * 2**20
Partition = tuple[Any, ...]


class SegmentParticipant:
    """Adds a segment to each commit that adds files, in the place of others where they have become many."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._request: CommitRequest | None = None

    def prepare(self, request: CommitRequest) -> None:
        """Take in what collectors made."""
        self._request = request

    def index_files(self) -> IndexFileChanges:
        """Return the new segment, and small ones that it takes in."""
        request = self._request
        assert request is not None, "asked after prepare"
        if request.index_files is not None:
            return IndexFileChanges()
        made = {file: each[NAME] for file, each in request.collected.items() if NAME in each}
        where = {
            entry.file.file_name: entry.partition for entry in request.changes if entry.kind is FileKind.ADD
        }
        new = [named_segment(data, file) for file, data in made.items()]
        added = IndexFileChanges(_new_files(new, [where[file] for file in made]))
        return with_merged(self._table, new, added)

    def committed(self, snapshot: Snapshot) -> None:
        """Do nothing: the segment is part of the snapshot."""

    def aborted(self) -> None:
        """Do nothing: the commit deletes what it wrote."""


def _new_files(new: Sequence[Segment], partitions: Sequence[Partition]) -> tuple[NewIndexFile, ...]:
    """Return the segments of new files as one; that of a single file is as it is, and costs little more."""
    if len(new) != 1:
        return merged_files(new, partitions)
    return (NewIndexFile(KIND, new[0].copied(), 1, partitions[0]),)


def named_segment(data: bytes, file: str) -> Segment:
    """Return a collector's segment of one file with the file's name."""
    segment = segment_of(data, f"the index of {file}")
    segment.rename((file,))
    return segment


def merged_files(
    segments: Sequence[Segment],
    partitions: Sequence[Partition | None],
    name_of: Callable[[str], str | None] = lambda name: name,
    keeps: Callable[[PartName], bool] = lambda part: True,
) -> tuple[NewIndexFile, ...]:
    """Return segments, of partitions (None: of several), as one index file; none if nothing is left."""
    data = merge_segments(segments, name_of, keeps) if segments else None
    if data is None:
        return ()
    one = partitions[0] if len(set(partitions)) == 1 else None
    return (NewIndexFile(KIND, data, len(segment_of(data, "a new segment").files.names), one),)


def keeps_parts(schema: TableSchema) -> Callable[[PartName], bool]:
    """Return which parts stay when segments are written again: those of columns that are there and plain."""
    secret = {path[0] for path in confidential_in(schema).keys}
    present = {each.id for each in schema.fields} - secret
    return lambda part: part.field in present


def partition_of(table: TableHandle, entry: IndexEntry) -> Partition | None:
    """Return the partition that a segment is about, None if it is about several."""
    keys = table.schema.partition_keys
    values = decode_row(entry.partition, table.schema.types_of(keys))
    return None if keys and all(value is None for value in values) else values


def live_only(table: TableHandle, snapshot: Snapshot | None) -> Callable[[str], str | None]:
    """Return the names of files that a snapshot has as they are, None for others."""
    live = {entry.file.file_name for entry in table.manifests.live_files(snapshot)}
    return lambda name: name if name in live else None


def with_merged(table: TableHandle, new: Sequence[Segment], added: IndexFileChanges) -> IndexFileChanges:
    """Return changes that also merge small segments where there are many, and drop what must not be shown."""
    snapshot = table.latest_snapshot()
    entries = entries_of(table, snapshot)
    chosen = [entry for entry in entries if entry.file_size < SMALL]
    if len(chosen) < table.options.get_option(index_options.MERGE_AT):
        chosen = _with_secrets(table, entries)
    opening = ((entry, opened(table, entry)) for entry in chosen)
    found = [(entry, each) for entry, each in opening if each is not None and is_sound(each)]
    if not found:
        return added
    live, names = live_only(table, snapshot), {name for each in new for name in each.files.names}
    merged = merged_files(
        [*(segment for _, segment in found), *new],
        [*(partition_of(table, entry) for entry, _ in found), *(each.partition for each in added.added)],
        lambda name: name if name in names else live(name),
        keeps_parts(table.schema),
    )
    return IndexFileChanges(merged, frozenset(entry.file_name for entry, _ in found), added)


def _with_secrets(table: TableHandle, entries: Sequence[IndexEntry]) -> list[IndexEntry]:
    """Return the segments with parts of columns that are encrypted by now."""
    secret = {path[0] for path in confidential_in(table.schema).keys}
    found = []
    for entry in entries if secret else ():
        segment = opened(table, entry)
        if segment is not None and any(part.field in secret for part in segment.parts):
            found.append(entry)
    return found
