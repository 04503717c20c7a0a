"""Files without a partner in a join: the sorted hashes of both columns are compared, and no row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lockgate.errors import CorruptFileError
from lockgate.framework.index.database.index_segments import opened, report_damage, segment_entries
from lockgate.framework.index.database.kind_versions import kind_of
from lockgate.framework.index.database.segment_kinds import VALUES
from lockgate.framework.options import INDEX_READ
from lockgate.framework.plugins import CandidateFile, JoinedColumn
from lockgate.framework.store import (
    TableHandle,
    can_widen,
    confidential_in,
    indexed_fields,
    value_kind_of,
)
from lockgate.framework.types import DataField, parse_type
from lockgate.pushdown.index import PartName, Segment, SegmentPart, ValueKind, damage_named, distinct

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

# Keys of both sides, of which each takes 16 bytes while they are compared: 20 million take a second or two.
MOST_PAIRS = 20_000_000
# Fewer files are read sooner. The connector does not ask about a scan of so few, by a number of its own.
FEW_FILES = 8
# Equal values of these kinds have equal hashes, and Spark compares them as they are: floats have two zeros,
# and the texts of a CHAR are padded.
_ALIKE = frozenset(ValueKind) - {ValueKind.FLOAT, ValueKind.DOUBLE, ValueKind.MILLIS}


def joined_files(
    table: TableHandle, files: Sequence[CandidateFile], joined: Sequence[JoinedColumn]
) -> list[bool]:
    """Return which files may have a row that finds a partner in each of some joins.

    The joins with the fewest keys come first, since they may leave few files for the others. A join says
    nothing if the database lacks a file of the other side, or if there are too many keys. The files of the
    other side are only looked at if both sides have an index.
    """
    left = np.ones(len(files), np.bool_)
    if len(files) <= FEW_FILES:
        return left.tolist()
    sides = (
        (_Side(table, each.column, files), _Side(each.other, each.other_column, each.other_files))
        for each in joined
    )
    compared = [
        (own, other)
        for own, other in sides
        if own.kind is not None and own.kind is other.kind and other.is_looked_up and own.parts
    ]
    compared.sort(key=lambda sides: sides[0].pairs + sides[1].pairs)
    for own, other in compared:
        if np.count_nonzero(left) <= FEW_FILES or own.pairs + other.pairs > MOST_PAIRS:
            break
        keys = other.keys()
        if keys is not None:
            left &= own.having(keys)
    return left.tolist()


@dataclass
class _Side:
    """The files that a query reads of a table, and the column that it joins by."""

    table: TableHandle
    column: str
    files: Sequence[CandidateFile]

    @cached_property
    def field(self) -> DataField | None:
        schema = self.table.schema
        if self.column not in schema.field_names:
            return None
        found = schema.field(self.column)
        is_secret = found.id in {path[0] for path in confidential_in(schema).keys}
        return None if is_secret else found

    @cached_property
    def kind(self) -> ValueKind | None:
        """The kind of the column's values, None if those of two tables cannot be compared."""
        found = None if self.field is None else value_kind_of(self.field.type)
        return found if found in _ALIKE else None

    @property
    def is_looked_up(self) -> bool:
        """Return whether the table's options have scans use an index of the column's values."""
        if self.field is None or not self.table.options.get_option(INDEX_READ):
            return False
        wanted = indexed_fields(self.table.schema)
        return any((each.kind, each.field.id) == (VALUES, self.field.id) for each in wanted)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {file.path.rpartition("/")[2]: number for number, file in enumerate(self.files)}

    @cached_property
    def parts(self) -> list[tuple[Segment, SegmentPart]]:
        """The parts of the database that have the column's values as they are compared."""
        if self.field is None or not self.files:
            return []
        entries = segment_entries(self.table, self.files[0].index_manifest)
        found = [segment for entry in entries if (segment := opened(self.table, entry)) is not None]
        return [
            (segment, part)
            for segment in found
            for name, part in segment.parts.items()
            if self._has_values(name)
        ]

    def _has_values(self, name: PartName) -> bool:
        field = self.field
        if field is None or (kind_of(name), name.field) != (VALUES, field.id):
            return False
        written = parse_type(name.type)
        # The hash of a decimal is that of its digits, which another scale changes.
        alike = value_kind_of(written) is self.kind and written.scale == field.type.scale
        return alike and can_widen(written, field.type)

    @cached_property
    def pairs(self) -> int:
        """The number of keys, each counted for each block that has it."""
        return sum(part.pairs for _, part in self.parts)

    def keys(self) -> Words | None:
        """Return the keys in the files, ascending; None if one of the files is not covered."""
        covered = np.zeros(len(self.files), np.bool_)
        found = [np.zeros(0, np.uint64)]
        for keys, at, own in self._postings():
            covered[own[own >= 0]] = True
            found.append(distinct(keys[own[at] >= 0]))
        return distinct(np.concatenate(found)) if covered.all() else None

    def having(self, keys: Words) -> Mask:
        """Return which files may have one of some ascending keys."""
        left = np.ones(len(self.files), np.bool_)
        for own_keys, at, own in self._postings():
            there = np.zeros(len(own), np.bool_)
            if len(keys):
                near = np.minimum(np.searchsorted(keys, own_keys), len(keys) - 1)
                there[at[keys[near] == own_keys]] = True
            read = own >= 0
            left[own[read]] &= there[read]
        return left

    def _postings(self) -> Iterator[tuple[Words, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield of each sound part its keys, the number of the file of each, and which of the files that is.

        Files that the part does not cover, or that the query does not read, are -1.
        """
        for segment, part in self.parts:
            try:
                with damage_named(segment.name):
                    content = part.content()
            except (CorruptFileError, FileNotFoundError) as error:
                report_damage(segment.name, error)
                continue
            places = content.places.astype(np.int64)
            at = np.searchsorted(segment.files.starts, places, "right") - 1
            own = np.full(len(segment.files.names), -1)
            covered = np.asarray(content.covered.to_array(), np.int64)
            own[covered] = [self.positions.get(segment.files.names[number], -1) for number in covered]
            yield content.keys, at, own
