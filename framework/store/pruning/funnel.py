"""The steps by which a scan leaves files out, in order: each is a `Pruner` of the files that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from lockgate.errors import CorruptFileError, PluginError
from lockgate.framework.plugins import CandidateFile, FilePruner, SetPruner, plugins
from lockgate.framework.store.manifests.column_bounds import (
    BoundsOf,
    ColumnBounds,
    may_match_files,
    partition_bounds,
    undecided_files,
)
from lockgate.framework.store.manifests.file_table import FileTable, Mask
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.pruning.candidates import CandidateFiles, candidate_of
from lockgate.framework.store.pruning.late_filters import with_newer_versions
from lockgate.framework.store.pruning.pruners import BucketPruner, PartitionPruner, ValuePruner
from lockgate.framework.store.pruning.scanned_files import KeptFiles, PruningQuestion
from lockgate.framework.store.pruning.split import Section
from lockgate.framework.store.pruning.topn import Buckets, extents_of, first_of_order, limited, positions_of
from lockgate.framework.types import Kind, is_bounded
from lockgate.pushdown import (
    AlwaysTrue,
    Predicate,
    Pruner,
    SortKey,
    all_of,
    columns_of,
    conjuncts,
    describe_field,
    reads_only,
    with_literals,
)

T = TypeVar("T")


def pruners_of(
    question: PruningQuestion, limit: int | None, order: Sequence[SortKey]
) -> list[Pruner[KeptFiles]]:
    """Return the steps of a query; those of plugins come after all that metadata tells by itself."""
    found: list[Pruner[KeptFiles]] = [*_of_places(question)]
    if not found:
        found.append(WholeSnapshot())
    if conjuncts(question.of_rows):
        found.append(ByStatistics(question))
        found += [ByPlugin(question, plugin, pruner) for plugin, pruner in plugins().pruners(question.table)]
    if limit is not None:
        found.append(ByOrder(question, limit, tuple(order)) if order else ByLimit(question, limit))
    return found


def _of_places(question: PruningQuestion) -> list[Pruner[KeptFiles]]:
    """Return the steps by which files lie where they lie, as far as the query has filters for them."""
    schema = question.schema
    every = conjuncts(question.predicate)
    exact, late = conjuncts(question.exact), conjuncts(question.late)
    keys = schema.trimmed_primary_keys if schema.has_primary_key else ()
    steps: list[Pruner[KeptFiles]] = []
    if asked := _about(every, schema.partition_keys):
        steps.append(ByPartition(question, asked))
    if asked := _about(every, schema.bucket_keys or None):
        steps.append(ByBucket(question, asked))
    if asked := _about(exact, keys or None):
        steps.append(ByKey(question, asked))
    if asked := _about(late, keys or None):
        steps.append(ByLateKey(question, asked))
    return steps


def _about(parts: Sequence[Predicate], columns: Sequence[str] | None) -> tuple[Predicate, ...]:
    """Return the filters that read one of `columns`, or no column at all; none if there are no columns."""
    if columns is None:
        return ()
    return tuple(
        part for part in parts if not columns_of(part) or any(path[0] in columns for path in columns_of(part))
    )


class WholeSnapshot:
    """The step of a query without filters of places, which shows how much the snapshot has."""

    name = "snapshot"
    by = ""

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Leave nothing out."""
        return kept


@dataclass(frozen=True)
class _FilterStep:
    """A step that asks some of the query's filters."""

    question: PruningQuestion
    asked: tuple[Predicate, ...]

    @property
    def by(self) -> str:
        """The filters."""
        return self.question.text(self.asked)


class ByPartition(_FilterStep):
    """Leaves out partitions by the values of their columns."""

    name: ClassVar[str] = "partitions"

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Leave out the files of partitions without matching rows."""
        return kept.masked(kept.files.where_partition(kept.mask, self.question.partitions.keeps_partition))


class ByBucket(_FilterStep):
    """Leaves out buckets that the values of the bucket key do not lead to."""

    name: ClassVar[str] = "buckets"

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Leave out the files of other buckets."""
        buckets = BucketPruner(self.question.schema, self.question.partitions)
        return kept.masked(kept.files.where_bucket(kept.mask, buckets.keeps))


