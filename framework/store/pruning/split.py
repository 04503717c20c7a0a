"""Splits: the parts of a scan that can be read independently of each other.

Files of a bucket whose key ranges overlap form a *section* and stay in one split, because the rows of one key
must meet. Source: Paimon's `MergeTreeSplitGenerator`, `AppendOnlySplitGenerator` and `IntervalPartition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry, VectorLocation, rows_left

if TYPE_CHECKING:
    from lockgate.framework.store.schema.schema import TableSchema

T = TypeVar("T")

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
        return sum(file.file_size for file in self.files)


@dataclass(frozen=True)
class Section:
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
    for entry in entries:
        grouped.setdefault((entry.partition, entry.bucket), []).append(entry)
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
    return [Section((entry,), merge=False) for entry in entries]


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
    path_of: Callable[[ManifestEntry], str],
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
        target = 1 if merge and merge_apart else target_size
        for packed in _pack(chosen, lambda section: section.size(open_cost), target):
            entries = [entry for section in packed for entry in section.entries]
            splits.append(
                Split(
                    partition=partition,
                    bucket=entries[0].bucket,
                    files=tuple(entry.file for entry in entries),
                    paths=tuple(path_of(entry) for entry in entries),
                    merge=merge,
                    vectors=tuple(entry.vector for entry in entries),
                )
            )
    return splits


def _pack(items: Sequence[T], weight: Callable[[T], int], target: int) -> Iterator[list[T]]:
    packed: list[T] = []
    total = 0
    for item in items:
        if packed and total + weight(item) > target:
            yield packed
            packed, total = [], 0
        packed.append(item)
        total += weight(item)
    if packed:
        yield packed
