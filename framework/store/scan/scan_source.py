"""The source of rows for planning a query: all abilities of `lockgate.pushdown`, and a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lockgate.pushdown import (
    SupportsAggregatePushDown,
    SupportsFilterPushDown,
    SupportsLimitPushDown,
    SupportsProjectionPushDown,
    SupportsRuntimeFilterPushDown,
    SupportsTopNPushDown,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.scan.metadata_aggregates import AggregateAnswer
    from lockgate.framework.store.scan.read_request import ReadRequest
    from lockgate.framework.store.scan.scan import ScanPlan


class ScanSource(
    SupportsFilterPushDown,
    SupportsProjectionPushDown,
    SupportsLimitPushDown,
    SupportsTopNPushDown,
    SupportsAggregatePushDown,
    SupportsRuntimeFilterPushDown,
    Protocol,
):
    """A scan in the making: an engine offers it what it wants, then asks for the plan or the aggregates."""

    def plan(self) -> ScanPlan:
        """Return the files to read, with what was taken over applied."""

    def aggregates(self) -> AggregateAnswer:
        """Return what the aggregates that were applied last come to; its rows are None where some remain."""


class SourceMaker(Protocol):
    """A function that begins a scan of what a request reads."""

    def __call__(self, table: TableHandle, request: ReadRequest) -> ScanSource:
        """Return a source of its own for each scan."""