class ByKey(_FilterStep):
    """Leaves out files by their ranges of keys, where rows that fail are dropped after the merge."""

    name: ClassVar[str] = "keys"

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Leave out files without matching keys, one by one."""
        return kept.masked(_with_keys(kept, self.question, all_of(*self.asked)))


class ByLateKey(ByKey):
    """Leaves out files by their ranges of keys, where nobody drops rows that fail."""

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Leave out files without matching keys, but those with newer rows of keys that are kept."""
        mask = _with_keys(kept, self.question, all_of(*self.asked))
        numbered = self.question.is_numbered
        return kept.masked(with_newer_versions(kept.files, kept.mask, mask, numbered=numbered))


def _with_keys(kept: KeptFiles, question: PruningQuestion, asked: Predicate) -> Mask:
    mask = kept.mask & _may_match(question, kept.files, asked, of_key=True)
    pruner = PartitionPruner(question.schema, asked)
    return kept.files.where(mask, ValuePruner(question.schema, question.table.schema_of, pruner).keeps_key)


def _may_match(question: PruningQuestion, files: FileTable, asked: Predicate, *, of_key: bool) -> Mask:
    return may_match_files(with_literals(asked), _bounds(question, files, of_key=of_key), len(files))


def _bounds(question: PruningQuestion, files: FileTable, *, of_key: bool) -> BoundsOf:
    schema, keys = question.schema, question.schema.trimmed_primary_keys

    def bounds(name: str) -> ColumnBounds | None:
        field = schema.field(name)
        if name in schema.partition_keys or (of_key and name not in keys):
            return None
        if not is_bounded(field.type):
            return None
        return files.bounds(field, question.schema_of, of_key=keys.index(name) if of_key else None)

    return bounds


class _OfRows:
    """A step that asks all filters of the rows of files."""

    def __init__(self, question: PruningQuestion) -> None:
        self._question = question

    @property
    def by(self) -> str:
        """The filters."""
        return self._question.text([self._question.of_rows])


class ByStatistics(_OfRows):
    """Leaves out files, or whole sections, by the least and greatest values of columns."""

    name = "statistics"

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Leave out what cannot have matching rows."""
        question = self._question
        possible = kept.mask & _may_match(question, kept.files, question.of_rows, of_key=False)
        pruner = ValuePruner(question.schema, question.table.schema_of, question.partitions)
        # One by one takes a hundred times as long: only where that may know more.
        single = possible & self._undecided(kept.files)
        return kept.matching((possible & ~single) | kept.files.where(single, pruner.keeps_file))

    def _undecided(self, files: FileTable) -> Mask:
        question = self._question
        # Filters of partition columns alone were asked before.
        of_values = [
            part
            for part in conjuncts(question.of_rows)
            if not reads_only(part, question.schema.partition_keys)
        ]
        bounds = _bounds(question, files, of_key=False)
        asked = with_literals(all_of(*of_values))
        found: Mask = undecided_files(asked, bounds, len(files)) | (files.rows == 0)
        return found


class ByPlugin(_OfRows):
    """Leaves out files, or whole sections, by what a plugin knows of them."""

    def __init__(self, question: PruningQuestion, plugin: str, pruner: FilePruner) -> None:
        super().__init__(question)
        self._plugin = plugin
        self._pruner = pruner

    @property
    def name(self) -> str:
        """The plugin's word."""
        return self._pruner.name

    @property
    def by(self) -> str:
        """The filters, and what the plugin says of its work."""
        note = getattr(self._pruner, "note", "")
        return f"{super().by} ({note})" if note else super().by

    def prune(self, kept: KeptFiles) -> KeptFiles:
        """Ask the plugin about all files that are kept; PluginError if it fails: nothing is guessed."""
        if isinstance(self._pruner, SetPruner):
            return self._prune_set(self._pruner, kept)
        chosen = np.flatnonzero(kept.mask)
        candidates = [_candidate(self._question, kept.files.entries[number]) for number in chosen]
        mask = kept.mask.copy()
        if candidates:
            mask[chosen] = self._answers(candidates)
        return kept.matching(mask)

    def _prune_set(self, pruner: SetPruner, kept: KeptFiles) -> KeptFiles:
        question = self._question
        if not kept.mask.any():
            return kept
        files = CandidateFiles(kept.files, question.index_manifest, question.schema.id)
        keeps = self._asked(lambda: pruner.keep_files(question.of_rows, files))
        if keeps is None:
            return kept
        if len(keeps) != len(files):
            raise self._failed(f"{len(keeps)} answers for {len(files)} files")
        return kept.matching(kept.mask & keeps)

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except CorruptFileError:
            raise  # it names the file
        except Exception as error:  # a plugin may raise anything
            raise self._failed(f"{type(error).__name__}: {error}") from error

    def _answers(self, candidates: Sequence[CandidateFile]) -> list[bool]:
        answers = self._asked(lambda: [*map(bool, self._pruner.keeps(self._question.of_rows, candidates))])
        if len(answers) != len(candidates):
            raise self._failed(f"{len(answers)} answers for {len(candidates)} files")
        return answers

    def _failed(self, reason: str) -> PluginError:
        return PluginError(
            f"plugin {self._plugin!r}: pruner {self.name!r} failed on table "
            f"{self._question.table.identifier}: {reason}",
            self._plugin,
        )


