"""`index_advice`: what to index and to order rows by, from a sample of files and the searches that ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from lockgate.errors import ColumnNotFoundError, InputError, nearest
from lockgate.framework.access import Action
from lockgate.framework.index.database.blooms import BLOOM
from lockgate.framework.index.database.maintenance import collected
from lockgate.framework.index.database.order_advice import AdviceRow, advised_orders
from lockgate.framework.index.database.participant import named_segment
from lockgate.framework.index.database.searches import SEARCHES
from lockgate.framework.index.database.segment_collector import (
    SegmentCollector,
    keys_a_value,
    max_keys_per_row,
    part_name,
)
from lockgate.framework.index.database.segment_kinds import NGRAMS, VALUES
from lockgate.framework.index.database.words import WORDS
from lockgate.framework.plugins import plugins
from lockgate.framework.store import (
    IndexedField,
    ManifestEntry,
    Table,
    confidential_in,
    grant,
    indexed_fields,
    is_of_manifests,
    require_unrestricted,
)
from lockgate.framework.types import DataField
from lockgate.procedures import Int, ProcedureContext, TableName, TypedProcedure
from lockgate.pushdown.index import LEAST_PLACES, MOST_DENSITY, Segment, merge_segments, segment_of

_FILES = 8
_TOO_DISTINCT = "too many values come once"
_EVERYWHERE = "most blocks have most values"
_PAYS = "few blocks have a value"
# The operators that a kind answers; those of plugins may answer any.
_EQUAL = frozenset({"EQ", "EQ_NULL_SAFE", "IN"})
_TEXTS = frozenset({"CONTAINS", "STARTS_WITH", "ENDS_WITH", "LIKE", "ILIKE", "RLIKE", "MATCH"})
_ANSWERS = {VALUES: _EQUAL, BLOOM: _EQUAL, NGRAMS: _EQUAL | _TEXTS, WORDS: frozenset({"MATCH"})}
# How long a call waits for the counts of searches that have just been planned, in seconds.
_WAIT = 2.0


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    columns: Annotated[list[str] | None, "the columns (default: all that can be indexed)"] = None
    files: Annotated[Int, "the number of files to read"] = _FILES


class IndexAdvice(TypedProcedure[_Arguments, AdviceRow]):
    """Estimate what indexing or ordering a table by its columns would cost and save.

    Next to that it says which of the searches of this process would have used it, and by which columns rows
    would best be ordered. Nothing is written. Opens files strictly; columns that are encrypted or divide the
    table are left out. The figures are of stored rows, so its caller needs SELECT on the columns, and must
    see all rows and values.
    """

    name = "index_advice"
    needs_all_rows = False  # but those of its columns, as `call` checks
    right: ClassVar[Action | None] = None

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[AdviceRow]:
        """Estimate; one row for each kind and column, what pays first: by bytes saved, then by size."""
        table, wanted = context.table(arguments.table), arguments.files
        if wanted < 1:
            raise InputError(f"files must be at least 1, not {wanted}")
        decision = grant(table, Action.SELECT, arguments.columns or table.schema.field_names)
        require_unrestricted(table, decision, "index_advice")
        candidates = list(_candidates(table, arguments.columns))
        live = table.manifests.live_files(table.latest_snapshot())
        sample = _sample(live, wanted)
        if not (candidates and sample):
            return []
        segment = _measured(table, candidates, sample)
        read = sum(entry.file.file_size for entry in sample)
        scale = sum(entry.file.file_size for entry in live) / read
        there = {part_name(each) for each in indexed_fields(table.schema)}
        found = [_Estimate.of(each, segment, read, max_keys_per_row(table, each.kind)) for each in candidates]
        plugins().events.flush(_WAIT)
        rows = [each.row(table, is_indexed=part_name(each.indexed) in there, scale=scale) for each in found]
        rows += advised_orders(table, live, arguments.columns)
        return sorted(rows, key=_what_pays_first)


def _what_pays_first(row: AdviceRow) -> tuple[bool, int, int]:
    return (not row.is_advised, -row.saved_bytes, row.expected_bytes)


def _candidates(table: Table, columns: Sequence[str] | None) -> Iterator[IndexedField]:
    for name in columns or ():
        if name not in table.schema.field_names:
            hint = nearest(name, table.schema.field_names)
            raise ColumnNotFoundError(f"table {table.identifier} has no column {name!r}{hint}")
    left_out = {*confidential_in(table.schema).top_level(table.schema), *table.schema.partition_keys}
    for field in table.schema.fields:
        if field.name not in left_out and (columns is None or field.name in columns):
            yield from _kinds_of(field)


def _kinds_of(field: DataField) -> Iterator[IndexedField]:
    for name, kind in sorted(plugins().index_kinds().items()):
        if not is_of_manifests(kind) and kind.accepts(field.type):
            yield IndexedField(name, field, chosen=False)


def _sample(live: Sequence[ManifestEntry], count: int) -> list[ManifestEntry]:
    """Return some files, evenly spread over the order in which they were written."""
    chosen = np.linspace(0, len(live) - 1, min(count, len(live))).astype(int)
    return [live[number] for number in dict.fromkeys(chosen.tolist())]


def _measured(table: Table, candidates: Sequence[IndexedField], sample: Sequence[ManifestEntry]) -> Segment:
    """Return the segment that the sample would have."""
    collector = SegmentCollector(table, candidates)
    made = [named_segment(collected(table, entry, collector), entry.file.file_name) for entry in sample]
    data = merge_segments(made)
    assert data is not None, "the sample has files"
    return segment_of(data, "a sample")


@dataclass(frozen=True)
class _Estimate:
    """What one kind of index says of a column of the sample; `size` in bytes of `read` bytes of data."""

    indexed: IndexedField
    size: int
    read: int
    distinct: float
    pruned: float
    reason: str

    @classmethod
    def of(cls, indexed: IndexedField, segment: Segment, read: int, most_keys: float) -> _Estimate:
        part = segment.parts[part_name(indexed)]
        content, places = part.content(), segment.files.places
        keys = len(np.unique(content.keys))
        a_row = len(content.keys) / max(1, int(segment.files.rows.sum()))
        pruned = 1 - len(content.keys) / (keys * places) if keys else 0.0
        reason = _PAYS
        if a_row > most_keys:
            reason = _TOO_DISTINCT
        elif not keys or (places >= LEAST_PLACES and pruned < 1 - MOST_DENSITY):
            reason = _EVERYWHERE
        return cls(indexed, part.size, read, a_row / keys_a_value(indexed.kind), pruned, reason)

    @property
    def is_advised(self) -> bool:
        return self.reason == _PAYS

    def row(self, table: Table, *, is_indexed: bool, scale: float) -> AdviceRow:
        share = self.size / self.read
        kind, name = self.indexed.kind, self.indexed.field.name
        numbers = (round(self.distinct, 6), round(self.pruned, 6), int(self.size * scale), round(share, 6))
        ran = SEARCHES.of(table.location, name, _ANSWERS.get(kind))
        saved = 0 if is_indexed else int(ran.size * self.pruned)
        advice = (self.is_advised, self.reason)
        return AdviceRow(kind, name, is_indexed, *numbers, *advice, ran.searches, ran.size, saved)
