"""Numbers of rows that a MERGE changed, from the metrics of its executed plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_MERGE = "MergeRowsExec"
# Its own rows are those of the statement's answer: there are none.
_COMMAND = "CommandResultExec"
_INNER = {
    _COMMAND: "commandPhysicalPlan",
    "AdaptiveSparkPlanExec": "executedPlan",
    "ResultQueryStageExec": "plan",
    "ShuffleQueryStageExec": "plan",
    "BroadcastQueryStageExec": "plan",
}


class RowCounts(NamedTuple):
    """How many rows were inserted, updated and deleted; None where a plan does not count them."""

    inserted: int | None
    updated: int | None
    deleted: int | None

    @classmethod
    def of(cls, executed: Any) -> RowCounts:
        """Return the counts of a DataFrame of a MERGE, which has run.

        Spark plans a MERGE that only inserts as an append; its query's rows are the inserted ones.
        """
        first = None
        for plan in _plans(executed._jdf.queryExecution().executedPlan()):
            kind, metrics = str(plan.getClass().getSimpleName()), plan.metrics()
            if kind == _MERGE:
                names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
                return cls(*(_metric(metrics, name) for name in names))
            if first is None and kind != _COMMAND:
                first = _metric(metrics, "numOutputRows")
        return cls(first, 0, 0)


def _metric(metrics: Any, name: str) -> int | None:
    return int(metrics.apply(name).value()) if metrics.contains(name) else None


def _plans(plan: Any) -> Iterator[Any]:
    """Yield a plan and all below it, those of the first branch first."""
    yield plan
    inner = _INNER.get(str(plan.getClass().getSimpleName()))
    if inner is not None:
        yield from _plans(getattr(plan, inner)())
    children = plan.children()
    for index in range(children.size()):
        yield from _plans(children.apply(index))
