"""Impact: everything that reads a table or a column, directly or through others."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from lockgate.framework.lineage.model.edge_kinds import EVERY, kind_names
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import Vertex, processes, vertices


@dataclass(frozen=True)
class ColumnReader:
    """Something made with a column: the vertex, by which process, how, and how many steps away.

    `last` is when the process ran last, in milliseconds since the epoch; `succeeded` says whether it ever
    ended well.
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
    """Return what reads these columns, the nearest first; what was dropped since is left out."""
    steps = trace(database, starts, "forward", kinds=int(EVERY), depth=depth).steps
    names = vertices(database, {step.target for step, _ in steps})
    by = processes(database, {step.process for step, _ in steps})
    start_tables = {vertex.dataset for vertex in vertices(database, set(starts)).values()}
    found: dict[tuple[str, str], ColumnReader] = {}
    for step, level in steps:
        vertex, process = names[step.target], by[step.process]
        if vertex.is_dropped or vertex.dataset in start_tables:
            continue
        kinds, succeeded = tuple(kind_names(step.kinds)), process["failed"] < process["count"]
        reader = ColumnReader(vertex, process["kind"], kinds, level, process["last"], succeeded)
        found.setdefault((vertex.qualified, reader.process), reader)
    return sorted(found.values(), key=lambda each: (each.depth, each.vertex.qualified, each.process))
