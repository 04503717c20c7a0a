"""Changes of deletion vectors by a commit: it marks rows, and drops the vectors of removed files.

Source: Paimon's `AppendDeleteFileMaintainer`, `BucketedDvMaintainer` and `DeletionVectorIndexFileWriter`.
Index files never change: one that holds a vector to be changed is replaced by another, with the rest of its
vectors. Those of others stay, but in tables with buckets, of which each has one index file.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lockgate.errors import CommitConflictError, UnsupportedFormatError
from lockgate.framework import options as table_options
from lockgate.framework.store.codec.binary_row import encode_row
from lockgate.framework.store.deletion_vectors.deletion_vector import (
    FRAME_BYTES,
    DeletedRows,
    encode,
    is_wide,
)
from lockgate.framework.store.deletion_vectors.snapshot_vectors import (
    location_of,
    ranges_of,
    read_bytes,
    read_vector,
)
from lockgate.framework.store.manifests.index_manifest import (
    DELETION_VECTORS,
    IndexEntry,
    VectorRange,
    WrittenIndex,
    index_path,
    knows_index,
    read_index_manifest,
)
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry, VectorLocation

if TYPE_CHECKING:
    from lockgate.framework.store.commit.commit_files import IndexChanges
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

# The version of index files, their first byte.
_VERSION = b"\x01"

Bucket = tuple[bytes, int]


@dataclass(frozen=True)
class RowDeletions:
    """Rows of a data file, there when they were found, that a commit deletes by their positions."""

    entry: ManifestEntry
    deleted: DeletedRows


class VectorChanges:
    """The vectors after a commit to `head`: made from those of `head`, and written by `write`.

    Raises CommitConflictError if the commit would lose what another has deleted concurrently.
    """

    def __init__(
        self,
        table: TableHandle,
        head: Snapshot | None,
        changes: Sequence[ManifestEntry],
        marked: Sequence[RowDeletions],
        *,
        unread: frozenset[str],
    ) -> None:
        """Start with `unread`, the files among `changes` that go whatever became of them."""
        self._table = table
        self._head = head
        self._ranges = ranges_of(table, head)
        self._gone = {each.file.file_name for each in changes if each.kind is FileKind.DELETE}
        self._gone -= {each.file.file_name for each in changes if each.kind is FileKind.ADD}
        for change in changes:
            if change.kind is FileKind.DELETE and change.file.file_name not in unread:
                self._check_unchanged(change)
        self._marked = {each.entry.file.file_name: self._rebased(each) for each in marked}
        self._where = {each.entry.file.file_name: _bucket_of(table, each.entry) for each in marked}

    def _location(self, entry: ManifestEntry) -> VectorLocation | None:
        found = self._ranges.get(entry.file.file_name)
        return None if found is None else location_of(self._table, *found, entry.file.row_count)

    def _check_unchanged(self, change: ManifestEntry) -> None:
        """Refuse to replace a file of which rows were deleted after it was read."""
        now = self._location(change)
        if now == change.vector:
            return
        if now is not None and change.vector is not None and now.cardinality == change.vector.cardinality:
            rows = change.file.row_count
            read = read_vector(self._table, change.vector, rows)
            if np.array_equal(read.positions, read_vector(self._table, now, rows).positions):
                return
        raise CommitConflictError(
            f"another commit deleted rows of file {change.file.file_name}, which this change read before "
            "and replaces; read the table again and repeat the change"
        )

    def _rebased(self, marked: RowDeletions) -> DeletedRows:
        """Add to the rows what the file's vector deletes now; the same row must not be among them."""
        location = self._location(marked.entry)
        if location is None:
            return marked.deleted
        there = read_vector(self._table, location, marked.entry.file.row_count)
        both = there | marked.deleted
        if len(both) != len(there) + len(marked.deleted):
            raise CommitConflictError(
                f"a concurrent commit changed the same rows of file {marked.entry.file.file_name}; repeat "
                "the statement"
            )
        return both

    @property
    def is_empty(self) -> bool:
        """Say whether the vectors stay as they are."""
        return not self._marked and not any(name in self._ranges for name in self._gone)

    def write(self) -> WrittenIndex | None:
        """Write what is new; return what the snapshot has then, None if it is what it had."""
        head = self._head
        name = head.index_manifest if head else None
        before = read_index_manifest(self._table, name).entries if name else ()
        if self.is_empty:
            return None
        changed = [entry for entry in before if self._is_changed(entry)]
        kept = [entry for entry in before if entry not in changed]
        made = self._new_files(changed)
        return WrittenIndex((*kept, *made), [index_path(self._table, each) for each in made])

    def _is_changed(self, entry: IndexEntry) -> bool:
        if entry.kind != DELETION_VECTORS:
            return False
        touched = any(
            each.data_file in self._gone or each.data_file in self._marked for each in entry.vectors
        )
        whole = _has_one_file(self._table)
        return touched or (whole and (entry.partition, entry.bucket) in self._where.values())

    def _new_files(self, changed: Sequence[IndexEntry]) -> list[IndexEntry]:
        bins: dict[Bucket, dict[str, tuple[bytes, int]]] = {}
        for entry in changed:
            path = index_path(self._table, entry)
            for each in entry.vectors:
                if each.data_file not in self._gone and each.data_file not in self._marked:
                    data = read_bytes(self._table, path, each)
                    cardinality = self._ranges[each.data_file][1].cardinality
                    into = bins.setdefault((entry.partition, entry.bucket), {})
                    into[each.data_file] = (data, -1 if cardinality is None else cardinality)
        wide = self._table.options.get_option(table_options.VECTORS_BITMAP64)
        for name, deleted in self._marked.items():
            bins.setdefault(self._where[name], {})[name] = (encode(deleted, wide=wide), len(deleted))
        return [made for bucket, named in bins.items() for made in self._files_of(bucket, named)]

    def _files_of(self, bucket: Bucket, bins: Mapping[str, tuple[bytes, int]]) -> Iterable[IndexEntry]:
        target = self._table.options.get_option(table_options.VECTORS_FILE_SIZE)
        rolls = not _has_one_file(self._table)
        data, ranges = bytearray(_VERSION), list[VectorRange]()
        for name, (content, cardinality) in bins.items():
            if rolls and ranges and len(data) + len(content) > target:
                yield self._file(bucket, bytes(data), ranges)
                data, ranges = bytearray(_VERSION), []
            length = _length(content)
            ranges.append(VectorRange(name, len(data), length, None if cardinality < 0 else cardinality))
            data += content
        if ranges:
            yield self._file(bucket, bytes(data), ranges)

    def _file(self, bucket: Bucket, data: bytes, ranges: Sequence[VectorRange]) -> IndexEntry:
        entry = IndexEntry(
            partition=bucket[0],
            bucket=bucket[1],
            kind=DELETION_VECTORS,
            file_name=f"index-{uuid.uuid4()}-0",
            file_size=len(data),
            row_count=len(ranges),
            vectors=tuple(ranges),
        )
        path = index_path(self._table, entry)
        self._table.file_system.write_new(path, data)
        return entry


