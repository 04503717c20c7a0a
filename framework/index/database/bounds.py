"""The index kind `bounds`: minimum and maximum of columns in each manifest, written by each commit.

A commit keeps the bounds of earlier manifests, and adds those of manifests that it writes and of a few
others. Names of manifests are never reused, so bounds stay valid. Manifests of other engines have no bounds,
so scans open them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework import options as table_options
from lockgate.framework.index.database.index_segments import ImmutableCache, report_damage, segment_entries
from lockgate.framework.index.database.manifest_bounds import (
    ManifestBounds,
    ManifestExtents,
    columns_of_extents,
    has_bounds,
    manifest_extents,
    partition_extent,
    read_bounds,
    write_bounds,
)
from lockgate.framework.plugins import (
    AskedKeys,
    IndexFileChanges,
    ListedManifest,
    NewIndexFile,
    SkippedManifests,
)
from lockgate.framework.store import (
    ColumnBounds,
    FileTable,
    IndexEntry,
    ManifestFileMeta,
    Snapshot,
    TableHandle,
    TableSchema,
    bounded_fields,
    confidential_in,
    index_path,
    may_match_files,
)
from lockgate.framework.types import DataField, DataType, scale_of
from lockgate.pushdown import Comparison, Predicate, with_literals

if TYPE_CHECKING:
    from lockgate.framework.store import PreparedCommit

BOUNDS = "bounds"
FILE_KIND = "lockgate-manifests"
# A commit opens other engines' manifests with up to this many files, which takes about half a second.
_MAX_FILES = 20_000
_MAX_CACHED = 200_000


class Bounds:
    """Bounds of manifests, for `=`, IN, `<`, `<=`, `>`, `>=` and IS NULL."""

    of_manifests = True

    def accepts(self, data_type: DataType) -> bool:
        """Return whether manifests have bounds of a type."""
        return has_bounds(data_type)

    def chooses(self, data_type: DataType) -> bool:
        """Return whether `auto` selects columns of a type: numbers and times."""
        return has_bounds(data_type) and not data_type.is_string

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return no keys, since this kind has no entries for values."""
        return np.zeros(0, np.uint64)

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return None, since this kind does not use keys."""
        return None


# --- reading -------------------------------------------------------------------------------------


def skipped_manifests(
    table: TableHandle,
    predicate: Predicate,
    schema: TableSchema,
    manifests: Sequence[ManifestFileMeta],
    index_manifest: str | None,
) -> SkippedManifests | None:
    """Return the manifests whose files have no match of a predicate, as required by `ManifestPruner`."""
    bounds = bounds_in(table, index_manifest)
    if bounds is None:
        return None
    extents = [bounds.of(meta) for meta in manifests]
    confidential_ids = {path[0] for each in (schema, table.schema) for path in confidential_in(each).keys}

    def of_column(name: str) -> ColumnBounds | None:
        field = schema.field(name)
        if name in schema.partition_keys:
            return _of_partitions(schema.partition_keys.index(name), field, manifests)
        return None if field.id in confidential_ids else bounds.column(field, extents)

    keep_mask = may_match_files(with_literals(predicate), of_column, len(manifests))
    skipped = [each for each, keep in zip(extents, keep_mask, strict=True) if each is not None and not keep]
    return SkippedManifests(
        names=frozenset(each.name for each in skipped),
        files=sum(each.files for each in skipped),
        rows=sum(each.rows for each in skipped),
        bytes=sum(each.data_bytes for each in skipped),
        places=frozenset().union(*(each.places for each in skipped)),
    )


def _of_partitions(
    position: int, field: DataField, manifests: Sequence[ManifestFileMeta]
) -> ColumnBounds | None:
    """Return the bounds of a partition column, from the manifest list."""
    if not has_bounds(field.type):
        return None
    extents = [partition_extent(meta, position, field.type) for meta in manifests]
    return columns_of_extents(extents, scale_of(field.type))


def bounds_entries(table: TableHandle, index_manifest: str | None) -> list[IndexEntry]:
    """Return the index files of a snapshot with bounds of its manifests."""
    return segment_entries(table, index_manifest, FILE_KIND)


def bounds_in(table: TableHandle, index_manifest: str | None) -> ManifestBounds | None:
    """Return the bounds of a snapshot's manifests."""
    return _first_readable(table, bounds_entries(table, index_manifest))


def _first_readable(table: TableHandle, entries: Sequence[IndexEntry]) -> ManifestBounds | None:
    """Return the bounds of the first undamaged file; damaged files are reported and ignored."""
    bounds_of_files = (_read(table, entry) for entry in entries)
    return next((each for each in bounds_of_files if each is not None), None)


