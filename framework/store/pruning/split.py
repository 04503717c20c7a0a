"""Splits: the parts of a scan that can be read independently of each other.

Files of a bucket whose key ranges overlap form a *section* and stay in one split, because the rows of one key
must meet. Source: Paimon's `MergeTreeSplitGenerator`, `AppendOnlySplitGenerator` and `IntervalPartition`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry, VectorLocation, rows_left

if TYPE_CHECKING:
    from lockgate.framework.store.manifests.file_table import FileTable, Numbers
    from lockgate.framework.store.schema.schema import TableSchema

TARGET_SPLIT_SIZE = 128 * 2**20
"""Bytes up to which files are put together, by default (option `source.split.target-size`)."""

OPEN_FILE_COST = 4 * 2**20
"""What opening a file costs by default, in bytes read instead (option `source.split.open-file-cost`)."""


@dataclass(frozen=True)
class Split:
    """Files to be read together; `partition` holds the partition's values by column name.

    With `merge` their rows must be merged by key, as `merge_plan` says; `files` go from old to new. Without,
    each file can be read by itself. `vectors` say for each file where its deleted rows are (None: nowhere).
    """

    partition: Mapping[str, Any] = field(hash=False)
    bucket: int
    files: tuple[DataFileMeta, ...]
    paths: tuple[str, ...]
    merge: bool
    vectors: tuple[VectorLocation | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.vectors:
            object.__setattr__(self, "vectors", (None,) * len(self.files))

    @property
    def row_count(self) -> int:
        """Rows in the files that no vector deletes; after a merge there may be fewer."""
        return sum(rows_left(file, vector) for file, vector in zip(self.files, self.vectors, strict=True))

    def only(self, chosen: Callable[[str], bool]) -> Split:
        """Return the part of the split whose paths are chosen."""
        kept = [index for index, path in enumerate(self.paths) if chosen(path)]
        return replace(
            self,
            files=tuple(self.files[index] for index in kept),
            paths=tuple(self.paths[index] for index in kept),
            vectors=tuple(self.vectors[index] for index in kept),
        )

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum([file.file_size for file in self.files])


class Section(NamedTuple):
    """Files of one bucket whose key ranges overlap, from old to new; `merge` as in `Split`."""

    entries: tuple[ManifestEntry, ...]
    merge: bool

    @property
    def row_count(self) -> int:
        """Rows in the files that no vector deletes, before merging."""
        return sum(entry.live_rows for entry in self.entries)

    def size(self, open_cost: int) -> int:
        """Return the bytes of the files, each at least the cost of opening it."""
        return sum(max(entry.file.file_size, open_cost) for entry in self.entries)


def by_bucket(entries: Sequence[ManifestEntry]) -> list[list[ManifestEntry]]:
    """Group files by partition and bucket; order of buckets and files as given."""
    grouped: dict[tuple[Any, ...], list[ManifestEntry]] = {}
    key: tuple[Any, ...] = ()
    bucket: list[ManifestEntry] = []
    for entry in entries:
        # Neighbours are of one bucket as a rule.
        if not key or entry.bucket != key[1] or entry.partition is not key[0]:
            key = (entry.partition, entry.bucket)
            bucket = grouped.setdefault(key, [])
        bucket.append(entry)
    return list(grouped.values())


def sections_of(schema: TableSchema, entries: Sequence[ManifestEntry]) -> list[Section]:
    """Divide the files of one bucket into sections.

    In key tables with deletion vectors files above level 0 have no live row of one key twice.
    """
    if not schema.has_primary_key:
        return append_sections(entries)
    if schema.has_vectors and all(_is_clean(entry.file) for entry in entries):
        return append_sections(entries)
    return key_sections(entries)


def append_sections(entries: Sequence[ManifestEntry]) -> list[Section]:
    """Return the files of a bucket whose rows all have keys of their own, or none: each stands alone."""
    # A million of them: `Section(...)` itself takes three times as long.
    make = tuple.__new__
    return [make(Section, ((entry,), False)) for entry in entries]


def key_sections(entries: Sequence[ManifestEntry]) -> list[Section]:
    """Divide the files of one bucket of a key table into sections, in key order.

    A file alone in its section needs no merge if it was compacted and holds no deletions: files of level 0
    may come from writers that leave several rows of a key in a file.
    """
    if any(not entry.file.min_key or not entry.file.max_key for entry in entries):
        return [Section(tuple(entries), merge=True)]
    order = {id(entry): position for position, entry in enumerate(entries)}
    sections = []
    for overlapping in _overlapping(entries):
        # Of rows with equal sequence numbers those of later files win, and a compacted file is older than its
        # place says.
        overlapping.sort(key=lambda entry: (-entry.file.level, order[id(entry)]))
        alone = len(overlapping) == 1 and _is_clean(overlapping[0].file)
        sections.append(Section(tuple(overlapping), merge=not alone))
    return sections


def _overlapping(entries: Sequence[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    section: list[ManifestEntry] = []
    bound: tuple[Any, ...] = ()
    for entry in sorted(entries, key=lambda entry: key_order(entry.file.min_key)):
        if section and key_order(entry.file.min_key) > bound:
            yield section
            section = []
        high = key_order(entry.file.max_key)
        bound = max(bound, high) if section else high
        section.append(entry)
    if section:
        yield section


def _is_clean(file: DataFileMeta) -> bool:
    return file.level > 0 and file.delete_row_count == 0


def key_order(key: Sequence[Any]) -> tuple[Any, ...]:
    """Return what sorts as the key does in Paimon: text by bytes (as Python's), NaN behind all numbers."""
    return tuple((value != value, value) if isinstance(value, float) else value for value in key)


def pack_sections(
    sections: Sequence[Section],
    partition: Mapping[str, Any],
    paths_of: Callable[[Sequence[ManifestEntry]], tuple[str, ...]],
    target_size: int = TARGET_SPLIT_SIZE,
    open_cost: int = OPEN_FILE_COST,
    *,
    merge_apart: bool = False,
) -> list[Split]:
    """Pack the sections of one bucket into splits of about `target_size` bytes.

    A file counts `open_cost` bytes at least. Sections to merge and files to read as they are go into
    different splits; with `merge_apart` each section to merge goes into one of its own, for an engine that
    packs splits itself.
    """
    splits = []
    for merge in (False, True):
        chosen = [section for section in sections if section.merge is merge]
        if not chosen:
            continue
        entries = [entry for section in chosen for entry in section.entries]
        files, paths = [entry.file for entry in entries], paths_of(entries)
        vectors = [entry.vector for entry in entries]
        target = 1 if merge and merge_apart else target_size
        first = 0
        for last in _ends(chosen, open_cost, target):
            splits.append(
                Split(
                    partition=partition,
                    bucket=entries[0].bucket,
                    files=tuple(files[first:last]),
                    paths=paths[first:last],
                    merge=merge,
                    vectors=tuple(vectors[first:last]),
                )
            )
            first = last
    return splits


def pack_files(
    files: FileTable,
    numbers: Numbers,
    partition: Mapping[str, Any],
    paths: Sequence[str],
    target_size: int = TARGET_SPLIT_SIZE,
    open_cost: int = OPEN_FILE_COST,
) -> list[Split]:
    """Pack the files of one bucket, each of which can be read by itself, as `pack_sections` does.

    `numbers` are those of the files, `paths` theirs. By columns: tables may have a million files.
    """
    metas, entries = files.metas_of(numbers), files.entries
    vectors = tuple([entries[number].vector for number in numbers.tolist()]) if files.has_vectors else ()
    bucket = int(files.bucket[numbers[0]])
    bytes_up_to = np.cumsum(np.maximum(files.bytes[numbers], open_cost)).tolist()
    splits = []
    first = before = 0
    while first < len(metas):
        last = bisect_right(bytes_up_to, before + target_size, first + 1)
        splits.append(
            Split(
                partition=partition,
                bucket=bucket,
                files=metas[first:last],
                paths=tuple(paths[first:last]),
                merge=False,
                vectors=vectors[first:last],
            )
        )
        first, before = last, bytes_up_to[last - 1]
    return splits


def _ends(sections: Sequence[Section], open_cost: int, target: int) -> Iterator[int]:
    """Return the number of files up to the end of each split."""
    if all(len(section.entries) == 1 for section in sections):  # as in tables of very many files
        sizes = [section.entries[0].file.file_size for section in sections]
        files_up_to: Sequence[int] = range(1, len(sections) + 1)
        bytes_up_to = [*accumulate(size if size > open_cost else open_cost for size in sizes)]
    else:
        files_up_to = [*accumulate(len(section.entries) for section in sections)]
        bytes_up_to = [*accumulate(section.size(open_cost) for section in sections)]
    first = before = 0
    while first < len(sections):
        # At least one section, however large it is.
        last = bisect_right(bytes_up_to, before + target, first + 1)
        yield files_up_to[last - 1]
        first, before = last, bytes_up_to[last - 1]
