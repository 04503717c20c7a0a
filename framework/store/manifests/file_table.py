"""The data files of a snapshot as columns: their entries, and the values by which scans skip most files.

A scan of 100,000 files looks at most of them only to skip them. One by one that takes seconds, by columns
milliseconds. Tables of files are kept with the manifests they come from, which never change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, compress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lockgate.framework.store.manifests.column_bounds import ColumnBounds, bounds_of, joined_bounds
from lockgate.framework.store.manifests.manifest import (
    DataFileMeta,
    FileKind,
    ManifestEntry,
    VectorLocation,
    live_entries,
    merge_entries,
)
from lockgate.framework.store.metadata.trust import check_file_names
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField
from lockgate.pushdown import Count

Mask: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = npt.NDArray[np.int64]
SchemaOf = Callable[[int], TableSchema]

# Up to so many different numbers one flag each is faster than sorting.
_MOST_FLAGS = 2**22
# So many answers about names are kept.
_MOST_POSITIONS = 256


class FileTable:
    """Entries of manifests in order, with columns: partition (a number, see `partitions`), bucket, rows and
    bytes.

    Masks choose some of the files: one truth value each.
    """

    partition: Numbers
    bucket: Numbers
    total_buckets: Numbers
    rows: Numbers
    bytes: Numbers
    deletes: bool
    has_vectors = False

    def __init__(self, entries: Sequence[ManifestEntry], parts: Sequence[FileTable] = ()) -> None:
        self.entries = tuple(entries)
        self._parts = parts
        # Parts that were made one of another keep what they know of columns.
        self._bounds: dict[tuple[Any, ...], ColumnBounds] = {}
        self._positions: dict[str, tuple[Numbers, Numbers]] = {}
        numbers: dict[tuple[Any, ...], int] = {}
        if parts:
            columns = [part._renumbered(numbers) for part in parts]
            self.partition = np.concatenate(columns)
            self.bucket = np.concatenate([part.bucket for part in parts])
            self.total_buckets = np.concatenate([part.total_buckets for part in parts])
            self.rows = np.concatenate([part.rows for part in parts])
            self.bytes = np.concatenate([part.bytes for part in parts])
            self.deletes = any(part.deletes for part in parts)
        else:
            size = len(self.entries)
            found = (numbers.setdefault(entry.partition, len(numbers)) for entry in self.entries)
            self.partition = np.fromiter(found, np.int64, size)
            self.bucket = np.fromiter((entry.bucket for entry in self.entries), np.int64, size)
            self.total_buckets = np.fromiter((entry.total_buckets for entry in self.entries), np.int64, size)
            self.rows = np.fromiter((entry.file.row_count for entry in self.entries), np.int64, size)
            self.bytes = np.fromiter((entry.file.file_size for entry in self.entries), np.int64, size)
            self.deletes = any(entry.kind is FileKind.DELETE for entry in self.entries)
        self.partitions = list(numbers)

    @classmethod
    def joined(cls, parts: Sequence[FileTable]) -> FileTable:
        """Put tables one behind the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls(())
        return cls([entry for part in parts for entry in part.entries], parts)

    def __len__(self) -> int:
        return len(self.entries)

    def with_vectors(self, vectors: Mapping[int, VectorLocation], hidden: Mask) -> FileTable:
        """Return the files as a snapshot shows them: rows without those that `vectors`, by number, delete.

        Files in `hidden` are none of its live ones.
        """
        made = copy.copy(self)
        entries, rows = list(self.entries), self.rows.copy()
        for number, vector in vectors.items():
            entries[number] = replace(entries[number], vector=vector)
            rows[number] -= vector.cardinality
        made.entries, made.rows = tuple(entries), rows
        made.has_vectors = self.has_vectors or bool(vectors)
        made.__dict__["live"] = self.live & ~hidden
        made.__dict__.pop("_count_of_live", None)
        return made

    def _renumbered(self, numbers: dict[tuple[Any, ...], int]) -> Numbers:
        found = [numbers.setdefault(partition, len(numbers)) for partition in self.partitions]
        return np.asarray(found, np.int64)[self.partition] if found else self.partition

    @property
    def all(self) -> Mask:
        """The mask of every file."""
        return np.ones(len(self.entries), np.bool_)

    @cached_property
    def live(self) -> Mask:
        """The additions that no later deletion takes back."""
        if not self.deletes:
            return self.all
        deleted = {entry.file.file_name for entry in self.entries if entry.kind is FileKind.DELETE}
        touched = [entry for entry in self.entries if entry.file.file_name in deleted]
        left = {id(entry) for entry in live_entries(touched)}
        keep = (
            id(entry) in left if entry.file.file_name in deleted else entry.kind is FileKind.ADD
            for entry in self.entries
        )
        return np.fromiter(keep, np.bool_, len(self.entries))

    @cached_property
    def unmatched_deletions(self) -> list[ManifestEntry]:
        """The deletions of files that no entry before them adds: another manifest does."""
        if not self.deletes:
            return []
        deleted = {entry.file.file_name for entry in self.entries if entry.kind is FileKind.DELETE}
        touched = merge_entries(entry for entry in self.entries if entry.file.file_name in deleted)
        return [entry for entry in touched if entry.kind is FileKind.DELETE]

    # Of a million files each of these takes a while to collect, and the parts keep them.

    @cached_property
    def metas(self) -> tuple[DataFileMeta, ...]:
        """The files themselves."""
        if self._parts:
            return tuple(chain.from_iterable(part.metas for part in self._parts))
        return tuple([entry.file for entry in self.entries])

    def metas_of(self, numbers: Numbers) -> tuple[DataFileMeta, ...]:
        """Return some of the files, of ascending numbers."""
        if len(numbers) < len(self) // 16:
            return tuple([self.entries[number].file for number in numbers.tolist()])
        if int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
            return self.metas[int(numbers[0]) : int(numbers[-1]) + 1]
        metas = self.metas
        return tuple([metas[number] for number in numbers.tolist()])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the files; raises UnsafePathError if one is none."""
        if self._parts:
            return tuple(chain.from_iterable(part.names for part in self._parts))
        names = tuple([file.file_name for file in self.metas])
        check_file_names(names, "a data file")
        return names

    @cached_property
    def schema_ids(self) -> Numbers:
        """The ids of the schemas by which the files were written."""
        if self._parts:
            return np.concatenate([part.schema_ids for part in self._parts])
        return np.fromiter((file.schema_id for file in self.metas), np.int64, len(self))

    @cached_property
    def has_external(self) -> bool:
        """Say whether some files lie where they say themselves."""
        if self._parts:
            return any(part.has_external for part in self._parts)
        return any(file.external_path for file in self.metas)

    def by_bucket(self, mask: Mask) -> list[Numbers]:
        """Return the numbers of the chosen files, bucket by bucket; buckets and files in order."""
        chosen = np.flatnonzero(mask)
        codes = _codes(self.partition[chosen], self.bucket[chosen])
        if not len(chosen) or codes.min() == codes.max():
            return [chosen] if len(chosen) else []
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(first))[inverse.reshape(-1)]
        order = np.argsort(ranks, kind="stable")
        return np.split(chosen[order], np.flatnonzero(np.diff(ranks[order])) + 1)

    def select(self, mask: Mask) -> list[ManifestEntry]:
        """Return the chosen entries in order."""
        if np.count_nonzero(mask) < len(mask) // 16:
            return [self.entries[number] for number in np.flatnonzero(mask)]
        return list(compress(self.entries, mask.tolist()))

    def count(self, mask: Mask) -> Count:
        """Count the chosen files."""
        # Most steps of most scans leave nothing out.
        return self._count_of_live if np.array_equal(mask, self.live) else self._counted(mask)

    @cached_property
    def _count_of_live(self) -> Count:
        return self._counted(self.live)

    def _counted(self, mask: Mask) -> Count:
        partition = self.partition[mask]
        return Count(
            partitions=_distinct(partition),
            buckets=_distinct(_codes(partition, self.bucket[mask])),
            files=int(mask.sum()),
            rows=int(self.rows[mask].sum()),
            bytes=int(self.bytes[mask].sum()),
        )

    def where_partition(self, mask: Mask, keeps: Callable[[tuple[Any, ...]], bool]) -> Mask:
        """Narrow a mask to files of partitions that `keeps` accepts; each is asked about once."""
        accepted = np.zeros(len(self.partitions), np.bool_)
        for number in np.unique(self.partition[mask]):
            accepted[number] = keeps(self.partitions[number])
        return mask & accepted[self.partition] if len(accepted) else mask

    def where_bucket(self, mask: Mask, keeps: Callable[[ManifestEntry], bool]) -> Mask:
        """Narrow a mask to buckets that `keeps` accepts; each is asked about once, by one of its files."""
        chosen = np.flatnonzero(mask)
        if not len(chosen):
            return mask
        buckets = _codes(self.partition[chosen], self.bucket[chosen], self.total_buckets[chosen])
        _, first, inverse = np.unique(buckets, return_index=True, return_inverse=True)
        accepted = np.fromiter((keeps(self.entries[chosen[at]]) for at in first), np.bool_, len(first))
        narrowed = np.zeros_like(mask)
        narrowed[chosen] = accepted[inverse.reshape(-1)]
        return narrowed

    def where(self, mask: Mask, keeps: Callable[[ManifestEntry], bool]) -> Mask:
        """Narrow a mask to files that `keeps` accepts, each by itself."""
        narrowed = mask.copy()
        for number in np.flatnonzero(mask):
            narrowed[number] = keeps(self.entries[number])
        return narrowed

    @cached_property
    def not_orc(self) -> Sequence[int]:
        """The numbers of files in another format than ORC, as the ends of their names say."""
        return [
            number for number, entry in enumerate(self.entries) if not entry.file.file_name.endswith(".orc")
        ]

    def bounds(self, field: DataField, schema_of: SchemaOf, *, of_key: int | None = None) -> ColumnBounds:
        """Return what is known of a column in every file, by the column's id and present type.

        With `of_key` it is that column of the trimmed primary key.
        """
        wanted = (field.id, field.type.with_nullable(True), of_key)
        found = self._bounds.get(wanted)
        if found is None:
            if self._parts:
                found = joined_bounds([part.bounds(field, schema_of, of_key=of_key) for part in self._parts])
            else:
                found = bounds_of(self.entries, field, schema_of, of_key)
            self._bounds[wanted] = found
        return found

    def positions(self, key: str, number_of: Callable[[str], int | None]) -> tuple[Numbers, Numbers]:
        """Return the positions of the files to whose names `number_of` gives a number, and the numbers.

        The answer is kept under `key` with the manifests, of which a new snapshot has most from the one
        before.
        """
        found = self._positions.get(key)
        if found is None:
            found = self._found_positions(key, number_of)
            if len(self._positions) >= _MOST_POSITIONS:
                self._positions.clear()
            self._positions[key] = found
        return found

    def _found_positions(self, key: str, number_of: Callable[[str], int | None]) -> tuple[Numbers, Numbers]:
        if not self._parts:
            numbers = (number_of(entry.file.file_name) for entry in self.entries)
            all_numbers = np.fromiter((-1 if each is None else each for each in numbers), np.int64, len(self))
            positions = np.flatnonzero(all_numbers >= 0)
            return positions, all_numbers[positions]
        found = [part.positions(key, number_of) for part in self._parts]
        starts = np.cumsum([0, *map(len, self._parts)])[:-1]
        joined = [each[0] + start for each, start in zip(found, starts, strict=True)]
        return np.concatenate(joined), np.concatenate([each[1] for each in found])


def _codes(*columns: Numbers) -> Numbers:
    """Return one number for each row of columns; rows get the same number only if they are equal.

    Spans of the columns multiply: partitions, buckets and bucket counts stay far below 2**63.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column):
            low, high = int(column.min()), int(column.max())
            codes = codes * (high - low + 1) + (column - low)
    return codes


def _distinct(codes: Numbers) -> int:
    """Count different numbers, of which none is negative, without sorting them where they are small."""
    if not len(codes):
        return 0
    span = int(codes.max()) + 1
    if span > _MOST_FLAGS:
        return len(np.unique(codes))
    seen = np.zeros(span, np.bool_)
    seen[codes] = True
    return int(np.count_nonzero(seen))
