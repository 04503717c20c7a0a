"""Traces: all sources of some columns, or all columns that they flow into.

The index is read level by level, which takes few statements; `Trace.walk` gives the edges depth-first.
The graph has cycles (a MERGE reads its own target), so each vertex is visited once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lockgate.framework.lineage.questions.graph import Direction, Graph, GraphStep, columns_of, steps_of
from lockgate.framework.lineage.questions.versions import steps_of_versions
from lockgate.framework.lineage.store.edges import SOURCE, TARGET, Rows, no_edges


@dataclass(frozen=True, eq=False)
class Trace:
    """The edges of a trace, each with its depth (`levels`); `starts` are the traced columns."""

    direction: Direction
    starts: tuple[int, ...]
    found: Rows
    levels: NDArray[np.int32]

    @cached_property
    def steps(self) -> tuple[tuple[GraphStep, int], ...]:
        """The edges as named tuples in breadth-first order, each with its depth."""
        return tuple(zip(steps_of(self.found), self.levels.tolist(), strict=True))

    @property
    def fields(self) -> set[int]:
        """The numbers of all columns in the trace, with the starts."""
        return {*self.starts, *np.unique(self.found[:, : SOURCE + 1]).tolist()}

    def walk(self) -> Iterator[tuple[GraphStep, int]]:
        """Yield every edge once in depth-first order from the starts, with its depth on that path."""
        near = {"back": 0, "forward": 1}[self.direction]
        by_near_end: dict[int, list[GraphStep]] = {}
        for step, _ in self.steps:
            by_near_end.setdefault(step[near], []).append(step)
        stack = [
            (step, 1) for start in reversed(self.starts) for step in reversed(by_near_end.get(start, ()))
        ]
        visited: set[GraphStep] = set()
        while stack:
            step, depth = stack.pop()
            if step in visited:
                continue
            visited.add(step)
            yield step, depth
            stack.extend(
                (following, depth + 1) for following in reversed(by_near_end.get(step[1 - near], ()))
            )
        # Row edges start at a dataset, which no edge of a column reaches.
        yield from (pair for pair in self.steps if pair[0] not in visited)


def trace(
    database: sqlite3.Connection,
    starts: Collection[int],
    direction: Direction,
    *,
    kinds: int,
    depth: int | None = None,
    snapshot: int | None = None,
) -> Trace:
    """Trace columns `back` to their sources or `forward` to the columns that they flow into.

    `kinds` are the kinds of edges to follow, `depth` the largest number of edges, None for no limit. With
    `snapshot`, only runs count that wrote the start's table at or before that snapshot (or, forward, read it
    at or after that snapshot).
    """
    graph = Graph(database)
    if snapshot is not None:
        levels = steps_of_versions(graph, starts, direction, kinds=kinds, depth=depth, snapshot=snapshot)
    else:
        levels = list(_levels(graph, starts, direction, kinds, depth))
    edges = np.concatenate([no_edges(), *levels])
    depths = np.repeat(np.arange(1, len(levels) + 1, dtype=np.int32), [len(each) for each in levels])
    # An edge can occur twice: from a dataset and from a column of it.
    if graph.has_whole_datasets or snapshot is not None:
        first = np.sort(np.unique(edges, axis=0, return_index=True)[1])
        edges, depths = edges[first], depths[first]
    return Trace(direction, tuple(starts), edges, depths)


def _levels(
    graph: Graph, starts: Collection[int], direction: Direction, kinds: int, depth: int | None
) -> Iterator[Rows]:
    """Yield the edges of each depth; each column is expanded once."""
    far = SOURCE if direction == "back" else TARGET
    visited = front = columns_of(starts)
    level = 0
    while front.size and (depth is None or level < depth):
        level += 1
        edges = graph.steps(front, direction, kinds)
        yield edges
        front = np.setdiff1d(edges[:, far], visited)
        visited = np.union1d(visited, front)
