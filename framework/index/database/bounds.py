"""The kind `bounds`: least and greatest values of columns in whole manifests, written by each commit.

A commit keeps those of earlier manifests, and adds those of manifests that it writes and of a few others.
Names of manifests are never used twice, so none gets wrong. A manifest that another engine wrote has none,
and is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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
)
from lockgate.framework.store.codec.binary_row import encode_row
from lockgate.framework.store.manifests.column_bounds import may_match_files, scale_of
from lockgate.framework.types import DataField, DataType
from lockgate.pushdown import Comparison, Predicate, with_literals

if TYPE_CHECKING:
    from lockgate.framework.store import CommitRequest

BOUNDS = "bounds"
FILE_KIND = "lockgate-manifests"
# A commit opens manifests of others up to so many files: about half a second.
_MOST_FILES = 20_000
_MOST_KNOWN = 200_000


class Bounds:
    """Least and greatest values in manifests: comparisons by `=`, IN, `<`, `<=`, `>`, `>=`, IS NULL."""

    of_manifests = True

    def accepts(self, data_type: DataType) -> bool:
        """Return whether manifests tell bounds of a type."""
        return has_bounds(data_type)

    def chooses(self, data_type: DataType) -> bool:
        """Return whether `auto` takes columns of a type: numbers and times."""
        return has_bounds(data_type) and not data_type.is_string

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return no key: nothing is kept of single values."""
        return np.zeros(0, np.uint64)

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return None: keys decide nothing."""
        return None


# --- reading -------------------------------------------------------------------------------------


def skipped_manifests(
    table: TableHandle,
    predicate: Predicate,
    schema: TableSchema,
    manifests: Sequence[ManifestFileMeta],
    index_manifest: str | None,
) -> SkippedManifests | None:
    """Return the manifests that list no file with a match of a predicate, as `ManifestPruner` does."""
    bounds = bounds_in(table, index_manifest)
    if bounds is None:
        return None
    extents = [bounds.of(meta) for meta in manifests]
    secret = {path[0] for each in (schema, table.schema) for path in confidential_in(each).keys}

    def of_column(name: str) -> ColumnBounds | None:
        field = schema.field(name)
        if name in schema.partition_keys:
            return _of_partitions(schema.partition_keys.index(name), field, manifests)
        return None if field.id in secret else bounds.column(field, extents)

    may = may_match_files(with_literals(predicate), of_column, len(manifests))
    skipped = [each for each, keep in zip(extents, may, strict=True) if each is not None and not keep]
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
    """Return the bounds of a partition column, which lists of manifests tell."""
    if not has_bounds(field.type):
        return None
    extents = [partition_extent(meta, position, field.type) for meta in manifests]
    return columns_of_extents(extents, scale_of(field.type))


def bounds_entries(table: TableHandle, index_manifest: str | None) -> list[IndexEntry]:
    """Return the files of a snapshot that tell of its manifests."""
    return segment_entries(table, index_manifest, FILE_KIND)


def bounds_in(table: TableHandle, index_manifest: str | None) -> ManifestBounds | None:
    """Return the bounds of a snapshot's manifests."""
    return _bounds_among(table, bounds_entries(table, index_manifest))


def _bounds_among(table: TableHandle, entries: Sequence[IndexEntry]) -> ManifestBounds | None:
    """Return what the first sound file of the kind says; damaged ones are reported, and say nothing."""
    found = (_read(table, entry) for entry in entries)
    return next((each for each in found if each is not None), None)


def _read(table: TableHandle, entry: IndexEntry) -> ManifestBounds | None:
    path = index_path(table, entry)
    uri = table.file_system.uri(path)
    found = _parsed.get(uri)
    if found is None:
        try:
            data = table.file_system.read_bytes(path)
            if len(data) != entry.file_size:
                raise CorruptFileError(f"{path} has {len(data)} bytes where {entry.file_size} were written")
            parsed = read_bounds(data, path)
        except (CorruptFileError, FileNotFoundError) as error:
            report_damage(path, error)
            return None
        found = _parsed.put(uri, parsed, len(parsed) * (1 + len(parsed.types)))
    return found


