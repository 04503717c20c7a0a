"""Apache Atlas v2 entities: processes and column lineage, with the type definitions and the tables they name.

A message contains all entities that it refers to, because Atlas refuses unknown guids. Guids begin with `-`,
Atlas's mark of guids within a message; Atlas finds existing entities by `qualifiedName`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from lockgate.framework.lineage.model.edge_kinds import EdgeKind
from lockgate.framework.lineage.questions.graph import Graph
from lockgate.framework.lineage.questions.vertices import Vertex, processes, vertices


def _attribute(name: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "typeName": kind, "isOptional": True, "cardinality": "SINGLE"}


ATLAS_TYPES: dict[str, Any] = {
    "entityDefs": [
        {"name": "lockgate_dataset", "superTypes": ["DataSet"], "attributeDefs": [_attribute("kind")]},
        {
            "name": "lockgate_column",
            "superTypes": ["DataSet"],
            "attributeDefs": [_attribute("dataset", "lockgate_dataset")],
        },
        {
            "name": "lockgate_process",
            "superTypes": ["Process"],
            "attributeDefs": [
                *map(_attribute, ("operationType", "queryText", "userName")),
                *(_attribute(name, "date") for name in ("startTime", "endTime")),
                _attribute("runs", "long"),
            ],
        },
        {
            "name": "lockgate_column_lineage",
            "superTypes": ["Process"],
            "attributeDefs": [_attribute("dependencyType"), _attribute("query", "lockgate_process")],
        },
    ]
}
"""The type definitions, sent to `/api/atlas/v2/types/typedefs` once."""


def entities(database: sqlite3.Connection, warehouse: str, numbers: Collection[int]) -> dict[str, Any]:
    """Return `AtlasEntitiesWithExtInfo` of the processes of `numbers`.

    Names end with `@` and the warehouse's address.
    """
    return _Message(database, warehouse).build(numbers)


class _Message:
    def __init__(self, database: sqlite3.Connection, warehouse: str) -> None:
        self._database, self._warehouse = database, warehouse
        self._graph = Graph(database)
        self._referred: dict[str, dict[str, Any]] = {}
        self._guids: dict[str, str] = {}

    def build(self, numbers: Collection[int]) -> dict[str, Any]:
        entities = [
            each
            for process in processes(self._database, numbers).values()
            for each in self._process_entities(process)
        ]
        return {"entities": entities, "referredEntities": self._referred}

    def _process_entities(self, process: Mapping[str, Any]) -> list[dict[str, Any]]:
        number, run = process["id"], process["run"] or {}
        rows = self._database.execute("SELECT DISTINCT dataset FROM input WHERE process = ?", (number,))
        targets = [] if process["target"] is None else [-process["target"]]
        inputs = [-row[0] for row in rows]
        whole = vertices(self._database, [*inputs, *targets])
        attributes = {
            "qualifiedName": f"{process['hash']}@{self._warehouse}",
            "name": process["name"] or process["kind"],
            "inputs": [self._refer(whole[key]) for key in inputs],
            "outputs": [self._refer(whole[key]) for key in targets],
            "operationType": process["kind"],
            "queryText": run.get("how", ""),
            "userName": process["createBy"],
            "startTime": run.get("started"),
            "endTime": run.get("ended"),
            "runs": process["count"],
        }
        guid = self._guid(process["guid"])
        entity = {"typeName": "lockgate_process", "guid": guid, "attributes": attributes}
        return [entity, *self._columns(process)]

    def _columns(self, process: Mapping[str, Any]) -> list[dict[str, Any]]:
        steps = [] if process["target"] is None else self._graph.steps_by(process["id"], process["target"])
        names = vertices(self._database, {number for a, b, *_ in steps for number in (a, b)})
        sources: dict[int, list[tuple[int, int]]] = {}
        for target, source, _, kinds in steps:
            sources.setdefault(target, []).append((source, kinds))
        return [self._column(process, names, target, found) for target, found in sources.items()]

    def _column(
        self,
        process: Mapping[str, Any],
        names: Mapping[int, Vertex],
        target: int,
        sources: list[tuple[int, int]],
    ) -> dict[str, Any]:
        simple = all(kinds == EdgeKind.IDENTITY for _, kinds in sources)
        name = f"{process['hash']}:{names[target].column}@{self._warehouse}"
        return {
            "typeName": "lockgate_column_lineage",
            "guid": self._guid(name),
            "attributes": {
                "qualifiedName": name,
                "name": name,
                "inputs": [self._refer(names[source]) for source, _ in sources],
                "outputs": [self._refer(names[target])],
                "dependencyType": "SIMPLE" if simple else "EXPRESSION",
                "query": {"typeName": "lockgate_process", "guid": self._guid(process["guid"])},
            },
        }

    def _refer(self, vertex: Vertex) -> dict[str, str]:
        guid = self._guid(f"{vertex.type}:{vertex.qualified}")
        kind = "lockgate_dataset" if vertex.column is None else "lockgate_column"
        attributes: dict[str, Any] = {
            "qualifiedName": f"{vertex.qualified}@{self._warehouse}",
            "name": vertex.qualified if vertex.column is None else vertex.column,
        }
        if guid in self._referred:
            return {"typeName": kind, "guid": guid}
        self._referred[guid] = {"typeName": kind, "guid": guid, "attributes": attributes}
        if vertex.column is None:
            attributes["kind"] = vertex.type
        else:
            [whole] = vertices(self._database, [-vertex.dataset]).values()
            attributes["dataset"] = self._refer(whole)
        return {"typeName": kind, "guid": guid}

    def _guid(self, name: str) -> str:
        return self._guids.setdefault(name, f"-{len(self._guids) + 1}")
