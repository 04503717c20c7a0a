"""The operation on aggregates: what metadata answers of a query's COUNT, MIN and MAX."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lockgate.framework.access import answering_statement
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.decisions import decision_as_stored, whole_refusal_without_columns
from lockgate.framework.spark.messages.scan_messages import (
    AggregatesAnswer,
    AggregatesFound,
    AggregatesRequest,
)
from lockgate.framework.spark.operations.plans.scan_metrics import skipped_by
from lockgate.framework.spark.operations.scan_operations import selected_by
from lockgate.framework.spark.operations.system_operations import view_of
from lockgate.framework.store import SNAPSHOT_SOURCE
from lockgate.framework.types import BIGINT, DataField, DataType, to_spark_json, value_to_json
from lockgate.pushdown import Aggregate, Function, Predicate, columns_of, describe_json, from_json

if TYPE_CHECKING:
    from lockgate.framework.store import Table, TableSchema
    from lockgate.framework.store.scan.metadata_aggregates import AggregateAnswer

_FUNCTIONS = {function.value: function for function in Function}


def aggregates(context: OperationContext, request: AggregatesRequest) -> AggregatesAnswer:
    """Answer all aggregates of a query, or say that Spark must compute them."""
    started = time.monotonic()
    table = context.table()
    with answering_statement(request["statement"]):
        shown, answer = _answer(context, table, request)
    reports, scan_id = context.dispatcher.reports, request["scan_id"]
    reports.remember_aggregates(scan_id, shown)
    if answer is None or answer.rows is None:
        return {"found": None}
    reports.remember_report(scan_id, answer.report)
    fields = _fields(table.schema, [path[0] for path in _paths(request["group_by"]) or ()], answer)
    found: AggregatesFound = {
        "snapshot_id": answer.report.snapshot_id or 0,
        "schema": to_spark_json(fields),
        "rows": [
            [value_to_json(field.type, value) for field, value in zip(fields, row, strict=True)]
            for row in zip(*(column.to_pylist() for column in answer.rows.columns), strict=True)
        ],
        "metrics": {
            "planning_ms": round((time.monotonic() - started) * 1000),
            "manifests": answer.report.manifests,
            "files": 0,
            "bytes": 0,
            skipped_by("partitions"): answer.report.total.files - answer.report.kept.files,
            "answered_from_metadata": answer.report.kept.files,
        },
    }
    return {"found": found}


def _answer(
    context: OperationContext, table: Table, request: AggregatesRequest
) -> tuple[tuple[tuple[str, str], ...], AggregateAnswer | None]:
    """Return what is said of each aggregate, and the answer; None if the question cannot be expressed."""
    from lockgate.framework.store import ReadRequest

    group_by = _paths(request["group_by"])
    asked = [_aggregate(node) for node in request["aggregates"]]
    filters = [from_json(item) for item in request["filters"]]
    supported = [each for each in asked if each is not None]
    named = [path[0] for path in (*(each.field for each in supported), *(group_by or ())) if path]
    unknown = any(name not in table.schema.field_names for name in named)  # metadata columns
    if group_by is None or len(supported) < len(asked) or None in filters or unknown:
        reason = "remains because COUNT, MIN and MAX of columns, grouped by columns, are all that is answered"
        return tuple((_text(node), reason) for node in request["aggregates"]), None
    if SNAPSHOT_SOURCE.key in request["options"]:
        reason = "remains because its snapshot is chosen when a batch is planned"
        return tuple((str(each), reason) for each in supported), None
    selected = selected_by(context, table, request)
    if selected.between:
        reason = "remains because a range of snapshots is read"
        return tuple((str(each), reason) for each in supported), None
    wanted = ReadRequest(
        snapshot_id=selected.snapshot_id,
        own_schema=False,
        read_optimized=view_of(request["name"]) == "ro",
        decided=decision_as_stored(context, table, {*named, *_named_in(filters)}),
    )
    source = context.source(table, wanted)
    source.apply_filters(filters)
    source.apply_aggregates(supported, group_by)
    with whole_refusal_without_columns(context, table):
        answer = source.aggregates()
    return answer.report.aggregates, answer


def _named_in(filters: Iterable[Predicate | None]) -> set[str]:
    return {path[0] for each in filters if each is not None for path in columns_of(each)}


def _paths(nodes: list[dict[str, Any]]) -> list[tuple[str, ...]] | None:
    """Return the columns of expressions; None unless all are columns."""
    paths = [node.get("col") for node in nodes]
    return None if None in paths else [tuple(path or ()) for path in paths]


def _aggregate(node: dict[str, Any]) -> Aggregate | None:
    function = _FUNCTIONS.get(node.get("op", ""))
    paths = _paths(node.get("args", []))
    if function is None or paths is None or len(paths) > 1:
        return None
    return Aggregate(function, paths[0] if paths else None)


def _text(node: dict[str, Any]) -> str:
    return str(node["text"]) if node.get("op") == "?" and "text" in node else describe_json(node)


def _fields(schema: TableSchema, group_by: list[str], answer: AggregateAnswer) -> list[DataField]:
    types: list[tuple[str, DataType]] = [(name, schema.field(name).type) for name in group_by]
    for each in answer.push_down.accepted:
        column = None if each.function is Function.COUNT or each.field is None else each.field[0]
        data_type = BIGINT if column is None else schema.field(column).type
        types.append((str(each), data_type))
    return [
        DataField(number, name, data_type.with_nullable(True))
        for number, (name, data_type) in enumerate(types)
    ]


OPERATIONS = {"scan.aggregates": aggregates}