def _length(content: bytes) -> int:
    return len(content) if is_wide(content) else len(content) - FRAME_BYTES


def _has_one_file(table: TableHandle) -> bool:
    """Say whether the vectors of a bucket lie in one file, as they do wherever rows have buckets."""
    return table.schema.bucket_count > 0 or table.schema.has_primary_key


class _Both:
    """Changes of hash indexes and of vectors in one commit."""

    def __init__(self, hashes: IndexChanges, vectors: VectorChanges) -> None:
        self._hashes = hashes
        self._vectors = vectors

    def write(self) -> WrittenIndex | None:
        """Write what is new of both; return what the snapshot has then, None if it is what it had."""
        hashes, vectors = self._hashes.write(), self._vectors.write()
        if hashes is None or vectors is None:
            return hashes or vectors
        others = [entry for entry in hashes.entries if entry.kind != DELETION_VECTORS]
        own = [entry for entry in vectors.entries if entry.kind == DELETION_VECTORS]
        return WrittenIndex((*others, *own), [*hashes.paths, *vectors.paths])


def with_vectors(changes: IndexChanges | None, vectors: VectorChanges) -> IndexChanges:
    """Return the changes of a commit's index with those of its deletion vectors."""
    return vectors if changes is None else _Both(changes, vectors)


def _bucket_of(table: TableHandle, entry: ManifestEntry) -> Bucket:
    types = table.schema.types_of(table.schema.partition_keys)
    return encode_row(entry.partition, types), entry.bucket


def check_known_index(table: TableHandle, head: Snapshot | None) -> None:
    """Raise UnsupportedFormatError if a snapshot has an index that goes out of date with its files."""
    if head is None or head.index_manifest is None:
        return
    entries = read_index_manifest(table, head.index_manifest).entries
    others: set[Any] = {entry.kind for entry in entries if not knows_index(entry.kind)}
    if others:
        raise UnsupportedFormatError(
            f"{table.location} has an index of kind {', '.join(sorted(others))}; its files cannot be replaced"
        )