def _candidate(question: PruningQuestion, entry: ManifestEntry) -> CandidateFile:
    where = (entry.partition, entry.bucket, entry.file)
    return candidate_of(question.table, question.schema, *where, question.index_manifest)


class _LimitStep:
    """A step that leaves out what a LIMIT surely does not reach; `note` says what became of it."""

    def __init__(self, question: PruningQuestion, limit: int) -> None:
        self._question = question
        self._limit = limit
        self.note = ""

    def prune(self, kept: KeptFiles) -> KeptFiles | None:
        """Leave out sections beyond the limit; does not apply where a filter remains for the rows."""
        partitions = self._question.partitions
        if any(
            not isinstance(partitions.residual(bucket[0].entries[0].partition), AlwaysTrue)
            for bucket in kept.buckets
            if bucket
        ):
            self.note = "no file left out: a filter remains to be applied to rows"
            return None
        buckets = self._kept(kept)
        return kept if buckets is None else kept.sections(buckets)

    def _kept(self, kept: KeptFiles) -> Buckets | None:
        raise NotImplementedError


class ByLimit(_LimitStep):
    """Leaves out files once enough rows are kept."""

    name = "limit"

    @property
    def by(self) -> str:
        """The limit."""
        return f"LIMIT {self._limit}"

    def _kept(self, kept: KeptFiles) -> Buckets:
        self.note = "not guaranteed: the files kept may hold more rows"
        return limited(kept.buckets, self._limit)


class ByOrder(_LimitStep):
    """Leaves out files that cannot hold one of the first rows of an order."""

    name = "order"

    def __init__(self, question: PruningQuestion, limit: int, order: tuple[SortKey, ...]) -> None:
        super().__init__(question, limit)
        self._order = order

    @property
    def by(self) -> str:
        """The order and the limit."""
        return f"ORDER BY {', '.join(str(key) for key in self._order)} LIMIT {self._limit}"

    def _kept(self, kept: KeptFiles) -> Buckets | None:
        first = self._order[0]
        data_type = self._question.schema.field(first.field[0]).type
        if len(first.field) > 1 or data_type.kind is Kind.CHAR or not is_bounded(data_type):
            self.note = f"no file left out: statistics do not order {describe_field(first.field)}"
            return None
        left = self._first(kept, first)
        self.note = "not guaranteed: rows are to be sorted, and cut"
        if left is None:
            self.note = "no file left out: too few rows are known to come first"
        return left

    def _first(self, kept: KeptFiles, first: SortKey) -> Buckets | None:
        question, name = self._question, first.field[0]
        loose = question.is_composed if name not in question.schema.primary_keys else _never
        positions = positions_of(kept.files.entries, kept.buckets)
        extents = extents_of(kept.buckets, self._bounds(kept.files, name), positions, loose)
        return first_of_order(
            kept.buckets, extents, self._limit, descending=first.descending, nulls_first=first.nulls_first
        )

    def _bounds(self, files: FileTable, name: str) -> ColumnBounds:
        schema = self._question.schema
        field = schema.field(name)
        if name not in schema.partition_keys:
            return files.bounds(field, self._question.schema_of)
        index = schema.partition_keys.index(name)
        values = [partition[index] for partition in files.partitions]
        return partition_bounds(values, files.partition, files.rows, field.type)


def _never(section: Section) -> bool:
    return False
