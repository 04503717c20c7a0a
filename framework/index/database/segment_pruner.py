"""Pruning of files and blocks of rows by the index database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lockgate.errors import CorruptFileError
from lockgate.framework.index.database.bounds import skipped_manifests
from lockgate.framework.index.database.index_segments import opened, report_damage, segment_entries
from lockgate.framework.index.database.joins import joined_files
from lockgate.framework.index.database.kind_versions import kind_of
from lockgate.framework.plugins import (
    AskedKeys,
    CandidateFile,
    FileSet,
    JoinedColumn,
    SkippedManifests,
    plugins,
)
from lockgate.framework.store import ManifestFileMeta, TableHandle, TableSchema, confidential_in
from lockgate.framework.types import DataField, Kind, can_widen, parse_type
from lockgate.pushdown import Comparison, Op, Predicate, with_literals
from lockgate.pushdown.index import PartName, Segment, SegmentPart, damage_named, matching_ranges

Mask = npt.NDArray[np.bool_]


class ByIndex:
    """Skips files, and rows of files, that have no match by the index database.

    Files that no segment covers are kept. Missing or damaged segments are reported and ignored. `note` has
    the number of segments.
    """

    name = "index"

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self.note = ""
        self._last_matches: _SegmentMatches | None = None

    def keep_files(self, predicate: Predicate, files: FileSet) -> Mask | None:
        """Return which files of a snapshot may have a match."""
        matches = self._matches(predicate, files.index_manifest, files.read_schema_id)
        mask = np.ones(len(files), np.bool_)
        for segment, places in matches.found():
            at, numbers = files.positions(segment.name, segment.files.numbers.get)
            mask[at] &= segment.files.files_with(places)[numbers]
        self.note = matches.note
        return None if mask.all() else mask

    def manifests(
        self,
        predicate: Predicate,
        schema: TableSchema,
        manifests: Sequence[ManifestFileMeta],
        index_manifest: str | None,
    ) -> SkippedManifests | None:
        """Return the manifests without a match, by their column bounds."""
        return skipped_manifests(self._table, predicate, schema, manifests, index_manifest)

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> list[bool]:
        """Return for each file whether it may have a match."""
        return [self._places(predicate, file) is not _NO_ROWS for file in files]

    def joins(self, files: Sequence[CandidateFile], joined: Sequence[JoinedColumn]) -> list[bool]:
        """Return which files may have a row with a match in each of these joins."""
        return joined_files(self._table, files, joined)

    def rows(self, predicate: Predicate, file: CandidateFile) -> BitMap | None:
        """Return the rows of a file that may match, None if all may."""
        places = self._places(predicate, file)
        return BitMap() if places is _NO_ROWS else places

    def _places(self, predicate: Predicate, file: CandidateFile) -> BitMap | None:
        """Return the rows that may match, None if all may, `_NO_ROWS` if none does."""
        name, rows = file.path.rpartition("/")[2], None
        schema_id = self._table.schema.id if file.read_schema_id is None else file.read_schema_id
        for segment, places in self._matches(predicate, file.index_manifest, schema_id).found():
            number = segment.files.numbers.get(name)
            if number is not None:
                own = segment.files.rows_of(number, places)
                rows = own if rows is None else rows & own
        if rows is None or len(rows) == file.rows:
            return None
        return rows or _NO_ROWS

    def _matches(self, predicate: Predicate, manifest: str | None, schema_id: int) -> _SegmentMatches:
        matches = self._last_matches
        if matches is None or not matches.is_of(predicate, manifest, schema_id):
            table = self._table
            schema = table.schema if schema_id == table.schema.id else table.schema_of(schema_id)
            matches = self._last_matches = _SegmentMatches(table, schema, predicate, manifest)
        return matches


_NO_ROWS = BitMap()


@dataclass
class _SegmentMatches:
    """The places of each segment of a snapshot that may match a predicate, computed on first use."""

    table: TableHandle
    schema: TableSchema
    predicate: Predicate
    manifest: str | None
    note: str = ""
    _found: list[tuple[Segment, BitMap]] | None = None
    _keys: dict[tuple[int, str, str], AskedKeys | None] = field(default_factory=dict)

    def is_of(self, predicate: Predicate, manifest: str | None, schema_id: int) -> bool:
        return self.predicate is predicate and (self.manifest, self.schema.id) == (manifest, schema_id)

    def found(self) -> list[tuple[Segment, BitMap]]:
        if self._found is None:
            self._found = list(self._of_segments())
        return self._found

    def _of_segments(self) -> Iterator[tuple[Segment, BitMap]]:
        entries = segment_entries(self.table, self.manifest)
        lost = 0
        for entry in entries:
            segment = opened(self.table, entry)
            if segment is None:
                lost += 1
                continue
            try:
                places = self._places(segment)
            except (CorruptFileError, FileNotFoundError) as error:
                report_damage(segment.name, error)
                lost += 1
                continue
            if places is not None:
                yield segment, places
        self.note = f"{len(entries)} segments{f', {lost} of them damaged' if lost else ''}" if entries else ""

    def _places(self, segment: Segment) -> BitMap | None:
        with damage_named(segment.name):
            return matching_ranges(self._normalized, lambda each: self._matching_places(each, segment))

    @cached_property
    def _normalized(self) -> Predicate:
        """The predicate with its required literals; its comparisons live as long as this object."""
        return with_literals(self.predicate)

    def _matching_places(self, comparison: Comparison, segment: Segment) -> BitMap | None:
        """Return the places of a segment where a comparison may be true, None if unknown."""
        found: BitMap | None = None
        column = self._field(comparison)
        for name, part in segment.parts.items() if column is not None else ():
            if column is not None and _fits(name, column):
                places = part.uncovered | self._of_part(comparison, name, part)
                found = places if found is None else found & places
        return found

    def _field(self, comparison: Comparison) -> DataField | None:
        if len(comparison.field) > 1:
            return None
        found = self.schema.field(comparison.field[0])
        return None if found.id in self._confidential_ids or found.type.kind is Kind.CHAR else found

    @cached_property
    def _confidential_ids(self) -> set[int | str]:
        """The columns that are encrypted by the schema of the query or of the table."""
        return {path[0] for each in (self.schema, self.table.schema) for path in confidential_in(each).keys}

    def _of_part(self, comparison: Comparison, name: PartName, part: SegmentPart) -> BitMap:
        if comparison.op is Op.IS_NOT_NULL:
            return part.values
        valid = any(literal.is_valid for literal in comparison.literals)
        if comparison.op is Op.IS_NULL or (comparison.op is Op.EQ_NULL_SAFE and not valid):
            return part.nulls
        if not valid:
            return BitMap()  # a comparison with only null literals is never true
        lookup_keys = self._keys_of(comparison, name)
        if lookup_keys is None:
            return part.values
        found = [part.places(each.keys, every=each.every) for each in (lookup_keys, *lookup_keys.others)]
        return BitMap.union(*found)

    def _keys_of(self, comparison: Comparison, name: PartName) -> AskedKeys | None:
        # `_normalized` keeps the comparison alive, so its id is unique.
        key = (id(comparison), name.kind, name.type)
        if key not in self._keys:
            kind = kind_of(name)
            assert kind is not None, "other parts were skipped"
            lookup_keys = plugins().index_kinds()[kind].lookup_keys
            self._keys[key] = lookup_keys(comparison, parse_type(name.type))
        return self._keys[key]


def _fits(name: PartName, column: DataField) -> bool:
    """Return whether a part is of a column, and its type is still compatible."""
    if name.field != column.id or kind_of(name) is None:
        return False
    written = parse_type(name.type)
    return written == column.type.with_nullable(True) or can_widen(written, column.type)
