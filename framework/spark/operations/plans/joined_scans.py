"""Files of a scan that may find partners in the other scans that a query joins it with, as plugins tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TYPE_CHECKING, overload

from lockgate.errors import CorruptFileError, PluginError
from lockgate.framework.plugins import CandidateFile, JoinedColumn, JoinPruner, plugins
from lockgate.framework.store import SNAPSHOT_SOURCE, candidate_of
from lockgate.framework.types import partition_key
from lockgate.pushdown import Step, columns_of, from_json

if TYPE_CHECKING:
    from lockgate.framework.spark.context.operation_context import OperationContext
    from lockgate.framework.spark.messages.scan_messages import (
        JoinedScan,
        PlanRequest,
        PushedScan,
        ScanRequest,
    )
    from lockgate.framework.store import ScanPlan, Selection, Table

    PlanOf = Callable[[OperationContext, Table, AbstractSet[str], PlanRequest], ScanPlan]
    SelectedBy = Callable[[Table, ScanRequest], Selection]


class _OtherFiles(Sequence[CandidateFile]):
    """The files that a query reads of another table, planned when a pruner first looks at them."""

    def __init__(self, plan: Callable[[], list[CandidateFile]]) -> None:
        self._plan = plan

    @cached_property
    def _files(self) -> list[CandidateFile]:
        return self._plan()

    @overload
    def __getitem__(self, index: int) -> CandidateFile: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[CandidateFile]: ...

    def __getitem__(self, index: int | slice) -> CandidateFile | Sequence[CandidateFile]:
        return self._files[index]

    def __len__(self) -> int:
        return len(self._files)


def narrowed_by_joins(
    context: OperationContext,
    table: Table,
    planned: ScanPlan,
    joined: Sequence[JoinedScan],
    plan_of: PlanOf,
    selected_by: SelectedBy,
) -> ScanPlan:
    """Leave out the files of a plan whose rows find no partner in a join.

    `plan_of` plans the other scans, `selected_by` says what they read. One that does not read the snapshot
    that it names leaves no file out: by its next plan it may have other rows, which may be partners. A table
    with a primary key keeps its files: with a newer row gone, an older one would seem to be there.
    """
    pruners = [(name, each) for name, each in plugins().pruners(table) if isinstance(each, JoinPruner)]
    if not pruners or table.schema.has_primary_key or not planned.splits:
        return planned
    columns = [
        found for each in joined if (found := _joined(context, each, plan_of, selected_by)) is not None
    ]
    if not columns:
        return planned
    for plugin, pruner in pruners:
        planned = _narrowed(table, planned, plugin, pruner, columns)
    return planned


def _joined(
    context: OperationContext, joined: JoinedScan, plan_of: PlanOf, selected_by: SelectedBy
) -> JoinedColumn | None:
    about = context.about(joined["other"])
    table, request = about.table(), _to_plan(joined["other"])
    if not reads_named_snapshot(table, request, selected_by):
        return None
    filters = [found for item in request["filters"] if (found := from_json(item)) is not None]
    needed = {*request["columns"], *(path[0] for each in filters for path in columns_of(each))}

    def planned() -> list[CandidateFile]:
        return _candidates(table, plan_of(about, table, needed, request))

    return JoinedColumn(joined["column"], table, joined["other_column"], _OtherFiles(planned))


def reads_named_snapshot(table: Table, request: ScanRequest, selected_by: SelectedBy) -> bool:
    """Say whether each plan of a scan reads the snapshot that the request names, whatever happens between."""
    if SNAPSHOT_SOURCE.key in request["options"] or table.reads_branch:
        return False
    selected = selected_by(table, request)
    return selected.between is None and selected.snapshot_id == request["snapshot_id"]


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
        partitions=len({partition_key(split.partition.values()) for split in splits}),
        buckets=len({(partition_key(split.partition.values()), split.bucket) for split in splits}),
    )
    by = ", ".join(f"{each.column} joins {each.other.identifier}.{each.other_column}" for each in columns)
    step = Step(pruner.name, before, after, by)
    report = dataclasses.replace(planned.report, steps=(*planned.report.steps, step))
    return dataclasses.replace(planned, splits=splits, report=report)
