"""Pruning of files without matches in a join, by comparing the indexed hashes of both columns."""

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
from lockgate.framework.store import TableHandle, confidential_in, indexed_fields, value_kind_of
from lockgate.framework.types import DataField, can_widen, parse_type
from lockgate.pushdown.index import PartName, Segment, SegmentPart, ValueKind, damage_named, distinct

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

# Keys of both sides; each takes 16 bytes during comparison, and 20 million take one or two seconds.
MAX_PAIRS = 20_000_000
# Reading this few files is faster than comparing. The connector has its own constant for this.
FEW_FILES = 8
# Kinds for which values are equal in Spark exactly if their keys are: not floats, which have two zeros.
_COMPARABLE_KINDS = frozenset(ValueKind) - {ValueKind.FLOAT, ValueKind.DOUBLE, ValueKind.MILLIS}


def joined_files(
    table: TableHandle, files: Sequence[CandidateFile], joined: Sequence[JoinedColumn]
) -> list[bool]:
    """Return which files may have a row with a match in each of these joins.

    The joins with the fewest keys come first, since they may leave few files for the others. A join excludes
    no file if the index does not cover the other side completely, or if there are too many keys. The other
    side is read only if both sides have an index.
    """
    mask = np.ones(len(files), np.bool_)
    if len(files) <= FEW_FILES:
        return mask.tolist()
    sides = (
        (_Side(table, join.column, files), _Side(join.other, join.other_column, join.other_files))
        for join in joined
    )
    indexed_sides = [
        (own, other)
        for own, other in sides
        if own.kind is not None and own.kind is other.kind and other.uses_index and own.parts
    ]
    indexed_sides.sort(key=lambda sides: sides[0].pairs + sides[1].pairs)
    for own, other in indexed_sides:
        if np.count_nonzero(mask) <= FEW_FILES or own.pairs + other.pairs > MAX_PAIRS:
            break
        keys = other.keys()
        if keys is not None:
            mask &= own.files_with(keys)
    return mask.tolist()


@dataclass
class _Side:
    """One side of a join: the files that a query reads of a table, and the join column."""

    table: TableHandle
    column: str
    files: Sequence[CandidateFile]

    @cached_property
    def field(self) -> DataField | None:
        schema = self.table.schema
        if self.column not in schema.field_names:
            return None
        field = schema.field(self.column)
        is_confidential = field.id in {path[0] for path in confidential_in(schema).keys}
        return None if is_confidential else field

    @cached_property
    def kind(self) -> ValueKind | None:
        """The kind of the column's values, None if equal values may have different keys."""
        value_kind = None if self.field is None else value_kind_of(self.field.type)
        return value_kind if value_kind in _COMPARABLE_KINDS else None

    @property
    def uses_index(self) -> bool:
        """Return whether the table's options let scans use an index of the column's values."""
        if self.field is None or not self.table.options.get_option(INDEX_READ):
            return False
        wanted = indexed_fields(self.table.schema)
        return any((each.kind, each.field.id) == (VALUES, self.field.id) for each in wanted)

    @cached_property
    def positions(self) -> dict[str, int]:
        return {file.path.rpartition("/")[2]: number for number, file in enumerate(self.files)}

    @cached_property
    def parts(self) -> list[tuple[Segment, SegmentPart]]:
        """The index parts with keys of the column's values."""
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
        # The hash of a decimal is that of its digits, which depend on the scale.
        has_same_keys = value_kind_of(written) is self.kind and written.scale == field.type.scale
        return has_same_keys and can_widen(written, field.type)

    @cached_property
    def pairs(self) -> int:
        """The number of pairs of key and block."""
        return sum(part.pairs for _, part in self.parts)

    def keys(self) -> Words | None:
        """Return the keys of the files, ascending; None if the index does not cover a file."""
        covered = np.zeros(len(self.files), np.bool_)
        found = [np.zeros(0, np.uint64)]
        for keys, at, own in self._postings():
            covered[own[own >= 0]] = True
            found.append(distinct(keys[own[at] >= 0]))
        return distinct(np.concatenate(found)) if covered.all() else None

    def files_with(self, keys: Words) -> Mask:
        """Return a mask of the files that may have one of the ascending `keys`."""
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
        """Yield for each readable part its keys, the file number of each key, and the query's index of each
        file.

        The index is -1 for files that the part does not cover or the query does not read.
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
