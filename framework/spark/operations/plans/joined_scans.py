"""Files of a scan that may find partners in the other scans that a query joins it with, as plugins tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError, PluginError
from lockgate.framework.plugins import CandidateFile, JoinedColumn, JoinPruner, plugins
from lockgate.framework.store.pruning.candidates import candidate_of
from lockgate.pushdown import Step, columns_of, from_json

if TYPE_CHECKING:
    from lockgate.framework.spark.operations.context import Context
    from lockgate.framework.spark.operations.messages.scans import JoinedScan, PlanRequest, PushedScan
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.table import Table

    PlanOf = Callable[[Context, Table, AbstractSet[str], PlanRequest], ScanPlan]


def narrowed_by_joins(
    context: Context, table: Table, planned: ScanPlan, joined: Sequence[JoinedScan], plan_of: PlanOf
) -> ScanPlan:
    """Leave out the files of a plan whose rows find no partner in a join.

    `plan_of` plans the other scans. A table with a primary key keeps its files: with a newer row gone, an
    older one would seem to be there.
    """
    pruners = [(name, each) for name, each in plugins().pruners(table) if isinstance(each, JoinPruner)]
    if not pruners or table.schema.has_primary_key or not planned.splits:
        return planned
    columns = [_joined(context, each, plan_of) for each in joined]
    for plugin, pruner in pruners:
        planned = _narrowed(table, planned, plugin, pruner, columns)
    return planned


def _joined(context: Context, joined: JoinedScan, plan_of: PlanOf) -> JoinedColumn:
    about = context.about(joined["other"])
    table, request = about.table(), _to_plan(joined["other"])
    filters = [found for item in request["filters"] if (found := from_json(item)) is not None]
    needed = {*request["columns"], *(path[0] for each in filters for path in columns_of(each))}
    planned = plan_of(about, table, needed, request)
    return JoinedColumn(joined["column"], table, joined["other_column"], _candidates(table, planned))


def _to_plan(request: PushedScan) -> PlanRequest:
    return {
        **request,
        "joined": [],
        "scan_id": "",
        "runtime_filters": [],
        "files": None,
        "estimates": False,
        "properties": None,
    }


def _candidates(table: Table, planned: ScanPlan) -> list[CandidateFile]:
    keys = planned.schema.partition_keys
    return [
        candidate_of(
            table,
            planned.schema,
            [split.partition[key] for key in keys],
            split.bucket,
            file,
            planned.index_manifest,
        )
        for split in planned.splits
        for file in split.files
    ]


def _narrowed(
    table: Table, planned: ScanPlan, plugin: str, pruner: JoinPruner, columns: Sequence[JoinedColumn]
) -> ScanPlan:
    files = _candidates(table, planned)
    try:
        answers = [*map(bool, pruner.joins(files, columns))]
    except CorruptFileError:
        raise  # it names the file
    except Exception as error:  # a plugin may raise anything
        raise PluginError(f"plugin {plugin!r}: pruner {pruner.name!r} failed: {error}", plugin) from error
    if len(answers) != len(files):
        raise PluginError(f"plugin {plugin!r}: {len(answers)} answers for {len(files)} files", plugin)
    kept = {file.path for file, keeps in zip(files, answers, strict=True) if keeps}
    splits = tuple(part for split in planned.splits if (part := split.only(lambda path: path in kept)).files)
    before = planned.report.kept
    after = dataclasses.replace(
        before,
        files=sum(len(split.files) for split in splits),
        rows=sum(split.row_count for split in splits),
        bytes=sum(split.size for split in splits),
        partitions=len({tuple(split.partition.values()) for split in splits}),
        buckets=len({(tuple(split.partition.values()), split.bucket) for split in splits}),
    )
    by = ", ".join(f"{each.column} joins {each.other.identifier}.{each.other_column}" for each in columns)
    step = Step(pruner.name, before, after, by)
    report = dataclasses.replace(planned.report, steps=(*planned.report.steps, step))
    return dataclasses.replace(planned, splits=splits, report=report)