def _read(table: TableHandle, entry: IndexEntry) -> ManifestBounds | None:
    path = index_path(table, entry)
    uri = table.file_system.uri(path)
    bounds = _cache.get(uri)
    if bounds is None:
        try:
            data = table.file_system.read_bytes(path)
            if len(data) != entry.file_size:
                raise CorruptFileError(f"{path} has {len(data)} bytes where {entry.file_size} were written")
            new_bounds = read_bounds(data, path)
        except (CorruptFileError, FileNotFoundError) as error:
            report_damage(path, error)
            return None
        bounds = _cache.put(uri, new_bounds, len(new_bounds) * (1 + len(new_bounds.types)))
    return bounds


_cache: ImmutableCache[ManifestBounds] = ImmutableCache(_MAX_CACHED)


# --- writing -------------------------------------------------------------------------------------


class BoundsParticipant:
    """Writes the bounds of the manifests of each snapshot, replacing those of the previous snapshot.

    A commit that has only index files opens every manifest without bounds. Other commits open a few, or none
    if the table's options disable index writing.
    """

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._has_only_index_files = False
        self._last_file: tuple[ManifestBounds, NewIndexFile] | None = None

    def prepare(self, request: PreparedCommit) -> None:
        """Take the request, which determines whether it only has index files."""
        self._has_only_index_files = request.index_files is not None

    def manifest_files(
        self, manifests: Sequence[ListedManifest], present: Sequence[IndexEntry]
    ) -> IndexFileChanges:
        """Return one file with the bounds of an attempt's manifests; no changes if the bounds are the
        same.
        """
        old = [entry for entry in present if entry.kind == FILE_KIND]
        fields = bounded_fields(self._table.schema)
        before = _first_readable(self._table, old)
        names = frozenset(entry.file_name for entry in old)
        if not fields:
            return IndexFileChanges(removed=names)
        if not self._writes and (before is None or before.types.keys() <= {field.id for field in fields}):
            return IndexFileChanges()
        types = {field.id: field.type.with_nullable(True) for field in fields}
        bounds = ManifestBounds(types, self._extents(manifests, fields, before))
        if bounds == before and len(old) == 1:
            return IndexFileChanges()
        if not bounds.manifests:
            return IndexFileChanges(removed=names)
        return IndexFileChanges((self._file(bounds),), names)

    @property
    def _writes(self) -> bool:
        return self._has_only_index_files or self._table.options.get_option(table_options.INDEX_WRITE)

    def _file(self, bounds: ManifestBounds) -> NewIndexFile:
        # Another attempt with the same bounds reuses the file.
        if self._last_file is None or self._last_file[0] != bounds:
            self._last_file = (bounds, NewIndexFile(FILE_KIND, write_bounds(bounds), len(bounds)))
        return self._last_file[1]

    def _extents(
        self, manifests: Sequence[ListedManifest], fields: Sequence[DataField], before: ManifestBounds | None
    ) -> tuple[ManifestExtents, ...]:
        remaining, extents = _MAX_FILES, list[ManifestExtents]()
        for listed in manifests:
            manifest_bounds = None if before is None else _from_previous(before, listed.meta, fields)
            if manifest_bounds is None and listed.meta.num_deleted_files == 0 and self._writes:
                remaining -= listed.meta.num_added_files if listed.entries is None else 0
                if listed.entries is not None or remaining >= 0 or self._has_only_index_files:
                    manifest_bounds = self._extents_of(listed, fields)
            if manifest_bounds is not None:
                extents.append(manifest_bounds)
        return tuple(extents)

    def _extents_of(self, listed: ListedManifest, fields: Sequence[DataField]) -> ManifestExtents | None:
        table = self._table
        entries = listed.entries
        try:
            files = table.manifests.file_table(listed.meta) if entries is None else FileTable(entries)
        except CorruptFileError as error:
            report_damage(listed.meta.file_name, error)
            return None
        return manifest_extents(listed.meta, files, fields, table.schema_of, table.partition_bytes)

    def committed(self, snapshot: Snapshot) -> None:
        """Do nothing: the file is part of the snapshot."""

    def aborted(self) -> None:
        """Do nothing: the commit deletes its own files."""


def lacks_bounds(table: TableHandle, snapshot: Snapshot | None) -> bool:
    """Return whether a manifest of a snapshot lacks bounds that it could have."""
    fields = bounded_fields(table.schema)
    if not fields or snapshot is None:
        return False
    bounds = bounds_in(table, snapshot.index_manifest)
    return any(
        meta.num_deleted_files == 0 and (bounds is None or _from_previous(bounds, meta, fields) is None)
        for meta in table.manifests.manifests(snapshot)
    )


def _from_previous(
    previous: ManifestBounds, meta: ManifestFileMeta, fields: Sequence[DataField]
) -> ManifestExtents | None:
    """Return the previous bounds of columns in a manifest; None unless all columns have bounds."""
    previous_extents = previous.of(meta)
    if previous_extents is None or not all(
        previous.covers_current_type(field) and field.id in previous_extents.extents for field in fields
    ):
        return None
    return previous_extents.only({field.id for field in fields})
