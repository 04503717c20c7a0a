"""Hash indexes: which bucket the keys of a table with dynamic buckets have.

Each bucket has one index file: the hashes of its keys, 32 bits each, in no order. A key belongs to the bucket
that its hash was first given to, so a snapshot must never give one hash to two buckets. Source: Paimon's
`HashIndexFile`, `PartitionIndex` and `HashBucketAssigner`, which do not guard that between two writers.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lockgate.errors import CommitConflictError, CorruptFileError, UnsupportedError
from lockgate.framework.store.codec.binary_row import decode_row, encode_row
from lockgate.framework.store.manifests.index_manifest import (
    HASH,
    IndexEntry,
    WrittenIndex,
    index_path,
    read_index_manifest,
)
from lockgate.framework.store.manifests.manifest import FileKind
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.pushdown.index import are_in, distinct

if TYPE_CHECKING:
    from lockgate.framework.store.commit.commit_request import PreparedCommit
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

_STORED = np.dtype(">i4")
_NONE = np.zeros(0, np.int32)

Partition = tuple[Any, ...]
Buckets = dict[int, np.ndarray]


class BucketsTakenError(CommitConflictError):
    """Keys of a commit have got other buckets by another commit; their rows must be written there."""


def to_bytes(hashes: np.ndarray) -> bytes:
    """Return hashes, each once, as an index file holds them."""
    return distinct(hashes).astype(_STORED).tobytes()


def from_bytes(data: bytes) -> np.ndarray:
    """Return the hashes of an index file, ascending."""
    return distinct(np.frombuffer(data, _STORED).astype(np.int32))


def hash_entries(table: TableHandle, snapshot: Snapshot | None) -> dict[Partition, dict[int, IndexEntry]]:
    """Return the hash indexes of a snapshot by partition and bucket; CorruptFileError if one has two."""
    found: dict[Partition, dict[int, IndexEntry]] = defaultdict(dict)
    if snapshot is None or snapshot.index_manifest is None:
        return found
    types = table.schema.types_of(table.schema.partition_keys)
    for entry in read_index_manifest(table, snapshot.index_manifest).entries:
        if entry.kind == HASH:
            of_partition = found[decode_row(entry.partition, types)]
            if entry.bucket in of_partition:
                raise CorruptFileError(f"{entry.file_name} is a second hash index of bucket {entry.bucket}")
            of_partition[entry.bucket] = entry
    return found


def read_hashes(table: TableHandle, entries: Mapping[int, IndexEntry]) -> Buckets:
    """Return the hashes of buckets; CorruptFileError for an index file that is missing or damaged."""
    return {bucket: _read(table, entry) for bucket, entry in entries.items()}


def _read(table: TableHandle, entry: IndexEntry) -> np.ndarray:
    path = index_path(table, entry)
    try:
        data = table.file_system.read_bytes(path)
    except FileNotFoundError:
        raise CorruptFileError(
            f"{path}, the hash index of bucket {entry.bucket}, is missing; either its snapshot expired "
            "while it was read, or the table is damaged"
        ) from None
    if len(data) != entry.row_count * _STORED.itemsize:
        raise CorruptFileError(f"{path} has {len(data)} bytes, not those of {entry.row_count} hashes")
    return from_bytes(data)


class HashChanges:
    """The hash indexes after a commit to `head`; raises BucketsTakenError if keys have other buckets there.

    A partition that is overwritten begins with the keys of the commit. Raises UnsupportedError for rows of
    which no hashes were given, which would hide from later writers that their keys exist.
    """

    def __init__(self, table: TableHandle, head: Snapshot | None, request: PreparedCommit) -> None:
        self._table = table
        self._head = head
        _check_given(table, request)
        before = hash_entries(table, head)
        self._gone = _overwritten(before, request.overwrite)
        self._made: dict[Partition, Buckets] = {}
        by_partition: dict[Partition, Buckets] = defaultdict(dict)
        for (partition, bucket), data in request.hashes.items():
            by_partition[partition][bucket] = from_bytes(data)
        for partition, given in by_partition.items():
            there = {} if partition in self._gone else read_hashes(table, before.get(partition, {}))
            _check_distinct(table, given)
            self._made[partition] = _grown(table, there, given)

    def write(self) -> WrittenIndex | None:
        """Write what is new; return what the snapshot has then, None if it is what it had."""
        name = self._head.index_manifest if self._head else None
        if not self._gone and not any(self._made.values()):
            return None
        before = read_index_manifest(self._table, name).entries if name else ()
        made = [
            self._file(partition, bucket, hashes)
            for partition, buckets in self._made.items()
            for bucket, hashes in buckets.items()
        ]
        replaced = {(entry.partition, entry.bucket) for entry in made}
        types = self._types
        kept = [
            entry
            for entry in before
            if entry.kind != HASH
            or not (
                (entry.partition, entry.bucket) in replaced
                or decode_row(entry.partition, types) in self._gone
            )
        ]
        return WrittenIndex((*kept, *made), [index_path(self._table, each) for each in made])

    @property
    def _types(self) -> tuple[Any, ...]:
        return self._table.schema.types_of(self._table.schema.partition_keys)

    def _file(self, partition: Partition, bucket: int, hashes: np.ndarray) -> IndexEntry:
        data = to_bytes(hashes)
        entry = IndexEntry(
            partition=encode_row(partition, self._types),
            bucket=bucket,
            kind=HASH,
            file_name=f"index-{uuid.uuid4()}-0",
            file_size=len(data),
            row_count=len(hashes),
        )
        self._table.file_system.write_new(index_path(self._table, entry), data)
        return entry


def _check_given(table: TableHandle, request: PreparedCommit) -> None:
    if request.kind is CommitKind.COMPACT:
        return
    for entry in request.changes:
        if entry.kind is FileKind.ADD and (entry.partition, entry.bucket) not in request.hashes:
            raise UnsupportedError(
                f"file {entry.file.file_name} cannot be added to {table.identifier}: the table has dynamic "
                "buckets, and the file's writer did not report its keys; write by Table.write"
            )


def _overwritten(
    partitions: Iterable[Partition], overwrite: Callable[[Partition], bool] | None
) -> set[Partition]:
    return set() if overwrite is None else {each for each in partitions if overwrite(each)}


def _check_distinct(table: TableHandle, given: Buckets) -> None:
    """Raise BucketsTakenError if two writers of one commit put a key into two buckets."""
    hashes = np.concatenate(list(given.values()))
    if len(distinct(hashes)) < len(hashes):
        raise BucketsTakenError(
            f"two writes of one commit assigned a key of {table.identifier} to two buckets; write the rows "
            "again, in one write"
        )


def _grown(table: TableHandle, there: Buckets, given: Buckets) -> Buckets:
    """Return the buckets that get new hashes, with all of theirs."""
    grown = {}
    for bucket, hashes in given.items():
        own = there.get(bucket, _NONE)
        new = hashes[~are_in(hashes, own)]
        others = [found for number, found in there.items() if number != bucket]
        if any(are_in(new, found).any() for found in others):
            raise BucketsTakenError(
                f"a concurrent commit assigned keys of bucket {bucket} of {table.identifier} to other "
                "buckets; write the rows again"
            )
        if len(new):
            grown[bucket] = distinct(np.concatenate([own, new]))
    return grown
