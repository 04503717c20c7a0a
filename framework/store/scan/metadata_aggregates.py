"""COUNT, MIN and MAX from metadata alone, where manifests tell them exactly.

Row counts of files, null counts and bounds of columns are enough if every row of every file is a row of the
table and the filter reads only partition columns. Bounds are exact only for some types: those of text may be
cut, those of FLOAT and DOUBLE may leave out NaN or take 0.0 for -0.0, those of fine timestamps may be rounded
by other writers. Source: Paimon's `LocalAggregator` and `AggregatePushDownUtils`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lockgate.framework import options as table_options
from lockgate.framework.orc import parse_encrypt
from lockgate.framework.orc import split as split_path
from lockgate.framework.store.manifests.column_bounds import ABSENT, stats_position
from lockgate.framework.store.manifests.file_table import FileTable, Mask, Numbers
from lockgate.framework.store.manifests.gc_pause import paused_collector
from lockgate.framework.store.manifests.manifest import ManifestEntry
from lockgate.framework.store.merge.merge import merge_plan
from lockgate.framework.store.pruning.pruners import PartitionPruner
from lockgate.framework.store.pruning.split import by_bucket, sections_of
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.readable_files import merged_files
from lockgate.framework.store.scan.scan import check_files, files_of
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, DataType, Kind, is_bounded, to_arrow
from lockgate.pushdown import (
    Aggregate,
    AggregatePushDown,
    FieldPath,
    Function,
    Predicate,
    RemainingAggregate,
    ScanReport,
    Step,
    columns_of,
    conjuncts,
    describe,
    describe_field,
    reads_only,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

# Before the Gregorian calendar writers disagree about days.
_FIRST_GREGORIAN_DAY = -141_427
_MILLIS = 3


@dataclass(frozen=True)
class AggregateAnswer:
    """Answer of metadata to aggregates; `rows` is None unless it tells all of them exactly.

    `rows` has the columns of the grouping and then one for each aggregate, named as it prints; without a
    grouping it is one row, also of an empty table.
    """

    push_down: AggregatePushDown
    rows: pa.Table | None
    report: ScanReport


def answer_aggregates(
    table: TableHandle,
    aggregates: Sequence[Aggregate],
    group_by: Sequence[FieldPath] = (),
    request: ReadRequest | None = None,
) -> AggregateAnswer:
    """Answer aggregates of a request's rows without opening a data file, or say why that would not be exact.

    Raises as `ReadRequest.resolve`.
    """
    asked = [path[0] for path in (*(each.field for each in aggregates if each.field), *group_by)]
    request = request or ReadRequest(columns=())
    resolved = request.resolve(table, asked)
    snapshot, schema, wanted = resolved.snapshot, resolved.schema, resolved.on_stored
    read = {*asked, *(path[0] for path in columns_of(resolved.predicate))}
    masked = resolved.decision.masked(read)
    merge_plan(schema)
    report = ScanReport(
        str(table.identifier),
        snapshot.id if snapshot else None,
        all_columns=schema.field_names,
        manifests=len(table.manifests.manifests(snapshot)) if snapshot else 0,
    )
    refusals = _refusals(schema, aggregates, group_by, wanted)
    if resolved.request.between is not None:
        refusals = _all_refused(aggregates, group_by, "a range of snapshots is read")
    if masked:
        refusals = _all_refused(aggregates, group_by, f"column {masked[0]} is masked")
    if refusals:
        return _refused(aggregates, refusals, report)
    with paused_collector():
        files = files_of(table, snapshot, schema=schema)
        if request.read_optimized:
            files = merged_files(files, schema)
        answering = _FileAggregates(table, schema, wanted, files)
        rows, refusals = answering.answer(aggregates, group_by)
    report = replace(report, steps=answering.steps)
    if rows is None:
        return _refused(aggregates, refusals, report)
    return AggregateAnswer(
        AggregatePushDown(tuple(aggregates)),
        rows,
        replace(
            report,
            accepted=tuple(describe(part) for part in conjuncts(wanted)),
            aggregates=tuple((str(each), "answered from metadata, no file is read") for each in aggregates),
        ),
    )


Refusals = tuple[RemainingAggregate, ...]


def _refused(aggregates: Sequence[Aggregate], refusals: Refusals, report: ScanReport) -> AggregateAnswer:
    remaining = tuple(dict.fromkeys(refusals))
    texts = {item.text for item in remaining}
    accepted = tuple(each for each in aggregates if str(each) not in texts)
    shown = tuple((item.text, f"remains because {item.reason}") for item in remaining)
    return AggregateAnswer(AggregatePushDown(accepted, remaining), None, replace(report, aggregates=shown))


def _all_refused(aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath], reason: str) -> Refusals:
    """Return the refusal of everything; a grouping without aggregates is refused as such."""
    grouping = f"GROUP BY {', '.join(describe_field(path) for path in group_by)}"
    return tuple(RemainingAggregate(str(each), reason) for each in aggregates or (grouping,))


# --- what the schema alone tells ---------------------------------------------------------------------


def _refusals(
    schema: TableSchema, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath], wanted: Predicate
) -> Refusals:
    common = _common_refusal(schema, group_by, wanted)
    if common:
        return _all_refused(aggregates, group_by, common)
    hidden = _encrypted(schema)
    found = [(each, _refusal(schema, hidden, each)) for each in aggregates]
    return tuple(RemainingAggregate(str(each), reason) for each, reason in found if reason)


def _common_refusal(schema: TableSchema, group_by: Sequence[FieldPath], wanted: Predicate) -> str:
    for part in conjuncts(wanted):
        if not reads_only(part, schema.partition_keys):
            return f"a filter remains to be applied to rows: {describe(part)}"
    for path in group_by:
        if len(path) > 1 or path[0] not in schema.partition_keys:
            return f"files hold several values of {describe_field(path)}, which it is grouped by"
        data_type = schema.field(path[0]).type
        if data_type.kind in (Kind.FLOAT, Kind.DOUBLE):
            return f"column {path[0]} is {data_type.bare_name}: partitions of 0.0 and -0.0 are one group"
    return ""


def _encrypted(schema: TableSchema) -> frozenset[str]:
    named = parse_encrypt(schema.table_options.get_option(table_options.ORC_ENCRYPT))
    return frozenset(name if name in schema.field_names else split_path(name)[0] for name in named)


def _refusal(schema: TableSchema, hidden: frozenset[str], aggregate: Aggregate) -> str:
    if aggregate.field is None:
        return ""
    name = aggregate.field[0]
    data_type = schema.field(name).type
    if len(aggregate.field) > 1:
        return f"{describe_field(aggregate.field)} is inside a column: statistics are kept of whole columns"
    if name in hidden:
        return f"column {name} is encrypted: metadata holds nothing of its values"
    return (
        ""
        if aggregate.function is Function.COUNT
        else _inexact(name, data_type, name in schema.partition_keys)
    )


def _inexact(name: str, data_type: DataType, of_partition: bool) -> str:
    """Say why bounds of a type may be other than the smallest and largest value; empty if they may not."""
    column = f"column {name} is {data_type.bare_name}"
    if data_type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return f"{column}: its bounds may leave out NaN, or take 0.0 for -0.0"
    if of_partition:
        return ""
    if data_type.is_string or data_type.is_binary:
        return f"{column}: its bounds may be cut"
    if data_type.is_timestamp and (data_type.precision or 0) > _MILLIS:
        return f"{column}: its bounds may be rounded"
    return "" if is_bounded(data_type) else f"{column}: bounds of this type are not used"


# --- what the files tell -----------------------------------------------------------------------------


class _FileAggregates:
    """Computes aggregates over the files of the partitions that a filter leaves."""

    def __init__(self, table: TableHandle, schema: TableSchema, wanted: Predicate, files: FileTable) -> None:
        check_files(files)
        self._table = table
        self._schema = schema
        self._files = files
        before = files.live
        self._mask: Mask = files.where_partition(before, PartitionPruner(schema, wanted).keeps_partition)
        by = " AND ".join(describe(part) for part in conjuncts(wanted))
        step = Step("partitions" if by else "snapshot", files.count(before), files.count(self._mask), by)
        self.steps = (step,)

    def answer(
        self, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath]
    ) -> tuple[pa.Table | None, Refusals]:
        """Return the rows, or why there are none."""
        reason = self._merge_reason()
        if reason:
            return None, _all_refused(aggregates, group_by, reason)
        grouping = [path[0] for path in group_by]
        keys, group = self._groups(grouping)
        columns: list[pa.Array] = [
            pa.array([key[index] for key in keys], to_arrow(self._schema.field(name).type))
            for index, name in enumerate(grouping)
        ]
        refusals: list[RemainingAggregate] = []
        for each in aggregates:
            try:
                columns.append(self._column(each, group, len(keys)))
            except _InexactError as error:
                refusals.append(RemainingAggregate(str(each), str(error)))
        if refusals:
            return None, tuple(refusals)
        names = [*grouping, *(str(each) for each in aggregates)]
        return pa.Table.from_arrays(columns, names=names), ()

    def _merge_reason(self) -> str:
        if not self._schema.has_primary_key:
            return ""
        unclean = 0
        for entries in by_bucket(self._files.select(self._mask)):
            unclean += any(section.merge for section in sections_of(self._schema, entries))
        return (
            f"rows of one key may be in several files, or deleted, in {unclean} of the buckets"
            if unclean
            else ""
        )

    def _groups(self, group_by: Sequence[str]) -> tuple[list[tuple[Any, ...]], Numbers]:
        """Return the values of each group, and of each chosen file the number of its group."""
        places = [self._schema.partition_keys.index(name) for name in group_by]
        rows = self._files.rows[self._mask]
        numbers: dict[tuple[Any, ...], int] = {} if group_by else {(): 0}
        partitions = self._files.partition[self._mask]
        group_of = np.full(len(self._files.partitions), -1, np.int64)
        for number in np.unique(partitions[rows > 0]):
            partition = self._files.partitions[number]
            # Queries group partitions of -0.0 and 0.0 as one.
            values = tuple(_with_unsigned_zero(partition[index]) for index in places)
            group_of[number] = numbers.setdefault(values, len(numbers))
        group = group_of[partitions] if len(partitions) else partitions
        return list(numbers), group

    def _column(self, aggregate: Aggregate, group: Numbers, groups: int) -> pa.Array:
        if aggregate.function is Function.COUNT:
            counts = np.zeros(groups, np.int64)
            filled = group >= 0
            np.add.at(counts, group[filled], self._counts(aggregate.field)[filled])
            return pa.array(counts, pa.int64())
        assert aggregate.field is not None
        name = aggregate.field[0]
        largest = aggregate.function is Function.MAX
        if name in self._schema.partition_keys:
            return self._of_partitions(name, group, groups, largest)
        return self._of_bounds(self._schema.field(name), group, groups, largest)

    def _counts(self, path: FieldPath | None) -> Numbers:
        """Return of each chosen file how many rows have a value."""
        rows = self._files.rows[self._mask]
        if path is None:
            return rows
        if path[0] in self._schema.partition_keys:
            index = self._schema.partition_keys.index(path[0])
            given = np.array([partition[index] is not None for partition in self._files.partitions], np.int64)
            return rows * given[self._files.partition[self._mask]] if len(rows) else rows
        field = self._schema.field(path[0])
        entries = self._files.select(self._mask)
        return rows - np.fromiter(self._nulls(field, entries), np.int64, len(entries))

    def _nulls(self, field: DataField, entries: Sequence[ManifestEntry]) -> list[int]:
        positions: dict[Any, int | None] = {}
        nulls = []
        for entry in entries:
            file = entry.file
            layout = (file.schema_id, file.value_stats_cols, file.write_cols)
            if layout not in positions:
                positions[layout] = stats_position(field, self._schema_of(layout[0]), *layout[1:])
            position = positions[layout]
            counts = file.value_stats.null_counts
            if position == ABSENT:
                nulls.append(entry.live_rows)
                continue
            count = None if position is None or position >= len(counts) else counts[position]
            if count is None:
                raise _InexactError(f"a file has no statistics of column {field.name} as it is now")
            nulls.append(_live_nulls(entry, count, field.name))
        return nulls

    def _schema_of(self, schema_id: int) -> TableSchema:
        return self._schema if schema_id == self._schema.id else self._table.schema_of(schema_id)

    def _of_partitions(self, name: str, group: Numbers, groups: int, largest: bool) -> pa.Array:
        index = self._schema.partition_keys.index(name)
        values: list[list[Any]] = [[] for _ in range(groups)]
        pairs = {
            (number, into) for number, into in zip(self._files.partition[self._mask], group, strict=True)
        }
        for number, into in pairs:
            value = self._files.partitions[number][index]
            if into >= 0 and value is not None:
                values[into].append(value)
        pick: Callable[..., Any] = max if largest else min
        return pa.array(
            [pick(found, default=None) for found in values], to_arrow(self._schema.field(name).type)
        )

    def _of_bounds(self, field: DataField, group: Numbers, groups: int, largest: bool) -> pa.Array:
        bounds = self._files.bounds(field, self._schema_of)
        valid, without = bounds.valid[self._mask], bounds.all_null[self._mask]
        filled = group >= 0
        if not (valid | without)[filled].all():
            raise _InexactError(f"a file has no statistics of column {field.name} as it is now")
        values = (bounds.high if largest else bounds.low)[self._mask]
        used = valid & filled & ~without & (self._files.rows[self._mask] > 0)
        chosen = self._files.select(self._mask)
        if any(chosen[number].vector for number in np.flatnonzero(used)):
            raise _InexactError(_DELETED.format(field.name))
        if field.type.kind is Kind.DATE and (values[used] < _FIRST_GREGORIAN_DAY).any():
            raise _InexactError(
                f"column {field.name} has days before 1582-10-15, which writers count differently"
            )
        limits = np.iinfo(np.int64)
        best = np.full(groups, limits.min if largest else limits.max, np.int64)
        (np.maximum if largest else np.minimum).at(best, group[used], values[used])
        found = np.zeros(groups, np.bool_)
        found[group[used]] = True
        return _values(
            [int(value) if is_set else None for value, is_set in zip(best, found, strict=True)], field.type
        )


class _InexactError(Exception):
    """Raised inside this module where statistics of a file do not tell enough."""


_DELETED = "rows of a file are deleted, which its statistics of column {} still count"


def _live_nulls(entry: ManifestEntry, nulls: int, name: str) -> int:
    """Return how many of the rows that no vector deletes are null, where that follows from all rows."""
    if entry.vector is None or not nulls:
        return nulls
    if nulls == entry.file.row_count or not entry.live_rows:
        return entry.live_rows
    raise _InexactError(_DELETED.format(name))


def _values(stored: list[int | None], data_type: DataType) -> pa.Array:
    """Return values of a column from the whole numbers that stand for them in bounds."""
    arrow = to_arrow(data_type)
    if data_type.kind is Kind.DECIMAL:
        scale = data_type.scale or 0
        return pa.array([None if value is None else Decimal(value).scaleb(-scale) for value in stored], arrow)
    if data_type.kind is Kind.DATE:
        return pa.array(stored, pa.int32()).cast(arrow)
    if data_type.is_timestamp:
        return pa.array(stored, pa.int64()).cast(pa.timestamp("us", arrow.tz)).cast(arrow)
    return pa.array(stored, arrow)


def _with_unsigned_zero(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value
