"""One scan of a table in the making, as `lockgate.pushdown` describes sources: it is asked, then planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.scan.aggregates import answer_aggregates
from lockgate.framework.store.scan.request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, apply_filters, plan_scan
from lockgate.pushdown import (
    Aggregate,
    AggregatePushDown,
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
    """A scan that takes over what it is asked to; `plan` says which files are left to read.

    Begins from `request`, by default all rows of the newest snapshot. Raises as `ReadRequest.resolve`.
    """

    def __init__(self, table: TableHandle, request: ReadRequest | None = None) -> None:
        self._table = table
        self._filters: FilterPushDown | None = None
        self.request = request or ReadRequest()

    def apply_filters(
        self,
        filters: Sequence[Predicate | None],
        reasons: Sequence[str | None] = (),
        texts: Sequence[str] = (),
    ) -> FilterPushDown:
        """Say which filters are guaranteed and which remain; `reasons` and `texts` as in `apply_filters`."""
        answer = apply_filters(self._table, filters, reasons, texts)
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
        """Return at most `limit` rows, of no order."""
        self.request = replace(self.request, limit=limit)
        return LimitPushDown(applied=True, guaranteed=True)

    def apply_top_n(self, order: Sequence[SortKey], limit: int) -> TopNPushDown:
        """Leave out files that cannot hold one of the first rows of an order; the engine sorts again."""
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
        return answer_aggregates(self._table, aggregates, group_by, request).push_down

    def plan(self) -> ScanPlan:
        """Return the files to read, of which `Table.read` makes rows."""
        return plan_scan(self._table, self.request, push_down=self._filters)
