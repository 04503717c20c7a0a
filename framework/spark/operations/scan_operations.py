"""Operations on scans: accepted filters, files to read, rows of system tables."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

from lockgate.errors import MaskedDataWarning, warn_user
from lockgate.framework.access import ALLOWED, Decision, Visibility, answering_statement
from lockgate.framework.plugins import plugins
from lockgate.framework.spark.context.open_catalogs import strict
from lockgate.framework.spark.context.operation_context import OperationContext, batch_properties
from lockgate.framework.spark.enforcement.decisions import (
    check_grant,
    readable_columns,
    rights_of_scan,
    whole_refusal_without_columns,
)
from lockgate.framework.spark.messages.scan_messages import (
    BucketingJson,
    ColumnEstimateJson,
    FiltersAnswer,
    FiltersRequest,
    PlanAnswer,
    PlanRequest,
    ScanRequest,
    SelectiveRequest,
    SplitSizes,
)
from lockgate.framework.spark.operations.data_files import (
    check_spark_types,
    fields_of,
    fits_on_driver,
    split_message,
)
from lockgate.framework.spark.operations.plans.file_rewrites import REWRITE, as_rewrite_reads
from lockgate.framework.spark.operations.plans.joined_scans import narrowed_by_joins, reads_named_snapshot
from lockgate.framework.spark.operations.plans.scan_metrics import metrics_of
from lockgate.framework.spark.operations.system_operations import KEEP_DELETES, snapshot_source, view_of
from lockgate.framework.store import SNAPSHOT_SOURCE, visibility
from lockgate.pushdown import (
    AlwaysTrue,
    Predicate,
    ScanReport,
    SortKey,
    all_of,
    columns_of,
    describe,
    from_json,
    necessary_condition,
    reason_unsupported,
    unsupported_reason,
)

if TYPE_CHECKING:
    from lockgate.framework.store import MergePlanJson, ScanPlan, ScanSource, Selection, StripeRange, Table

# Spark's option: it prunes by a join's values only where it need not compute them again.
_SAME_BROADCAST = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"


def filters(context: OperationContext, request: FiltersRequest) -> FiltersAnswer:
    """Say by index which filters are accepted and which remain."""
    offered = request["filters"]
    parsed = [from_json(item) for item in offered]
    reasons = [
        reason_unsupported(item) if each is None else None for item, each in zip(offered, parsed, strict=True)
    ]
    pushed = context.source(context.table()).apply_filters(parsed).with_reasons(reasons)
    context.dispatcher.reports.remember_filters(request["scan_id"], pushed, request["texts"])
    return {
        "accepted": [item.index for item in pushed.accepted],
        "remaining": [item.index for item in pushed.remaining],
    }


def plan(context: OperationContext, request: PlanRequest) -> PlanAnswer:
    """Choose the files of a scan."""
    with answering_statement(request["statement"]):
        return _planned(context, as_rewrite_reads(context, request))


def _planned(context: OperationContext, request: PlanRequest) -> PlanAnswer:
    started = time.monotonic()
    table = context.table()
    offered = _parsed((*request["filters"], *request["runtime_filters"]))
    needed = {*request["columns"], *(path[0] for path in columns_of(offered))}
    is_strict = request["strict"]
    seen = visibility(table, readable=readable_columns(context))
    if not is_strict:
        warn_of_masks(table, seen, needed)
    planned_before = context.dispatcher.reports.report(request["scan_id"]) is not None
    with whole_refusal_without_columns(context, table):
        planned = _plan(context, table, needed, request, again=planned_before)
    if request["joined"]:
        partner, selected = partial(_plan, again=True), partial(selected_by, context)
        planned = narrowed_by_joins(context, table, planned, request["joined"], partner, selected)
    if request["files"] is not None:
        planned = _only_files(context, table, planned, frozenset(request["files"]))
    if is_strict:
        # A column that is not read may be under a key that is not held. A file can then be opened only like
        # this.
        is_strict = table.require_keys(seen, planned, sorted(needed), "changing rows of")
    context.dispatcher.reports.remember_report(
        request["scan_id"], _report(context, table, planned.report, request)
    )
    keep_deletes = view_of(request["name"]) in KEEP_DELETES
    stripes = {} if request["whole_files"] else table.stripe_ranges(planned)
    reply = plan_answer(
        context, table, planned, request, is_strict=is_strict, keep_deletes=keep_deletes, stripes=stripes
    )
    reply["keepable"] = not is_strict and _is_keepable(context, table, planned, request, needed)
    if request["estimates"]:
        reply["columns"] = _estimates(planned, request["columns"])
    reply["metrics"] = metrics_of(planned, time.monotonic() - started)
    return reply


def _is_keepable(
    context: OperationContext, table: Table, planned: ScanPlan, request: PlanRequest, needed: AbstractSet[str]
) -> bool:
    """Say whether the snapshot that the request names is all that the rows depend on.

    Rows that need a key do not outlive their query: a user who loses the key must lose them too.
    """
    is_pinned = reads_named_snapshot(table, request, partial(selected_by, context))
    if not is_pinned or table.leaves_files_out:
        return False
    merging = any(split.merge for split in planned.splits)
    return not any(merging or use.column in needed for use in planned.key_uses)


def _estimates(planned: ScanPlan, columns: Sequence[str]) -> dict[str, ColumnEstimateJson]:
    """Return what is known of columns for an optimizer that counts costs."""
    return {
        name: {"nulls": each.nulls, "distinct": each.distinct, "min": each.min, "max": each.max}
        for name, each in planned.estimates(columns).items()
    }


def selective(context: OperationContext, request: SelectiveRequest) -> list[str]:
    """Return the columns by whose values, known only at run time, files are worth leaving out."""
    from lockgate.framework.store import ReadRequest

    table = context.table()
    # Its snapshot is chosen when a batch is planned, not before; a rewrite reads all its files.
    if {SNAPSHOT_SOURCE.key, REWRITE} & request["options"].keys():
        return []
    selected = selected_by(context, table, request)
    if selected.between is None and not selected.snapshot_id:
        return []
    wanted = ReadRequest(
        columns=tuple(request["columns"]),
        snapshot_id=None if selected.between else selected.snapshot_id,
        between=selected.between,
    )
    return context.source(table, wanted).runtime_filter_columns()


def _split_sizes(sizes: Mapping[str, int | None]) -> SplitSizes:
    return {
        "target_size": sizes["source.split.target-size"],
        "open_file_cost": sizes["source.split.open-file-cost"],
    }


def _bucketing(planned: ScanPlan) -> BucketingJson | None:
    found = planned.bucketing
    if found is None:
        return None
    keys = list(planned.schema.partition_keys)
    return {"column": found.column, "count": found.count, "partition_columns": keys}


def _plan(
    context: OperationContext,
    table: Table,
    needed: AbstractSet[str],
    request: PlanRequest,
    *,
    again: bool = False,
) -> ScanPlan:
    """Plan a scan; `again`: of a search that observers have been told of."""
    from lockgate.framework.store import ReadRequest, require_unrestricted

    selected = selected_by(context, table, request, batch_properties(request["properties"]))
    table.check_view(view_of(request["name"]), selected.between)
    late = [each for each in map(from_json, request["runtime_filters"]) if each is not None]
    drops = bool(late) and _drops_late_failures(context, request)
    required = _required(table, request)
    decided, between = _granted(context, table, needed, request), selected.between
    if decided is not None and between is not None:  # policies hide something of the table
        between = dataclasses.replace(between, whole=True)
    source = context.source(
        table,
        ReadRequest(
            predicate=all_of(*required, *(late if drops else ())),
            snapshot_id=None if selected.between else selected.snapshot_id,
            between=between,
            strict=request["strict"],
            own_schema=False,
            read_optimized=view_of(request["name"]) == "ro",
            decided=decided,
            again=again,
        ),
    )
    source.apply_filters([from_json(item) for item in request["filters"]])
    source.apply_runtime_filters([] if drops else late)
    source.apply_projection([(name,) for name in request["columns"]])
    _cut(source, _order(table, request), request)
    planned = source.plan()
    # Executors read the stored values: nothing there leaves out rows or applies masks.
    require_unrestricted(table, planned.decision, "a scan by Spark")
    return planned


def _required(table: Table, request: PlanRequest) -> list[Predicate]:
    """Return what the conditions that Spark evaluates itself require of columns."""
    found = [necessary_condition(node, table.schema.partition_keys) for node in request["conditions"]]
    schema = table.schema.arrow_schema
    return [each for each in found if each != AlwaysTrue() and unsupported_reason(each, schema) is None]


def _cut(source: ScanSource, order: tuple[SortKey, ...], request: PlanRequest) -> None:
    """Offer the limit, with the order that rows come in; what no statistics order may put every row first."""
    limit = request["limit"]
    if limit is None:
        return
    if order:
        source.apply_top_n(order, limit)
    elif not request["order"]:
        source.apply_limit(limit)


def _granted(
    context: OperationContext, table: Table, needed: AbstractSet[str], request: PlanRequest
) -> Decision | None:
    """Return the decision of a scan whose plan puts on row filter and masks; None if there is none yet."""
    if request["grant"] is None or not plugins().decides_access():
        return None
    check_grant(context, table, needed & {*table.schema.field_names}, request["grant"])
    return ALLOWED


def _order(table: Table, request: PlanRequest) -> tuple[SortKey, ...]:
    """Return the columns that rows are sorted by first, up to the first key that is another thing."""
    keys = []
    for item in request["order"]:
        path = item["expression"].get("col")
        if path is None or path[0] not in table.schema.field_names:
            break
        keys.append(SortKey(tuple(path), item["descending"], item["nulls_first"]))
    return tuple(keys)


def _only_files(
    context: OperationContext, table: Table, planned: ScanPlan, wanted: frozenset[str]
) -> ScanPlan:
    """Leave out the files that have no row to change, as a query of Spark's own has found."""
    splits = []
    for split in planned.splits:
        kept = split.only(lambda path: context.hadoop_path(table, path) in wanted)
        if kept.files:
            splits.append(kept)
    return dataclasses.replace(planned, splits=tuple(splits))


