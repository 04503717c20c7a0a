"""The answer to a lineage query: named edges as a table, a graph for other tools, or a web page."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.lineage.export import graphs
from lockgate.framework.lineage.model.edge_kinds import kind_names, parse_kinds
from lockgate.framework.lineage.questions.graph import Direction
from lockgate.framework.lineage.questions.trace import Trace, trace
from lockgate.framework.lineage.questions.vertices import Vertex, processes, vertices
from lockgate.framework.lineage.readable import Readable, find_readable

if TYPE_CHECKING:
    import pyarrow as pa

DIRECTIONS: Mapping[str, tuple[Direction, ...]] = {
    "back": ("back",),
    "forward": ("forward",),
    "both": ("back", "forward"),
}
COLUMNS = ("depth", "direction", "source", "target", "kinds", "process", "runs", "last_run", "guid")


@dataclass(frozen=True)
class Edge:
    """An edge: a source and a target vertex, and the process that wrote the target from the source."""

    depth: int
    direction: Direction
    source: Vertex
    target: Vertex
    kinds: int
    process: Mapping[str, Any]

    def row(self) -> dict[str, Any]:
        """Return the edge as a row of `COLUMNS`; times in milliseconds since the epoch."""
        return {
            "depth": self.depth,
            "direction": self.direction,
            "source": self.source.qualified,
            "target": self.target.qualified,
            "kinds": kind_names(self.kinds),
            "process": self.process["kind"],
            "runs": self.process["count"],
            "last_run": self.process["last"],
            "guid": self.process["guid"],
        }


@checked_arguments
@dataclass(frozen=True)
class Lineage:
    """The origins or the derived columns of a column or table, as edges in depth-first order."""

    name: str
    found: tuple[Edge, ...]
    starts: tuple[Vertex, ...]

    @property
    def edges(self) -> pa.Table:
        """The edges as an Arrow table with the columns `COLUMNS`."""
        import pyarrow as pa

        text, whole = pa.string(), pa.int64()
        types = (pa.int32(), text, text, text, pa.list_(text), text, whole, pa.timestamp("ms", "UTC"), text)
        return pa.Table.from_pylist(
            [edge.row() for edge in self.found], pa.schema(list(zip(COLUMNS, types, strict=True)))
        )

    def to_dot(self) -> str:
        """Return the graph for Graphviz."""
        return graphs.dot(self._pairs())

    def to_mermaid(self) -> str:
        """Return the graph for Mermaid, as documentation shows it."""
        return graphs.mermaid(self._pairs())

    def to_graphml(self) -> str:
        """Return the graph as GraphML, which networkx and Gephi read."""
        return graphs.graphml(self._pairs())

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one page that shows the graph without a network; write it to `path` if one is given."""
        from lockgate.framework.lineage.export.graph_page import page

        text = page(self.name, self.found, self.starts)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{edge.depth}</td><td>{graphs.xml(edge.source.qualified)}</td>"
            f"<td>{graphs.xml(edge.target.qualified)}</td><td>{', '.join(kind_names(edge.kinds))}</td>"
            f"<td>{graphs.xml(str(edge.process['kind']))}</td></tr>"
            for edge in self.found
        )
        head = "".join(f"<th>{name}</th>" for name in ("depth", "source", "target", "kinds", "process"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        lines = [
            f"{'  ' * edge.depth}{edge.target.qualified} <- {edge.source.qualified} "
            f"({edge.process['kind']}: {', '.join(kind_names(edge.kinds))})"
            for edge in self.found
        ]
        return "\n".join([self.name, *lines])

    def _pairs(self) -> list[tuple[str, str, str]]:
        return [
            (edge.source.qualified, edge.target.qualified, ", ".join(kind_names(edge.kinds)))
            for edge in self.found
        ]


def answer(
    database: sqlite3.Connection,
    name: str,
    may_read: Readable,
    *,
    catalog: str | None,
    direction: str = "back",
    depth: int | None = None,
    kinds: str = "direct",
) -> Lineage:
    """Trace `name`, which may end its table with `@snapshot`; tables that the user may not read are omitted.

    Raises InputError for an unknown direction or kind, NotFoundError for an unknown name, and
    AccessDeniedError if the user may not read the table itself.
    """
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if depth is not None and depth < 1:
        raise InputError(f"depth must be 1 or more, not {depth}")
    edge_kinds = int(parse_kinds(kinds))
    match = find_readable(database, name, catalog, may_read)
    traces = [
        trace(database, match.fields, each, kinds=edge_kinds, depth=depth, snapshot=match.snapshot)
        for each in DIRECTIONS[direction]
    ]
    return _with_names(database, name, traces, may_read)


def _with_names(database: sqlite3.Connection, name: str, traces: list[Trace], may_read: Readable) -> Lineage:
    steps = [(each.direction, step, depth) for each in traces for step, depth in each.walk()]
    names = vertices(database, {number for each in traces for number in each.fields})
    processes_by_number = processes(database, {step.process for _, step, _ in steps})
    edges = tuple(
        Edge(
            depth,
            direction,
            names[step.source],
            names[step.target],
            step.kinds,
            processes_by_number[step.process],
        )
        for direction, step, depth in steps
        if may_read(names[step.source]) and may_read(names[step.target])
    )
    return Lineage(name, edges, tuple(names[start] for start in traces[0].starts))
