"""The scan: chooses the files of a snapshot that a query must read.

Snapshot → manifests → partitions → buckets → files by key → files by value → limit; each step is counted in
the plan's report. Source: Paimon's `AbstractFileStoreScan`, `KeyValueFileStoreScan` and
`AppendOnlyFileStoreScan`.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from lockgate.errors import UnsupportedError
from lockgate.framework import options as table_options
from lockgate.framework.access import ALLOWED, Decision
from lockgate.framework.plugins import ScanPlanned, publish
from lockgate.framework.store.confidential.withheld_keys import KeyUse, key_uses
from lockgate.framework.store.formats.data_file import format_of
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.manifests.gc_pause import paused_collector
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.merge.merge import MergePlan, merge_plan
from lockgate.framework.store.merge.merge_plan import FIRST_ROW
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.pruning.file_options import files_by_options
from lockgate.framework.store.pruning.funnel import ByLimit, ByOrder, pruners_of
from lockgate.framework.store.pruning.open_manifests import OpenManifests, open_manifests
from lockgate.framework.store.pruning.scanned_files import KeptFiles, PruningQuestion
from lockgate.framework.store.pruning.split import (
    Section,
    Split,
    pack_files,
    pack_sections,
)
from lockgate.framework.store.scan.fallback import with_partitions_of_branch
from lockgate.framework.store.scan.file_layout import Bucketing, common_bucketing
from lockgate.framework.store.scan.read_request import ReadRequest, ResolvedRead
from lockgate.framework.store.scan.readable_files import merged_files, readable_files
from lockgate.framework.store.scan.snapshot_selection import Between, files_between
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_no_fallback_branch
from lockgate.pushdown import (
    AlwaysTrue,
    FilterPushDown,
    Funnel,
    Predicate,
    Pruner,
    ScanReport,
    SortKey,
    Step,
    columns_of,
    conjuncts,
    describe,
    normalize,
    operators_of,
    reads_only,
    split_filters,
    to_arrow_expression,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.scan.estimates import ColumnEstimate


@dataclass(frozen=True)
class ScanPlan:
    """The files to be read for a query, of one snapshot.

    `predicate`, `columns` (None: all) and `limit` are the query's wishes; the splits may hold rows that break
    the predicate outside partition columns, and more rows than the limit. `row_count` counts rows before they
    are merged, `total_bytes` bytes of files. `encrypted`: some of the columns may be. `schemas` are those of
    the files, by id, and the one that is read as. `bucketing` says how all files of the snapshot were divided
    into buckets, None if not alike. `decision` says what is hidden: its row filter is in `predicate`, its
    masks are to be put on before `masked_predicate` is asked. `index_manifest` is the snapshot's. A `strict`
    plan reads no masks.
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
    index_manifest: str | None = None
    strict: bool = False

    @property
    def row_count(self) -> int:
        """Rows in the files, before merging and filtering."""
        return sum(split.row_count for split in self.splits)

    @property
    def total_bytes(self) -> int:
        """Bytes of the files."""
        return sum(split.size for split in self.splits)

    @classmethod
    def of_splits(
        cls, table: TableHandle, snapshot_id: int, splits: Sequence[Split], columns: Sequence[str]
    ) -> ScanPlan:
        """Return the plan of a query that chose its splits itself, such as a stream."""
        used = {table.schema.id} | {file.schema_id for split in splits for file in split.files}
        return cls(
            snapshot_id=snapshot_id,
            schema=table.schema,
            splits=tuple(splits),
            report=ScanReport(table=str(table.identifier), snapshot_id=snapshot_id),
            columns=tuple(columns),
            merge_plan=merge_plan(table.schema),
            schemas={number: table.schema_of(number) for number in sorted(used)},
        )

    @property
    def key_uses(self) -> set[KeyUse]:
        """The uses of keys in the files, by the columns that the plan reads."""
        return key_uses(self.schema, self.schemas.values())

    def estimates(self, columns: Iterable[str]) -> dict[str, ColumnEstimate]:
        """Return what is known of columns for an optimizer that counts costs."""
        from lockgate.framework.store.scan.estimates import estimate_columns

        return estimate_columns(self, columns)

    @property
    def encrypted(self) -> bool:
        """Say whether files of the plan may have encrypted columns."""
        return any(
            schema.table_options.get_option(table_options.ORC_ENCRYPT) for schema in self.schemas.values()
        )


