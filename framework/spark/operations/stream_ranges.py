"""Operations on changes of a range of snapshots, for `SELECT ... CHANGES FROM ...` of Spark 4.2 and newer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.decisions import readable_columns
from lockgate.framework.spark.messages.scan_messages import PlanAnswer
from lockgate.framework.spark.messages.stream_messages import (
    ChangesRequest,
    RangeAnswer,
    RangeEnd,
    RangeRequest,
)
from lockgate.framework.spark.operations.scan_operations import plan_answer, warn_of_masks
from lockgate.framework.store import ScanPlan, grant, require_unrestricted, visibility

if TYPE_CHECKING:
    from lockgate.framework.store import Table


def fixed_range(context: OperationContext, request: RangeRequest) -> RangeAnswer:
    """Fix a range of changes: its snapshots, and what tells them."""
    table = context.table()
    found = table.change_range(
        _after(table, request["start"]),
        _upto(table, request["end"]),
        keeps_rows_that_stayed=request["raw"],
    )
    return {"after": found.after, "upto": found.upto, "has_states": found.has_states}


def plan(context: OperationContext, request: ChangesRequest) -> PlanAnswer:
    """Return the files of a fixed range."""
    table = context.table()
    require_unrestricted(table, grant(table, Action.SELECT, request["columns"]), "changes")
    fixed = table.change_range(request["after"], request["upto"], keeps_rows_that_stayed=request["raw"])
    found = table.changed_files(fixed)
    warn_of_masks(table, visibility(table, readable=readable_columns(context)), {*request["columns"]})
    splits = [each.split for each in found]
    planned = ScanPlan.of_splits(table, fixed.upto, splits, request["columns"])
    answer = plan_answer(context, table, planned, request)
    for split, each in zip(answer["splits"], found, strict=True):
        split["kind"] = None if each.kind is None else int(each.kind)
        split["commit"] = {"version": each.snapshot.id, "micros": each.snapshot.time_millis * 1000}
    return answer


def _after(table: Table, start: RangeEnd) -> int | None:
    """Return the snapshot after which a range begins; None: with the oldest."""
    if start["version"] is not None:
        return max(table.number_called(start["version"]) - start["inclusive"], 0)
    if start["micros"] is None:
        return None
    earlier = [
        each.id
        for each in table.snapshots()
        if each.time_millis * 1000 < start["micros"]
        or (not start["inclusive"] and each.time_millis * 1000 == start["micros"])
    ]
    if earlier:
        return max(earlier)
    ids = table.snapshot_files.ids()
    if ids and ids[0] > 1:
        raise InputError(
            f"table {table.identifier}: snapshots from after that time have expired; the oldest one "
            f"left is {ids[0]}"
        )
    return 0


def _upto(table: Table, end: RangeEnd) -> int | None:
    """Return the last snapshot of a range; None: the newest."""
    if end["version"] is not None:
        return table.number_called(end["version"]) - (not end["inclusive"])
    if end["micros"] is None:
        return None
    found = [
        each.id
        for each in table.snapshots()
        if each.time_millis * 1000 < end["micros"]
        or (end["inclusive"] and each.time_millis * 1000 == end["micros"])
    ]
    return max(found, default=0)


OPERATIONS = {
    "changes.range": fixed_range,
    "changes.plan": plan,
}
