"""The scan: from a snapshot and a query's wishes to the files that must be read.

Snapshot → manifests → partitions → buckets → files by key → files by value → limit; each step is counted in
the plan's report. Source: Paimon's `AbstractFileStoreScan`, `KeyValueFileStoreScan` and
`AppendOnlyFileStoreScan`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lockgate.errors import UnsupportedError
from lockgate.framework.access import ALLOWED, Decision
from lockgate.framework.options import table_options as known
from lockgate.framework.plugins import ScanPlanned, publish
from lockgate.framework.store.formats import format_of
from lockgate.framework.store.manifests.column_bounds import (
    ColumnBounds,
    bounds_of_partitions,
    is_bounded,
    may_match_files,
)
from lockgate.framework.store.manifests.file_table import FileTable, Mask
from lockgate.framework.store.manifests.gc_pause import paused_collector
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.merge.merge import MergePlan, merge_plan
from lockgate.framework.store.merge.merge_plan import FIRST_ROW
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.scan.file_layout import Bucketing, common_bucketing
from lockgate.framework.store.scan.late_filters import with_newer_versions
from lockgate.framework.store.scan.pruners import BucketPruner, PartitionPruner, ValuePruner
from lockgate.framework.store.scan.request import ReadRequest
from lockgate.framework.store.scan.selection import Between, files_between
from lockgate.framework.store.scan.split import (
    Section,
    Split,
    by_bucket,
    pack_sections,
    sections_of,
)
from lockgate.framework.store.scan.topn import Buckets, extents_of, first_of_order, limited, places_of
from lockgate.framework.store.scan.visible_files import merged_files, visible_files
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import Kind
from lockgate.pushdown import (
    AlwaysTrue,
    Count,
    FilterPushDown,
    Predicate,
    ScanReport,
    SortKey,
    Step,
    all_of,
    columns_of,
    conjuncts,
    describe,
    describe_field,
    normalize,
    reads_only,
    split_filters,
    to_arrow_expression,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@dataclass(frozen=True)
class ScanPlan:
    """What must be read for a query, of one snapshot.

    `predicate`, `columns` (None: all) and `limit` are the query's wishes; the splits may hold rows that break
    the predicate outside partition columns, and more rows than the limit. `row_count` counts rows before they
    are merged, `total_bytes` bytes of files. `encrypted`: some of the columns may be. `schemas` are those of
    the files, by id, and the one that is read as. `bucketing` says how all files of the snapshot were divided
    into buckets, None if not alike. `decision` says what is hidden: its row filter is in `predicate`, its
    masks are to be put on before `masked_predicate` is asked.
    """

    snapshot_id: int | None
    schema: TableSchema
    splits: tuple[Split, ...]
    report: ScanReport
    predicate: Predicate = field(default_factory=AlwaysTrue)
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    merge_plan: MergePlan | None = None
    schemas: Mapping[int, TableSchema] = field(default_factory=dict, hash=False)
    bucketing: Bucketing | None = None
    decision: Decision = ALLOWED
    masked_predicate: Predicate = field(default_factory=AlwaysTrue)

    @property
    def row_count(self) -> int:
        """Rows in the files, before merging and filtering."""
        return sum(split.row_count for split in self.splits)

    @property
    def total_bytes(self) -> int:
        """Bytes of the files."""
        return sum(split.size for split in self.splits)

    @property
    def encrypted(self) -> bool:
        """Whether files of the plan may have encrypted columns."""
        return any(schema.table_options.get_option(known.ORC_ENCRYPT) for schema in self.schemas.values())


def apply_filters(
    table: TableHandle,
    filters: Sequence[Predicate | None],
    reasons: Sequence[str | None] = (),
    texts: Sequence[str] = (),
) -> FilterPushDown:
    """Say which filters a scan of `table` guarantees and which remain, with the reason.

    Filters that read only partition columns are guaranteed; others that fit the schema skip files and remain.
    None stands for a filter that could not be expressed; `reasons` says why and `texts` what it was, by
    index.
    """
    schema = table.schema
    return split_filters(
        filters,
        schema.arrow_schema,
        guaranteed=lambda predicate: reads_only(predicate, schema.partition_keys),
        why_remaining=lambda predicate: _why_remaining(predicate, schema),
        inexpressible=reasons,
        texts=texts,
    )


def _why_remaining(predicate: Predicate, schema: TableSchema) -> str:
    names = sorted(name for name, *_ in columns_of(predicate) if name not in schema.partition_keys)
    columns = "column" if len(names) == 1 else "columns"
    return f"statistics of {columns} {', '.join(names)} only skip files, the rows are not checked"


def plan_scan(
    table: TableHandle,
    request: ReadRequest | None = None,
    *,
    push_down: FilterPushDown | None = None,
    late: Predicate | None = None,
    merge_apart: bool = False,
) -> ScanPlan:
    """Plan what a request reads, by default all of the newest snapshot; raises as `ReadRequest.resolve`.

    The rows of the plan are neither sorted nor cut. `push_down` is what was answered to an engine about its
    filters, for the report; by default it is made from the request's predicate. `late` leaves files out as
    the predicate does, but nobody drops the rows that fail it (see `late_filters`). `merge_apart`: as in
    `pack_sections`.
    """
    started = time.monotonic()
    resolved = (request or ReadRequest()).resolve(table)
    request, snapshot, schema = resolved.request, resolved.snapshot, resolved.schema
    wanted, columns = resolved.on_stored, request.columns
    wanted_late = normalize(AlwaysTrue() if late is None else late)
    to_arrow_expression(wanted_late, schema.arrow_schema)
    # Files are left out for a limit by what is stored, which says nothing of masks.
    sees_masks = resolved.orders_by_masks or resolved.on_masked != AlwaysTrue()
    limit, order = (None, ()) if sees_masks else (request.limit, request.order)
    plan = merge_plan(schema)
    if request.between is not None and plan is not None and plan.engine == FIRST_ROW:
        raise UnsupportedError(
            f"table {table.identifier} has merge engine 'first-row': what its snapshots added is not what "
            "it has, since rows of keys that it knows are passed over later"
        )
    push_down = push_down or apply_filters(table, conjuncts(resolved.predicate))
    funnel = _Funnel(
        table,
        schema,
        plan,
        wanted,
        wanted_late,
        limit,
        order,
        merge_apart=merge_apart,
        hides=resolved.decision.row_filter != AlwaysTrue(),
    )
    with paused_collector():
        files = files_of(table, snapshot, request.between, schema)
        if request.read_optimized:
            files = merged_files(files, schema)
        splits = funnel.run(files)
    report = replace(
        _report(table, schema, snapshot, funnel, push_down, columns, request.limit),
        seconds=time.monotonic() - started,
    )
    used = {schema.id} | {file.schema_id for split in splits for file in split.files}
    planned = ScanPlan(
        snapshot_id=snapshot.id if snapshot else None,
        schema=schema,
        splits=tuple(splits),
        report=report,
        predicate=wanted,
        columns=None if columns is None else tuple(columns),
        limit=None if request.order else request.limit,
        merge_plan=plan,
        schemas={
            number: schema if number == schema.id else table.schema_of(number) for number in sorted(used)
        },
        bucketing=common_bucketing(schema, files),
        decision=resolved.decision,
        masked_predicate=resolved.on_masked,
    )
    publish(
        ScanPlanned(
            table=table.location,
            snapshot_id=planned.snapshot_id,
            columns=planned.columns,
            files=sum(len(split.files) for split in splits),
            size=planned.total_bytes,
        )
    )
    return planned


def files_of(
    table: TableHandle,
    snapshot: Snapshot | None,
    between: Between | None = None,
    schema: TableSchema | None = None,
) -> FileTable:
    """Return the entries of a snapshot that a query reads by `schema`, or of what a range of them added."""
    if between is not None:
        return files_between(table, between)
    return FileTable(()) if snapshot is None else visible_files(table, snapshot, schema or table.schema)


def check_files(files: FileTable) -> None:
    """Raise UnsupportedFormatError if a live file is of a format that cannot be read."""
    for number in files.not_orc:
        if files.live[number]:
            format_of(files.entries[number].file.file_name)


class _Funnel:
    """Runs the steps of pruning and counts what each leaves."""

    def __init__(
        self,
        table: TableHandle,
        schema: TableSchema,
        plan: MergePlan | None,
        predicate: Predicate,
        late: Predicate,
        limit: int | None,
        order: Sequence[SortKey],
        *,
        merge_apart: bool,
        hides: bool,
    ) -> None:
        self._hides = hides
        self._table = table
        self._schema = schema
        self._plan = plan
        self._exact = predicate
        self._late = late
        self._predicate = all_of(predicate, late)
        self._limit = limit
        self._merge_apart = merge_apart
        self.order = order
        self._partitions = PartitionPruner(schema, self._predicate)
        self._values = ValuePruner(schema, table.schema_of, self._partitions)
        self.steps: list[Step] = []
        self.limit_note = ""

    def run(self, files: FileTable) -> list[Split]:
        """Return the splits that are left of all files of the snapshot."""
        check_files(files)
        schema, every = self._schema, self._predicate
        mask = files.live
        mask = self._step("partitions", files, mask, self._by_partition, schema.partition_keys)
        if schema.bucket_keys:
            mask = self._step("buckets", files, mask, self._by_bucket, schema.bucket_keys)
        if schema.has_primary_key:
            mask = self._step("keys", files, mask, self._by_key, schema.trimmed_primary_keys, self._exact)
            mask = self._step("keys", files, mask, self._by_late_key, schema.trimmed_primary_keys, self._late)
        if not self.steps:
            counted = files.count(mask)
            self.steps.append(Step("snapshot", counted, counted))
        rest = [part for part in conjuncts(every) if not reads_only(part, schema.partition_keys)]
        left = all_of(*rest)
        buckets = self._by_value(files, mask, left) if rest else self._sections(files.select(mask))
        if self._limit is not None:
            buckets = self._limited(files, buckets, self._limit)
        return [split for bucket in buckets for split in self._splits(bucket)]

    def _sections(self, entries: Sequence[ManifestEntry]) -> list[list[Section]]:
        return [sections_of(self._schema, bucket) for bucket in by_bucket(entries)]

    def _step(
        self,
        name: str,
        files: FileTable,
        mask: Mask,
        narrow: Callable[[FileTable, Mask, Predicate], Mask],
        columns: Sequence[str],
        predicate: Predicate | None = None,
    ) -> Mask:
        asked = [
            part
            for part in conjuncts(self._predicate if predicate is None else predicate)
            if not columns_of(part) or any(path[0] in columns for path in columns_of(part))
        ]
        if not asked:
            return mask
        narrowed = narrow(files, mask, all_of(*asked))
        by = self._text(asked)
        self.steps.append(Step(name, files.count(mask), files.count(narrowed), by))
        return narrowed

    def _text(self, asked: Sequence[Predicate]) -> str:
        """Describe what a step asked; a row filter is not shown to those whom it keeps from seeing rows."""
        if self._hides:
            return "the row filter and the query's filters"
        return " AND ".join(describe(part) for part in asked)

    def _by_partition(self, files: FileTable, mask: Mask, asked: Predicate) -> Mask:
        return files.where_partition(mask, self._partitions.keeps_partition)

    def _by_bucket(self, files: FileTable, mask: Mask, asked: Predicate) -> Mask:
        return files.where_bucket(mask, BucketPruner(self._schema, self._partitions).keeps)

    def _by_key(self, files: FileTable, mask: Mask, asked: Predicate) -> Mask:
        mask = mask & self._may_match(files, asked, of_key=True)
        pruner = PartitionPruner(self._schema, asked)
        return files.where(mask, ValuePruner(self._schema, self._table.schema_of, pruner).keeps_key)

    def _by_late_key(self, files: FileTable, mask: Mask, asked: Predicate) -> Mask:
        kept = self._by_key(files, mask, asked)
        return with_newer_versions(files, mask, kept, numbered=self._is_numbered())

    def _is_numbered(self) -> bool:
        """Say whether files with lower sequence numbers say nothing of keys that others have."""
        return not self._schema.sequence_fields and not (self._plan and self._plan.reads_all_rows)

    def _is_composed(self, section: Section) -> bool:
        """Say whether rows of a section are put together of several, whose values bound nothing."""
        return section.merge and self._plan is not None and not self._plan.picks_rows

    def _by_value(self, files: FileTable, mask: Mask, asked: Predicate) -> list[list[Section]]:
        """Leave out by statistics, which one file of a section must fit; what is put together of several rows
        may hold what no file holds."""
        possible = mask & self._may_match(files, asked, of_key=False)
        if not self._schema.has_primary_key:
            kept = files.where(possible, self._values.keeps_file)
            self.steps.append(Step("statistics", files.count(mask), files.count(kept), self._text([asked])))
            return self._sections(files.select(kept))
        entries = files.select(mask)
        matching = {id(entry) for entry in files.select(possible) if self._values.keeps_file(entry)}
        buckets = [
            [
                section
                for section in bucket
                if self._is_composed(section) or any(id(entry) in matching for entry in section.entries)
            ]
            for bucket in self._sections(entries)
        ]
        self.steps.append(
            Step("statistics", files.count(mask), _count(_entries(buckets)), self._text([asked]))
        )
        return buckets

    def _may_match(self, files: FileTable, asked: Predicate, *, of_key: bool) -> Mask:
        keys = self._schema.trimmed_primary_keys

        def bounds(name: str) -> ColumnBounds | None:
            field = self._schema.field(name)
            if name in self._schema.partition_keys or (of_key and name not in keys):
                return None
            if not is_bounded(field.type):
                return None
            return files.bounds(field, self._schema_of, of_key=keys.index(name) if of_key else None)

        return may_match_files(normalize(asked), bounds, len(files))

    def _schema_of(self, schema_id: int) -> TableSchema:
        return self._schema if schema_id == self._schema.id else self._table.schema_of(schema_id)

    def _limited(self, files: FileTable, buckets: Buckets, limit: int) -> Buckets:
        """Leave out what a LIMIT, in the order wanted if there is one, surely does not reach."""
        filtered = any(
            not isinstance(self._partitions.residual(section.entries[0].partition), AlwaysTrue)
            for bucket in buckets
            for section in bucket
        )
        if filtered:
            self.limit_note = "no file left out: a filter remains to be applied to rows"
            return buckets
        before = _count(_entries(buckets))
        if self.order:
            kept, self.limit_note = self._first(files, buckets, limit)
            by = f"ORDER BY {', '.join(str(key) for key in self.order)} LIMIT {limit}"
            self.steps.append(Step("order", before, _count(_entries(kept)), by))
            return kept
        kept = limited(buckets, limit)
        self.steps.append(Step("limit", before, _count(_entries(kept)), f"LIMIT {limit}"))
        self.limit_note = "not guaranteed: the files kept may hold more rows"
        return kept

    def _first(self, files: FileTable, buckets: Buckets, limit: int) -> tuple[Buckets, str]:
        first = self.order[0]
        kind = self._schema.field(first.field[0]).type
        if len(first.field) > 1 or kind.kind is Kind.CHAR or not is_bounded(kind):
            return buckets, f"no file left out: statistics do not order {describe_field(first.field)}"
        bounds = self._order_bounds(files, first.field[0])
        loose = self._is_composed if first.field[0] not in self._schema.primary_keys else _never
        extents = extents_of(buckets, bounds, places_of(files.entries, buckets), loose)
        kept = first_of_order(
            buckets, extents, limit, descending=first.descending, nulls_first=first.nulls_first
        )
        if kept is None:
            return buckets, "no file left out: too few rows are known to come first"
        return kept, "not guaranteed: rows are to be sorted, and cut"

    def _order_bounds(self, files: FileTable, name: str) -> ColumnBounds:
        field = self._schema.field(name)
        if name not in self._schema.partition_keys:
            return files.bounds(field, self._schema_of)
        place = self._schema.partition_keys.index(name)
        values = [partition[place] for partition in files.partitions]
        return bounds_of_partitions(values, files.partition, files.rows, field.type)

    def _splits(self, sections: Sequence[Section]) -> list[Split]:
        if not sections:
            return []
        partition = sections[0].entries[0].partition
        values = dict(zip(self._schema.partition_keys, partition, strict=True))
        options = self._schema.table_options
        return pack_sections(
            sections,
            values,
            self._path_of,
            options.get_option(known.SOURCE_SPLIT_TARGET_SIZE),
            options.get_option(known.SOURCE_SPLIT_OPEN_FILE_COST),
            merge_apart=self._merge_apart,
        )

    def _path_of(self, entry: ManifestEntry) -> str:
        return self._table.paths.data_file(entry.partition, entry.bucket, entry.file)


def _never(section: Section) -> bool:
    return False


def _entries(buckets: Sequence[Sequence[Section]]) -> list[ManifestEntry]:
    return [entry for bucket in buckets for section in bucket for entry in section.entries]


def _count(entries: Sequence[ManifestEntry]) -> Count:
    return Count.of(
        (entry.partition, entry.bucket, entry.live_rows, entry.file.file_size) for entry in entries
    )


def _report(
    table: TableHandle,
    schema: TableSchema,
    snapshot: Snapshot | None,
    funnel: _Funnel,
    push_down: FilterPushDown,
    columns: Sequence[str] | None,
    limit: int | None,
) -> ScanReport:
    return ScanReport(
        table=str(table.identifier),
        snapshot_id=snapshot.id if snapshot else None,
        steps=tuple(funnel.steps),
        accepted=tuple(describe(item.predicate) for item in push_down.accepted if item.guaranteed),
        skipping=tuple(describe(item.predicate) for item in push_down.accepted if not item.guaranteed),
        remaining=tuple((str(item), item.reason) for item in push_down.remaining),
        columns=None if columns is None else tuple(columns),
        all_columns=schema.field_names,
        limit=limit,
        limit_note=funnel.limit_note,
        order=", ".join(str(key) for key in funnel.order),
        manifests=len(table.manifests.manifests(snapshot)) if snapshot else 0,
    )
