"""The files that a scan has not skipped yet, and the facts about the query for its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lockgate.framework.store.manifests.file_table import FileTable, Mask
from lockgate.framework.store.merge.merge import MergePlan
from lockgate.framework.store.pruning.pruners import PartitionPruner
from lockgate.framework.store.pruning.split import Section, by_bucket, sections_of
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.pushdown import Count, Predicate, all_of, conjuncts, describe, reads_only

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

Buckets = list[list[Section]]


@dataclass(frozen=True)
class PruningQuestion:
    """A query's conditions on the stored rows of a table.

    `exact` are the filters that are asked of rows again, `late` those that are not (see `late_filters`).
    `hides`: a row filter is among them, which those whom it keeps from seeing rows must not be shown.
    `index_manifest` is that of the snapshot.
    """

    table: TableHandle
    schema: TableSchema
    merge_plan: MergePlan | None
    exact: Predicate
    late: Predicate
    hides: bool = False
    index_manifest: str | None = None

    @cached_property
    def predicate(self) -> Predicate:
        """All filters."""
        return all_of(self.exact, self.late)

    @cached_property
    def of_rows(self) -> Predicate:
        """The filters that partition columns do not answer alone."""
        parts = conjuncts(self.predicate)
        return all_of(*(part for part in parts if not reads_only(part, self.schema.partition_keys)))

    @cached_property
    def partitions(self) -> PartitionPruner:
        """Return what is left of the filters in each partition."""
        return PartitionPruner(self.schema, self.predicate)

    def schema_of(self, schema_id: int) -> TableSchema:
        """Return the schema of an id."""
        return self.schema if schema_id == self.schema.id else self.table.schema_of(schema_id)

    def is_composed(self, section: Section) -> bool:
        """Say whether rows of a section are put together of several, whose values bound nothing."""
        return section.merge and self.merge_plan is not None and not self.merge_plan.picks_rows

    @property
    def is_numbered(self) -> bool:
        """Say whether files with lower sequence numbers say nothing of keys that others have."""
        return not self.schema.sequence_fields and not (self.merge_plan and self.merge_plan.reads_all_rows)

    def text(self, asked: Sequence[Predicate]) -> str:
        """Describe what a step asks."""
        if self.hides:
            return "the row filter and the query's filters"
        return " AND ".join(describe(part) for part in asked)


class KeptFiles:
    """Some files of a snapshot: a mask of them, or whole sections."""

    def __init__(
        self, question: PruningQuestion, files: FileTable, mask: Mask, buckets: Buckets | None = None
    ) -> None:
        self.question = question
        self.files = files
        self.mask = mask
        self._buckets = buckets

    @cached_property
    def buckets(self) -> Buckets:
        """The sections of each bucket."""
        if self._buckets is not None:
            return self._buckets
        buckets = by_bucket(self.files.select(self.mask))
        return [sections_of(self.question.schema, bucket) for bucket in buckets]

    @property
    def stand_alone(self) -> bool:
        """Say whether each file can be read by itself: no step has put some together."""
        return self._buckets is None and not self.question.schema.has_primary_key

    def count(self) -> Count:
        """Count the files."""
        return self.files.count(self.mask)

    def masked(self, mask: Mask) -> KeptFiles:
        """Return the files of `mask`."""
        return KeptFiles(self.question, self.files, mask)

    def sections(self, buckets: Buckets) -> KeptFiles:
        """Return the files of some of the sections."""
        ids = {id(entry) for bucket in buckets for section in bucket for entry in section.entries}
        mask = self.mask.copy()
        chosen = np.flatnonzero(mask)
        entries = self.files.entries
        mask[chosen] = np.fromiter((id(entries[number]) in ids for number in chosen), np.bool_, len(chosen))
        return KeptFiles(self.question, self.files, mask, buckets)

    def matching(self, matching: Mask) -> KeptFiles:
        """Leave out files by their own rows; `matching` marks files that, by themselves, may have some.

        In a table with a primary key a section stays whole if one of its files matches: the file that is left
        out might have the newest row of a key. A section whose rows are put together of several always stays,
        since they may hold what no file holds.
        """
        if not self.question.schema.has_primary_key:
            return self.masked(self.mask & matching)
        ids = {id(entry) for entry in self.files.select(self.mask & matching)}
        buckets = [
            [section for section in bucket if self.question.is_composed(section) or _any_of(section, ids)]
            for bucket in self.buckets
        ]
        return self.sections([bucket for bucket in buckets if bucket])


def _any_of(section: Section, ids: set[int]) -> bool:
    return any(id(entry) in ids for entry in section.entries)