def _parsed(filters: Sequence[Any]) -> Predicate:
    """Join filters by AND; one we cannot read leaves nothing out."""
    parsed = [from_json(item) for item in filters]
    return all_of(*(item for item in parsed if item is not None))


def _drops_late_failures(context: OperationContext, request: PlanRequest) -> bool:
    """Say whether Spark drops the rows that fail filters known only at run time; see `store.late_filters`.

    A join does, if what it pruned by are the very values that it joins with: a broadcast used twice. The keys
    that UPDATE, DELETE and MERGE look for are asked of no row again.
    """
    if request["changes_rows"]:
        return False
    return str(context.spark.conf.get(_SAME_BROADCAST, "true")).lower() == "true"


def selected_by(
    context: OperationContext,
    table: Table,
    request: ScanRequest,
    properties: Mapping[str, str | None] | None = None,
) -> Selection:
    """Return which snapshot, or which range of snapshots, the options of a query select; else the table's."""
    from lockgate.framework.store import Selection, check_readable

    options = request["options"]
    if SNAPSHOT_SOURCE.key in options:
        check_readable(table.schema)
        source = snapshot_source(options[SNAPSHOT_SOURCE.key])
        return Selection(source.snapshot_id(context, table, options, properties or {}))
    timed = any("timestamp" in key.lower() for key in (*options, *table.schema.options))
    return table.selection_for(
        options,
        str(context.spark.conf.get("spark.sql.session.timeZone")) if timed else "UTC",
        snapshot=request["snapshot_id"],
        travels=request["time_travel"],
        writes=request["strict"] or request["changes_rows"] or bool(context.privileges),
    )