_parsed: ImmutableCache[ManifestBounds] = ImmutableCache(_MOST_KNOWN)


# --- writing -------------------------------------------------------------------------------------


class BoundsParticipant:
    """Writes the bounds of the manifests of each snapshot, instead of those of the one before.

    A commit of index files alone opens every manifest without bounds, others only a few, and none
    if the table's writers are not to index.
    """

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._is_upkeep = False
        self._made: tuple[ManifestBounds, NewIndexFile] | None = None

    def prepare(self, request: CommitRequest) -> None:
        """Take in what kind of commit it is."""
        self._is_upkeep = request.index_files is not None

    def manifest_files(
        self, manifests: Sequence[ListedManifest], present: Sequence[IndexEntry]
    ) -> IndexFileChanges:
        """Return one file about the manifests of an attempt, none if nothing is new."""
        old = [entry for entry in present if entry.kind == FILE_KIND]
        fields = bounded_fields(self._table.schema)
        before = _bounds_among(self._table, old)
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
        return self._is_upkeep or self._table.options.get_option(table_options.INDEX_WRITE)

    def _file(self, bounds: ManifestBounds) -> NewIndexFile:
        # A further attempt on the same manifests takes the file of the one before.
        if self._made is None or self._made[0] != bounds:
            self._made = (bounds, NewIndexFile(FILE_KIND, write_bounds(bounds), len(bounds)))
        return self._made[1]

    def _extents(
        self, manifests: Sequence[ListedManifest], fields: Sequence[DataField], before: ManifestBounds | None
    ) -> tuple[ManifestExtents, ...]:
        left, extents = _MOST_FILES, list[ManifestExtents]()
        for listed in manifests:
            found = None if before is None else _as_before(before, listed.meta, fields)
            if found is None and listed.meta.num_deleted_files == 0 and self._writes:
                left -= listed.meta.num_added_files if listed.entries is None else 0
                if listed.entries is not None or left >= 0 or self._is_upkeep:
                    found = self._extents_of(listed, fields)
            if found is not None:
                extents.append(found)
        return tuple(extents)

    def _extents_of(self, listed: ListedManifest, fields: Sequence[DataField]) -> ManifestExtents | None:
        table = self._table
        entries = listed.entries
        try:
            files = table.manifests.file_table(listed.meta) if entries is None else FileTable(entries)
        except CorruptFileError as error:
            report_damage(listed.meta.file_name, error)
            return None
        types = table.schema.types_of(table.schema.partition_keys)
        return manifest_extents(listed.meta, files, fields, table.schema_of, partial(encode_row, types=types))

    def committed(self, snapshot: Snapshot) -> None:
        """Do nothing: the file is part of the snapshot."""

    def aborted(self) -> None:
        """Do nothing: the commit deletes what it wrote."""


def lacks_bounds(table: TableHandle, snapshot: Snapshot | None) -> bool:
    """Return whether a manifest of a snapshot could have bounds, and has none."""
    fields = bounded_fields(table.schema)
    if not fields or snapshot is None:
        return False
    bounds = bounds_in(table, snapshot.index_manifest)
    return any(
        meta.num_deleted_files == 0 and (bounds is None or _as_before(bounds, meta, fields) is None)
        for meta in table.manifests.manifests(snapshot)
    )


def _as_before(
    before: ManifestBounds, meta: ManifestFileMeta, fields: Sequence[DataField]
) -> ManifestExtents | None:
    """Return the bounds of some columns in a manifest; None unless all of them are there."""
    found = before.of(meta)
    if found is None or not all(
        before.covers_current_type(field) and field.id in found.extents for field in fields
    ):
        return None
    return found.only({field.id for field in fields})
