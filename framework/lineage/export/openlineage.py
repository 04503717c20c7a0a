"""OpenLineage events (spec 2-0-2) of the processes of an index, with the facet `columnLineage` 1-2-0.

Datasets of the warehouse are named by its address (namespace) and `database.table` (name). A process is a
job, its last run is a START and a COMPLETE or FAIL.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from lockgate.framework.lineage.export.openlineage_names import file_name
from lockgate.framework.lineage.model.edge_kinds import MASKED, EdgeKind
from lockgate.framework.lineage.model.lineage_records import WHOLE
from lockgate.framework.lineage.questions.graph import Graph
from lockgate.framework.lineage.questions.vertices import Vertex, processes, vertices
from lockgate.framework.version import VERSION

# The specification requires a URI.
PRODUCER = f"urn:lockgate:{VERSION}"
_SPEC = "https://openlineage.io/spec"
SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = f"{_SPEC}/facets"
_CHUNK = 1_000
_DIRECT = (
    (EdgeKind.IDENTITY | EdgeKind.MASKED_IDENTITY, "IDENTITY"),
    (EdgeKind.TRANSFORMATION | EdgeKind.MASKED_TRANSFORMATION, "TRANSFORMATION"),
    (EdgeKind.AGGREGATION | EdgeKind.MASKED_AGGREGATION, "AGGREGATION"),
)
_INDIRECT = (
    EdgeKind.CONDITIONAL,
    EdgeKind.WINDOW,
    EdgeKind.FILTER,
    EdgeKind.JOIN,
    EdgeKind.GROUP_BY,
    EdgeKind.SORT,
)


def events(database: sqlite3.Connection, warehouse: str, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield two events of the last run of each process of `numbers`, in their order.

    `warehouse` is the address of the warehouse.
    """
    graph, order = Graph(database), list(numbers)
    for at in range(0, len(order), _CHUNK):
        some = order[at : at + _CHUNK]
        found = processes(database, some)
        for number in some:
            yield from _Job(graph, found[number], warehouse).events()


class _Job:
    """One process as a job with a run."""

    def __init__(self, graph: Graph, process: Mapping[str, Any], warehouse: str) -> None:
        self._graph, self._database = graph, graph.database
        self._process, self._warehouse = process, warehouse
        self._run: Mapping[str, Any] = process["run"] or {}

    def events(self) -> Iterator[dict[str, Any]]:
        yield self._event("START", self._run.get("started", 0)) | {"inputs": [], "outputs": []}
        ended = "FAIL" if self._run.get("failed") else "COMPLETE"
        event = self._event(ended, self._run.get("ended", 0))
        if ended == "FAIL":
            message = {"message": self._run.get("error") or "failed", "programmingLanguage": "JAVA"}
            event["run"]["facets"]["errorMessage"] = _facet("ErrorMessageRunFacet", "1-0-1", message)
        yield event | {"inputs": self._inputs(), "outputs": self._outputs()}

    def _event(self, kind: str, millis: int) -> dict[str, Any]:
        name = self._process["name"] or f"{self._process['kind'].lower()}.{self._process['hash'][:12]}"
        facets: dict[str, Any] = {
            "jobType": _facet(
                "JobTypeJobFacet",
                "2-0-4",
                {"processingType": self._processing(), "integration": "LOCKGATE", "jobType": "QUERY"},
            )
        }
        if self._run.get("how"):
            facets["sql"] = _facet("SQLJobFacet", "1-1-0", {"query": self._run["how"]})
        engine = {"version": self._run.get("which", {}).get("spark", "unknown"), "name": "spark"}
        return {
            "eventType": kind,
            "eventTime": _time(millis),
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
            "run": {
                "runId": str(uuid.uuid5(uuid.UUID(self._process["guid"]), str(self._run.get("started", 0)))),
                "facets": {"processing_engine": _facet("ProcessingEngineRunFacet", "1-1-1", engine)},
            },
            "job": {"namespace": self._warehouse, "name": name, "facets": facets},
        }

    def _processing(self) -> str:
        return "STREAMING" if self._process["kind"] == "STREAM" else "BATCH"

    def _inputs(self) -> list[dict[str, Any]]:
        rows = self._database.execute(
            "SELECT DISTINCT dataset FROM input WHERE process = ?", (self._process["id"],)
        )
        found = vertices(self._database, [-row[0] for row in rows])
        return [{**self._name(vertex), "facets": {}} for vertex in found.values()]

    def _outputs(self) -> list[dict[str, Any]]:
        if self._process["target"] is None:
            return []
        [vertex] = vertices(self._database, [-self._process["target"]]).values()
        facets: dict[str, Any] = {}
        lineage = self._columns()
        if lineage["fields"] or lineage.get("dataset"):
            facets["columnLineage"] = _facet("ColumnLineageDatasetFacet", "1-2-0", lineage)
        if self._run.get("written") is not None:
            version = {"datasetVersion": str(self._run["written"])}
            facets["version"] = _facet("DatasetVersionDatasetFacet", "1-0-1", version)
        return [{**self._name(vertex), "facets": facets, "outputFacets": self._statistics()}]

    def _statistics(self) -> dict[str, Any]:
        counts = {"rowCount": self._run.get("rows"), "size": self._run.get("bytes")}
        measures = {key: value for key, value in counts.items() if value is not None}
        if not measures:
            return {}
        return {"outputStatistics": _facet("OutputStatisticsOutputDatasetFacet", "1-0-2", measures)}

    def _columns(self) -> dict[str, Any]:
        steps = self._graph.steps_by(self._process["id"], self._process["target"])
        rows = self._database.execute(
            "SELECT source, kinds FROM row_edge WHERE process = ?", (self._process["id"],)
        ).fetchall()
        names = vertices(self._database, {n for a, b, *_ in steps for n in (a, b)} | {n for n, _ in rows})
        fields: dict[str, Any] = {}
        for target, source, _, kinds in steps:
            column = names[target].column or WHOLE
            fields.setdefault(column, {"inputFields": []})["inputFields"].append(
                self._field(names[source], kinds)
            )
        found: dict[str, Any] = {"fields": fields}
        if rows:
            found["dataset"] = [self._field(names[source], kinds) for source, kinds in rows]
        return found

    def _field(self, vertex: Vertex, kinds: int) -> dict[str, Any]:
        found = {**self._name(vertex), "field": vertex.column or WHOLE}
        return {**found, "transformations": transformations(kinds)}

    def _name(self, vertex: Vertex) -> dict[str, str]:
        if vertex.type == "file" and not vertex.namespace:
            namespace, name = file_name(vertex.name)
            return {"namespace": namespace, "name": name}
        return {"namespace": vertex.namespace or self._warehouse, "name": vertex.name}


def transformations(kinds: int) -> list[dict[str, Any]]:
    """Return OpenLineage's transformations for the kinds of an edge."""
    found = []
    for group, name in _DIRECT:
        for kind in EdgeKind:
            if kind & group & kinds:
                masked = bool(kind & MASKED)
                found.append({"type": "DIRECT", "subtype": name, "description": "", "masking": masked})
    for kind in _INDIRECT:
        if kind & kinds:
            found.append({"type": "INDIRECT", "subtype": kind.name, "description": "", "masking": False})
    return found or [{"type": "INDIRECT", "subtype": "OPAQUE", "description": "", "masking": False}]


def _facet(name: str, version: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{version}/{name}.json#/$defs/{name}", **values}


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat().replace("+00:00", "Z")
