"""Conversion of OpenLineage events of other engines to records, with the columns of their facets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lockgate.framework.lineage.export.openlineage_names import path_of
from lockgate.framework.lineage.model.edge_kinds import OF_ROWS, EdgeKind
from lockgate.framework.lineage.model.lineage_records import Dataset, Record, Run, Shape

_MASKED = {"IDENTITY": 8, "TRANSFORMATION": 16, "AGGREGATION": 32}


def record_of(event: Mapping[str, Any], warehouse: str) -> Record | None:
    """Return the record of an event that ends a run; None for any other event.

    Datasets in the namespace `warehouse` belong to the warehouse. Raises KeyError, TypeError or ValueError
    for a malformed event.
    """
    if event["eventType"] not in ("COMPLETE", "FAIL", "ABORT"):
        return None
    inputs = [_dataset(each, warehouse) for each in event.get("inputs", ())]
    outputs = event.get("outputs") or [None]
    output = outputs[0]
    numbers = {dataset: number for number, dataset in enumerate(inputs)}
    facet = {} if output is None else output.get("facets", {}).get("columnLineage", {})
    edges, rows = _edges(facet, numbers, warehouse)
    shape = Shape(
        kind="IMPORTED",
        target=None if output is None else _dataset(output, warehouse),
        inputs=tuple(numbers),
        edges=tuple(sorted(edges)),
        rows=tuple(sorted(rows)),
        columns=tuple(sorted({column for column, *_ in edges})),
        name=f"{event['job']['namespace']}/{event['job']['name']}",
    )
    at = int(datetime.fromisoformat(str(event["eventTime"])).timestamp() * 1000)
    failed = event["eventType"] != "COMPLETE"
    return Record(shape, Run(at, at, failed=int(failed), which={"producer": str(event["producer"])}))


def _edges(
    facet: Mapping[str, Any], numbers: dict[Dataset, int], warehouse: str
) -> tuple[set[tuple[str, int, str, int]], set[tuple[int, str, int]]]:
    edges: dict[tuple[str, int, str], int] = {}
    rows: dict[tuple[int, str], int] = {}
    for column, found in facet.get("fields", {}).items():
        for each in found["inputFields"]:
            number = numbers.setdefault(_dataset(each, warehouse), len(numbers))
            kinds = _kinds(each.get("transformations", ()))
            if kinds & ~OF_ROWS:
                key = (str(column), number, str(each["field"]))
                edges[key] = edges.get(key, 0) | int(kinds & ~OF_ROWS)
            if kinds & OF_ROWS:
                row = (number, str(each["field"]))
                rows[row] = rows.get(row, 0) | int(kinds & OF_ROWS)
    for each in facet.get("dataset", ()):
        row = (numbers.setdefault(_dataset(each, warehouse), len(numbers)), str(each["field"]))
        rows[row] = rows.get(row, 0) | int(_kinds(each.get("transformations", ())) & OF_ROWS)
    return {(*key, kinds) for key, kinds in edges.items()}, {(*key, kinds) for key, kinds in rows.items()}


def _kinds(transformations: Iterable[Mapping[str, Any]]) -> EdgeKind:
    found = EdgeKind(0)
    for each in transformations:
        name = str(each.get("subtype") or "").upper()
        if each.get("masking") and name in _MASKED:
            found |= EdgeKind(_MASKED[name])
        elif name in EdgeKind.__members__:
            found |= EdgeKind[name]
        else:
            found |= EdgeKind.OPAQUE | EdgeKind.TRANSFORMATION
    # Without transformations, the spec only states that the target depends on the source.
    return found or EdgeKind.TRANSFORMATION


def _dataset(found: Mapping[str, Any], warehouse: str) -> Dataset:
    namespace, name = str(found["namespace"]), str(found["name"])
    if namespace == warehouse:
        return Dataset(name)
    path = path_of(namespace, name)
    return Dataset(path, "file") if path is not None else Dataset(name, "table", namespace)
