"""Entries of manifests: data files that were added to or deleted from a bucket.

Source: Paimon's specification, page "Manifest", and `DataFileMeta` for the fields it does not list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from lockgate.framework.store.codec.simple_stats import EMPTY_STATS, SimpleStats


class FileKind(IntEnum):
    """Whether an entry adds or deletes its file."""

    ADD = 0
    DELETE = 1


class FileSource(IntEnum):
    """Whether a file came from a write or from a compaction."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True)
class DataFileMeta:
    """One data file, as manifests describe it.

    `min_key` and `max_key` are values of the trimmed primary key (empty for append tables), `key_stats` is of
    the same columns, `value_stats` of `value_stats_cols` (None: all columns of the schema `schema_id`).
    `delete_row_count` counts rows that delete a key. `creation_time_millis` is the wall clock where the file
    was written, as if it were UTC.
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: tuple[Any, ...] = ()
    max_key: tuple[Any, ...] = ()
    key_stats: SimpleStats = EMPTY_STATS
    value_stats: SimpleStats = EMPTY_STATS
    min_sequence_number: int = 0
    max_sequence_number: int = 0
    schema_id: int = 0
    level: int = 0
    extra_files: tuple[str, ...] = ()
    creation_time_millis: int | None = None
    delete_row_count: int | None = 0
    embedded_index: bytes | None = None
    file_source: int | None = FileSource.APPEND
    value_stats_cols: tuple[str, ...] | None = ()
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None


@dataclass(frozen=True)
class VectorLocation:
    """The place of a data file's deletion vector in an index file, and how many rows it deletes.

    `length` is the manifest's, which counts the size and the check sum in one of the two layouts alone. If
    `shows` is a number, a file is read the other way round: only those of its rows, so many, that the vector
    deletes and the vector `but_not` does not. So streams read what a commit has deleted.
    """

    path: str
    offset: int
    length: int
    cardinality: int
    shows: int | None = None
    but_not: VectorLocation | None = None


def rows_left(file: DataFileMeta, vector: VectorLocation | None) -> int:
    """Return how many rows of a file are read with a vector."""
    if vector is None:
        return file.row_count
    return file.row_count - vector.cardinality if vector.shows is None else vector.shows


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """The addition or deletion of one file; `partition` holds values of the partition columns in order.

    `vector` comes from the snapshot that is read, not from the manifest: it locates the file's deleted rows.
    """

    kind: FileKind
    partition: tuple[Any, ...]
    bucket: int
    total_buckets: int
    file: DataFileMeta
    vector: VectorLocation | None = None

    @property
    def live_rows(self) -> int:
        """Rows of the file that no vector deletes."""
        return rows_left(self.file, self.vector)

    @property
    def identifier(self) -> tuple[Any, ...]:
        """Return the identity that an addition and its deletion share."""
        file = self.file
        return (
            *(self.partition, self.bucket, file.level, file.file_name),
            *(file.extra_files, file.embedded_index, file.external_path),
        )


@dataclass(frozen=True)
class ManifestFileMeta:
    """One manifest, as manifest lists describe it; `partition_stats` covers all its entries."""

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Cancel each addition against its deletion; what remains is in the order of the input.

    A deletion without its addition remains, so that parts of a history can be merged too.
    """
    remaining: dict[tuple[Any, ...], ManifestEntry] = {}
    for entry in entries:
        key = entry.identifier
        if entry.kind is FileKind.DELETE and key in remaining and remaining[key].kind is FileKind.ADD:
            del remaining[key]
        else:
            remaining[key] = entry
    return list(remaining.values())


def live_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the additions that no later deletion takes back: the files of a snapshot."""
    return [entry for entry in merge_entries(entries) if entry.kind is FileKind.ADD]
