"""Manifests and manifest lists on disk, with a cache of parsed ones, which never change."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from lockgate.errors import CorruptFileError
from lockgate.framework.io import FileSystem
from lockgate.framework.store.codec.avro import write_container
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.manifests.gc_pause import paused_collector
from lockgate.framework.store.manifests.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    live_entries,
)
from lockgate.framework.store.manifests.manifest_records import (
    ENTRY_SCHEMA,
    MANIFEST_META_SCHEMA,
    EntryCodec,
    SchemaOf,
    checked,
)
from lockgate.framework.store.manifests.metadata_records import read_records
from lockgate.framework.store.manifests.parsed_cache import ParsedCache
from lockgate.framework.store.metadata.paths import TablePaths
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.trust import check_file_name
from lockgate.framework.store.schema.schema import TableSchema

T = TypeVar("T")

# About 1 KB an entry: parsed manifests may take a sixteenth of the machine's memory in a process. A snapshot
# of more files than that is parsed again by each plan, which takes 20 s for a million.
_ENTRY_BYTES = 1024
_CACHED_ENTRIES = max(200_000, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16 // _ENTRY_BYTES)

ManifestFilter = Callable[[ManifestFileMeta], bool]


_lists: ParsedCache[str, tuple[ManifestFileMeta, ...]] = ParsedCache(_CACHED_ENTRIES)
_manifests: ParsedCache[str, FileTable] = ParsedCache(_CACHED_ENTRIES)
# The manifests of a snapshot put together: pointers to what the cache above holds, and columns next to them.
_snapshots: ParsedCache[tuple[str, ...], FileTable] = ParsedCache(_CACHED_ENTRIES)


class ManifestFiles:
    """Reads and writes the manifests and manifest lists of one table."""

    def __init__(
        self, file_system: FileSystem, paths: TablePaths, schema: TableSchema, schema_of: SchemaOf
    ) -> None:
        self._file_system = file_system
        self._paths = paths
        self._schema = schema
        self._codec = EntryCodec(schema, schema_of)
        self._partition_count = len(schema.partition_keys)

    def read_manifest(self, meta: ManifestFileMeta) -> tuple[ManifestEntry, ...]:
        """Return the entries of a manifest; CorruptFileError if it is missing, truncated or damaged."""
        return self.file_table(meta).entries

    def read_list(self, name: str, size: int | None = None) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of a list; raises as `read_manifest`."""
        uri = self._uri(name)
        found = _lists.get(uri)
        if found is None:
            found = self._parsed(name, size, self._meta)
            _lists.put(uri, found)
        return found

    def file_table(self, meta: ManifestFileMeta) -> FileTable:
        """Return the entries of a manifest as a table; raises as `read_manifest`."""
        uri = self._uri(meta.file_name)
        found = _manifests.get(uri)
        if found is None:
            found = FileTable(self._parsed(meta.file_name, meta.file_size, self._entry))
            _manifests.put(uri, found)
        return found

    def _entry(self, record: dict[str, Any], path: str) -> ManifestEntry:
        entry = self._codec.from_record(record, path)
        checked(lambda: self._paths.check_entry(entry), path)
        return entry

    def _meta(self, record: dict[str, Any], path: str) -> ManifestFileMeta:
        meta = self._codec.meta_from_record(record, path)
        checked(lambda: check_file_name(meta.file_name, "a manifest"), path)
        return meta

    def _uri(self, name: str) -> str:
        return self._file_system.uri(self._paths.manifest(name))

    def _parsed(
        self, name: str, size: int | None, parse: Callable[[dict[str, Any], str], T]
    ) -> tuple[T, ...]:
        path = self._paths.manifest(name)
        with paused_collector():
            records = read_records(self._content(path, size), path)
            return tuple(parse(record, path) for record in records)

    def _content(self, path: str, size: int | None) -> bytes:
        try:
            data = self._file_system.read_bytes(path)
        except FileNotFoundError:
            raise CorruptFileError(
                f"{path} is missing; either its snapshot expired while it was read, or the table is damaged"
            ) from None
        if size is not None and len(data) != size:
            raise CorruptFileError(f"{path} has {len(data)} bytes where {size} were written; it was cut off")
        return data

    def manifests(self, snapshot: Snapshot) -> list[ManifestFileMeta]:
        """Return all manifests of a snapshot in order, those of its own changes last."""
        return [*self.base_manifests(snapshot), *self.delta_manifests(snapshot)]

    def base_manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of everything before a snapshot."""
        return self.read_list(snapshot.base_manifest_list, snapshot.base_manifest_list_size)

    def delta_manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of a snapshot's own changes."""
        return self.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)

    def changelog_manifests(self, snapshot: Snapshot) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of a snapshot's changelog; none if it has none."""
        name = snapshot.changelog_manifest_list
        return () if name is None else self.read_list(name, snapshot.changelog_manifest_list_size)

    def files(self, snapshot: Snapshot, unopened: Collection[str] = ()) -> FileTable:
        """Return the entries of all manifests of a snapshot in order; its mask `live` are the data files.

        Manifests named in `unopened` are left out.
        """
        metas = [meta for meta in self.manifests(snapshot) if meta.file_name not in unopened]
        key = tuple(self._uri(meta.file_name) for meta in metas)
        found = _snapshots.get(key)
        if found is None:
            found = FileTable.joined([self.file_table(meta) for meta in metas])
            _snapshots.put(key, found)
        return found

    def live_files(
        self, snapshot: Snapshot | None, manifest_filter: ManifestFilter | None = None
    ) -> list[ManifestEntry]:
        """Return the data files of a snapshot in the order they were committed.

        `manifest_filter` may refuse a manifest only if none of its partitions are wanted, since the deletion
        of a file may be in another manifest than its addition.
        """
        if snapshot is None:
            return []
        if manifest_filter is None:
            files = self.files(snapshot)
            return files.select(files.live)
        wanted = (
            meta for meta in self.manifests(snapshot) if manifest_filter is None or manifest_filter(meta)
        )
        return live_entries(entry for meta in wanted for entry in self.read_manifest(meta))

    def delta_entries(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Return the changes that a snapshot made itself, additions and deletions."""
        return [entry for meta in self.delta_manifests(snapshot) for entry in self.read_manifest(meta)]

    def write_manifest(self, entries: Sequence[ManifestEntry]) -> ManifestFileMeta:
        """Store a manifest under a new name and return its description."""
        name = f"manifest-{uuid.uuid4()}-0"
        size = self._write(name, ENTRY_SCHEMA, (self._codec.to_record(entry) for entry in entries))
        added = sum(entry.kind is FileKind.ADD for entry in entries)
        buckets = [entry.bucket for entry in entries]
        levels = [entry.file.level for entry in entries]
        return ManifestFileMeta(
            file_name=name,
            file_size=size,
            num_added_files=added,
            num_deleted_files=len(entries) - added,
            partition_stats=partition_stats([entry.partition for entry in entries], self._partition_count),
            schema_id=self._schema.id,
            min_bucket=min(buckets, default=None),
            max_bucket=max(buckets, default=None),
            min_level=min(levels, default=None),
            max_level=max(levels, default=None),
        )

    def write_list(self, metas: Iterable[ManifestFileMeta]) -> tuple[str, int]:
        """Store a manifest list under a new name; return the name and its size."""
        name = f"manifest-list-{uuid.uuid4()}-0"
        return name, self._write(name, MANIFEST_META_SCHEMA, map(self._codec.meta_to_record, metas))

    def _write(self, name: str, schema: Any, records: Iterable[dict[str, Any]]) -> int:
        data = write_container(schema, records)
        self._file_system.write_new(self._paths.manifest(name), data)
        return len(data)

    def delete(self, name: str) -> bool:
        """Delete a manifest or a list; False if it did not exist."""
        return self._file_system.delete(self._paths.manifest(name))


def partition_stats(partitions: Sequence[tuple[Any, ...]], count: int) -> SimpleStats:
    """Return the smallest and largest value and the nulls of each of `count` partition columns."""
    distinct = set(partitions)
    columns = [[partition[index] for partition in distinct] for index in range(count)]
    present = [[value for value in column if value is not None] for column in columns]
    # NaN has no place in an order, so nothing is said of a column that holds it.
    ordered = [[] if any(value != value for value in values) else values for values in present]
    nulls = tuple(sum(partition[index] is None for partition in partitions) for index in range(count))
    minima = tuple(min(values, default=None) for values in ordered)
    return SimpleStats(minima, tuple(max(values, default=None) for values in ordered), nulls)


def partitions_in(partitions: Collection[tuple[Any, ...]]) -> ManifestFilter:
    """Make a filter that keeps the manifests which can hold files of one of `partitions`."""
    return lambda meta: any(_may_hold(meta, partition) for partition in partitions)


def _may_hold(meta: ManifestFileMeta, partition: tuple[Any, ...]) -> bool:
    stats = meta.partition_stats
    columns = zip(partition, stats.min, stats.max, stats.null_counts, strict=False)
    return all(_may_be(value, low, high, nulls) for value, low, high, nulls in columns)


def _may_be(value: Any, low: Any, high: Any, nulls: int | None) -> bool:
    if value is None:
        return nulls != 0
    # A bound that is unknown, or has no order (NaN), excludes nothing.
    return low is None or high is None or value != value or low <= value <= high