def apply_filters(table: TableHandle, filters: Sequence[Predicate | None]) -> FilterPushDown:
    """Say which filters a scan of `table` guarantees and which remain, with the reason.

    Filters that read only partition columns are guaranteed; others that fit the schema skip files and remain.
    None stands for a filter that could not be expressed.
    """
    schema = table.schema
    return split_filters(
        filters,
        schema.arrow_schema,
        guaranteed=lambda predicate: reads_only(predicate, schema.partition_keys),
        why_remaining=lambda predicate: _why_remaining(predicate, schema),
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
    all_files: bool = False,
) -> ScanPlan:
    """Plan what a request reads, by default all of the newest snapshot; raises as `ReadRequest.resolve`.

    The rows of the plan are neither sorted nor cut. `push_down` is what was answered to an engine about its
    filters, for the report; by default it is made from the request's predicate. `late` leaves files out as
    the predicate does, but nobody drops the rows that fail it (see `late_filters`). `merge_apart`: as in
    `pack_sections`. `all_files`: options of the table leave none out, see `files_by_options`.
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
    added = request.between is not None and not request.between.states
    if added and plan is not None and plan.engine == FIRST_ROW:
        raise UnsupportedError(
            f"table {table.identifier} has merge engine 'first-row': it keeps the first row of each key, "
            "so rows that a snapshot added may not be in the table"
        )
    push_down = push_down or apply_filters(table, conjuncts(resolved.predicate))
    hides = resolved.decision.row_filter != AlwaysTrue()
    index = None if snapshot is None else snapshot.index_manifest
    question = PruningQuestion(table, schema, plan, wanted, wanted_late, hides, index)
    pruners = pruners_of(question, limit, order)
    funnel = Funnel(KeptFiles.count)
    with paused_collector():
        opened = OpenManifests() if request.between else open_manifests(question, snapshot)
        files = files_of(
            table, snapshot, request.between, schema, all_files=all_files, unopened=opened.unopened
        )
        first = opened.step(question, files)
        if request.read_optimized:
            files = merged_files(files, schema)
        check_files(files)
        kept = funnel.run(KeptFiles(question, files, files.live), pruners)
        packed = _Splits(table, schema, merge_apart=merge_apart)
        splits = (
            packed.of_files(kept)
            if kept.stand_alone
            else [split for bucket in kept.buckets for split in packed.of(bucket)]
        )
        count, used = kept.count(), {schema.id, *np.unique(files.schema_ids[kept.mask]).tolist()}
        del kept  # a million sections, which the collector need not look at
    steps = funnel.steps if first is None else (first, *funnel.steps)
    report = replace(
        _report(table, resolved, order, steps, push_down, _note(pruners)),
        seconds=time.monotonic() - started,
    )
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
        index_manifest=index,
        strict=request.strict,
    )
    publish(
        ScanPlanned(
            table=table.location,
            snapshot_id=planned.snapshot_id,
            columns=planned.columns,
            files=count.files,
            size=count.bytes,
            searched=tuple(sorted({(path[0], op.name) for path, op in operators_of(resolved.predicate)})),
            again=request.again,
        )
    )
    return planned


def files_of(
    table: TableHandle,
    snapshot: Snapshot | None,
    between: Between | None = None,
    schema: TableSchema | None = None,
    *,
    all_files: bool = False,
    unopened: Collection[str] = (),
) -> FileTable:
    """Return the entries of a snapshot that a query reads by `schema`, or of what a range of them added.

    `all_files`: also those that options of the table leave out. Manifests named in `unopened` stay unopened.
    """
    if between is not None:
        check_no_fallback_branch(table.schema)
        files = files_between(table, between)
    else:
        own = (
            FileTable(())
            if snapshot is None
            else readable_files(table, snapshot, schema or table.schema, unopened)
        )
        files = with_partitions_of_branch(table, own, snapshot)
    return files if all_files else files_by_options(table.schema, files)


def check_files(files: FileTable) -> None:
    """Raise UnsupportedFormatError if a live file is of a format that cannot be read."""
    for number in files.not_orc:
        if files.live[number]:
            format_of(files.entries[number].file.file_name)


class _Splits:
    """Packs the sections that are left into splits."""

    def __init__(self, table: TableHandle, schema: TableSchema, *, merge_apart: bool) -> None:
        self._table = table
        self._schema = schema
        self._merge_apart = merge_apart

    def of(self, sections: Sequence[Section]) -> list[Split]:
        """Return the splits of one bucket."""
        if not sections:
            return []
        partition = sections[0].entries[0].partition
        values = dict(zip(self._schema.partition_keys, partition, strict=True))
        options = self._schema.table_options
        return pack_sections(
            sections,
            values,
            self._paths_of,
            options.get_option(table_options.SOURCE_SPLIT_TARGET_SIZE),
            options.get_option(table_options.SOURCE_SPLIT_OPEN_FILE_COST),
            merge_apart=self._merge_apart,
        )

    def of_files(self, kept: KeptFiles) -> list[Split]:
        """Return the splits of files that can be read one by one."""
        files, options = kept.files, self._schema.table_options
        target = options.get_option(table_options.SOURCE_SPLIT_TARGET_SIZE)
        open_cost = options.get_option(table_options.SOURCE_SPLIT_OPEN_FILE_COST)
        splits: list[Split] = []
        for numbers in files.by_bucket(kept.mask):
            partition = files.partitions[int(files.partition[numbers[0]])]
            values = dict(zip(self._schema.partition_keys, partition, strict=True))
            paths = self._table.paths.of_files(files, numbers)
            splits += pack_files(files, numbers, values, paths, target, open_cost)
        return splits

    def _paths_of(self, entries: Sequence[ManifestEntry]) -> tuple[str, ...]:
        first = entries[0]
        files = [entry.file for entry in entries]
        return self._table.paths.data_files(first.partition, first.bucket, files)


def _note(pruners: Sequence[Pruner[KeptFiles]]) -> str:
    """Say what became of the limit."""
    return next((pruner.note for pruner in pruners if isinstance(pruner, ByLimit | ByOrder)), "")


def _report(
    table: TableHandle,
    resolved: ResolvedRead,
    order: Sequence[SortKey],
    steps: tuple[Step, ...],
    push_down: FilterPushDown,
    limit_note: str,
) -> ScanReport:
    snapshot, columns = resolved.snapshot, resolved.request.columns
    return ScanReport(
        table=str(table.identifier),
        snapshot_id=snapshot.id if snapshot else None,
        steps=steps,
        accepted=tuple(describe(item.predicate) for item in push_down.accepted if item.guaranteed),
        skipping=tuple(describe(item.predicate) for item in push_down.accepted if not item.guaranteed),
        remaining=tuple((str(item), item.reason) for item in push_down.remaining),
        columns=columns,
        all_columns=resolved.schema.field_names,
        limit=resolved.request.limit,
        limit_note=limit_note,
        order=", ".join(str(key) for key in order),
        manifests=len(table.manifests.manifests(snapshot)) if snapshot else 0,
    )
