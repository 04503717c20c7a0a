"""Impact: all direct and indirect readers of a table or a column."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from lockgate.framework.lineage.model.edge_kinds import EVERY, kind_names
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import Vertex, processes, vertices


@dataclass(frozen=True)
class ColumnReader:
    """A direct or indirect reader of a column: its vertex, process, kinds of edges and distance in edges.

    `last` is the time of the last run, in milliseconds since the epoch; `succeeded`: at least one run
    succeeded.
    """

    vertex: Vertex
    process: str
    kinds: tuple[str, ...]
    depth: int
    last: int | None
    succeeded: bool = True


def readers(
    database: sqlite3.Connection, starts: Collection[int], *, depth: int | None = None
) -> list[ColumnReader]:
    """Return the readers of these columns, the nearest first, without dropped tables and columns."""
    steps = trace(database, starts, "forward", kinds=int(EVERY), depth=depth).steps
    names = vertices(database, {step.target for step, _ in steps})
    processes_by_number = processes(database, {step.process for step, _ in steps})
    start_tables = {vertex.dataset for vertex in vertices(database, set(starts)).values()}
    readers_by_name: dict[tuple[str, str], ColumnReader] = {}
    for step, level in steps:
        vertex, process = names[step.target], processes_by_number[step.process]
        if vertex.is_dropped or vertex.dataset in start_tables:
            continue
        kinds, succeeded = tuple(kind_names(step.kinds)), process["failed"] < process["count"]
        reader = ColumnReader(vertex, process["kind"], kinds, level, process["last"], succeeded)
        readers_by_name.setdefault((vertex.qualified, reader.process), reader)
    return sorted(
        readers_by_name.values(), key=lambda each: (each.depth, each.vertex.qualified, each.process)
    )