def warn_of_masks(table: Table, seen: Visibility, columns: set[str]) -> None:
    """Warn the user of columns that are read as masks."""
    masked = seen.missing_keys(columns)
    if masked:
        names = ", ".join(f"{column} (key {key})" for column, key in sorted(masked.items()))
        unverified = "" if seen.held else "; without any key files are read unverified"
        warn_user(
            f"table {table.identifier}: without its key a column is read as its mask: {names}{unverified}",
            MaskedDataWarning,
        )


def _report(context: OperationContext, table: Table, report: ScanReport, request: PlanRequest) -> ScanReport:
    offered = context.dispatcher.reports.filters(request["scan_id"])
    runtime = [from_json(item) for item in request["runtime_filters"]]
    notes = [f"filter known only at run time: {describe(item)}" for item in runtime if item is not None]
    columns, limit = tuple(request["columns"]), request["limit"]
    return dataclasses.replace(
        report,
        skipping=(*report.skipping, *map(describe, _required(table, request))),
        remaining=offered.remaining(),
        columns=columns,
        limit=limit,
        aggregates=context.dispatcher.reports.aggregates(request["scan_id"]),
        notes=(*report.notes, *notes),
    )


def plan_answer(
    context: OperationContext,
    table: Table,
    planned: ScanPlan,
    request: ScanRequest,
    *,
    is_strict: bool = False,
    keep_deletes: bool = False,
    stripes: Mapping[str, Sequence[StripeRange]] | None = None,
) -> PlanAnswer:
    """Return the message on a plan, without estimates and figures.

    `stripes` are those to be read of some files, by path.
    """
    columns = planned.schema.field_names if planned.columns is None else planned.columns
    check_spark_types(planned.schema, columns, planned.schemas.values())
    merging = any(split.merge for split in planned.splits)
    scope, withheld = None, frozenset[str]()
    if table.keys is not None:
        merged = planned.schema if merging else None
        rights, withheld = rights_of_scan(context, table, planned.key_uses, merged)
        scope = context.dispatcher.scopes.register(table.keys, withheld=withheld, rights=rights)
    sizes = table.split_sizes(request["options"])
    stripes = stripes or {}
    return {
        "snapshot_id": planned.snapshot_id or 0,
        "rows": planned.row_count,
        "bytes": planned.total_bytes,
        "key_scope": strict(scope) if scope and is_strict else scope,
        "integrity": table.integrity_mode(planned, withheld),
        "merge_plan": _merge_plan(planned, keep_deletes=keep_deletes) if merging else None,
        "schema_id": planned.schema.id,
        "schemas": {str(number): fields_of(schema) for number, schema in planned.schemas.items()},
        "splits": [
            split_message(context, table, planned.schema, split, stripes=stripes) for split in planned.splits
        ],
        "split_sizes": _split_sizes(sizes),
        "on_driver": fits_on_driver(planned, stripes, sizes["source.split.driver-max-size"]),
        "bucketing": _bucketing(planned),
        "keepable": False,
        "columns": None,
        "metrics": {},
    }


def _merge_plan(planned: ScanPlan, *, keep_deletes: bool) -> MergePlanJson | None:
    return None if planned.merge_plan is None else planned.merge_plan.to_json(keep_deletes=keep_deletes)


OPERATIONS = {
    "scan.filters": filters,
    "scan.plan": plan,
    "scan.selective": selective,
}
