"""The scan of a table as a source of `lockgate.pushdown`: it collects what is applied, then plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lockgate.errors import InputError
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.scan.file_layout import selective_columns
from lockgate.framework.store.scan.metadata_aggregates import AggregateAnswer, answer_aggregates
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, apply_filters, files_of, plan_scan
from lockgate.framework.store.schema.table_indexes import bounded_fields
from lockgate.pushdown import (
    Aggregate,
    AggregatePushDown,
    AlwaysTrue,
    FieldPath,
    FilterPushDown,
    LimitPushDown,
    Predicate,
    ProjectionPushDown,
    SortKey,
    TopNPushDown,
    all_of,
    describe_field,
)


class TableScan:
    """A scan that collects filters, columns and limits; `plan` returns the files to read.

    Begins from `request`, by default all rows of the newest snapshot. With `merge_apart`, files that need a
    merge share no split with others. Raises as `ReadRequest.resolve`.
    """

    def __init__(
        self, table: TableHandle, request: ReadRequest | None = None, *, merge_apart: bool = False
    ) -> None:
        self._table = table
        self._merge_apart = merge_apart
        self._filters: FilterPushDown | None = None
        self._late: Predicate = AlwaysTrue()
        self._aggregates: AggregateAnswer | None = None
        self.request = request or ReadRequest()

    def apply_filters(self, filters: Sequence[Predicate | None]) -> FilterPushDown:
        """Say which filters are guaranteed and which remain; None stands for one that cannot be expressed."""
        answer = apply_filters(self._table, filters)
        pushed = all_of(self.request.predicate, answer.pushed)
        self._filters, self.request = answer, replace(self.request, predicate=pushed)
        return answer

    @property
    def supports_nested_projection(self) -> bool:
        """Say whether fields inside structs can be read alone: here columns are read whole."""
        return False

    def apply_projection(self, paths: Sequence[FieldPath]) -> ProjectionPushDown:
        """Read only the columns of these paths; ColumnNotFoundError for unknown ones."""
        names = tuple(dict.fromkeys(path[0] for path in paths))
        for name in names:
            self._table.schema.field(name)
        self.request = replace(self.request, columns=names)
        return ProjectionPushDown(tuple((name,) for name in names))

    def apply_limit(self, limit: int) -> LimitPushDown:
        """Return at most `limit` rows, in any order."""
        self.request = replace(self.request, limit=limit)
        return LimitPushDown(applied=True, guaranteed=True)

    def apply_top_n(self, order: Sequence[SortKey], limit: int) -> TopNPushDown:
        """Skip files that cannot hold one of the first rows of an order; the engine sorts again."""
        first = order[0].field
        if len(first) > 1:
            return TopNPushDown(False, f"statistics do not order {describe_field(first)}")
        self.request = replace(self.request, order=tuple(order), limit=limit)
        return TopNPushDown(True)

    def apply_aggregates(
        self, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath] = ()
    ) -> AggregatePushDown:
        """Say which aggregates metadata answers exactly, and why not the others."""
        request = replace(self.request, columns=(), order=(), limit=None)
        self._aggregates = answer_aggregates(self._table, aggregates, group_by, request)
        return self._aggregates.push_down

    def aggregates(self) -> AggregateAnswer:
        """Return the applied aggregates that metadata answers; InputError if none were applied."""
        if self._aggregates is None:
            raise InputError("no aggregates were asked for: call apply_aggregates before aggregates")
        return self._aggregates

    def runtime_filter_columns(self) -> list[str]:
        """Return the columns whose single values let the scan skip many of its files.

        A table with bounds of whole manifests says so itself: nobody opens its manifests for this.
        """
        table, names = self._table, self.request.columns
        schema = table.schema
        bounded = [] if schema.has_primary_key else [field.name for field in bounded_fields(schema)]
        snapshot, between = self.request.snapshot(table), self.request.between
        files = FileTable(()) if bounded else files_of(table, snapshot, between)
        wanted = schema.field_names if names is None else names
        found = {*selective_columns(table, files, wanted), *bounded}
        return [name for name in wanted if name in found]

    def apply_runtime_filters(self, filters: Sequence[Predicate]) -> None:
        """Skip files by filters that nobody evaluates on the rows; see `late_filters`."""
        self._late = all_of(self._late, *filters)

    def plan(self) -> ScanPlan:
        """Return the files to read, as `Table.read` takes them."""
        return plan_scan(
            self._table,
            self.request,
            push_down=self._filters,
            late=self._late,
            merge_apart=self._merge_apart,
        )
