"""Traces: every column that some columns come from, or flow into.

The index is read level by level, which takes few statements; `Trace.walk` gives the edges depth-first.
Between names there are circles (a MERGE reads its own target), so each vertex is visited once.
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
    """Edges by numbers, and the depth at which each was found; `starts` are the columns that were asked
    for.
    """

    direction: Direction
    starts: tuple[int, ...]
    found: Rows
    levels: NDArray[np.int32]

    @cached_property
    def steps(self) -> tuple[tuple[GraphStep, int], ...]:
        """The edges by names, in the order in which they were found, each with its depth."""
        return tuple(zip(steps_of(self.found), self.levels.tolist(), strict=True))

    @property
    def fields(self) -> set[int]:
        """The numbers of all columns, those that were asked for too."""
        return {*self.starts, *np.unique(self.found[:, : SOURCE + 1]).tolist()}

    def walk(self) -> Iterator[tuple[GraphStep, int]]:
        """Yield every edge once, depth-first from the starts, with its depth on the way taken."""
        near = {"back": 0, "forward": 1}[self.direction]
        at: dict[int, list[GraphStep]] = {}
        for step, _ in self.steps:
            at.setdefault(step[near], []).append(step)
        stack = [(step, 1) for start in reversed(self.starts) for step in reversed(at.get(start, ()))]
        seen: set[GraphStep] = set()
        while stack:
            step, depth = stack.pop()
            if step in seen:
                continue
            seen.add(step)
            yield step, depth
            stack.extend((following, depth + 1) for following in reversed(at.get(step[1 - near], ())))
        # Edges of rows begin at a whole dataset, which no column's edge leads to.
        yield from (pair for pair in self.steps if pair[0] not in seen)


def trace(
    database: sqlite3.Connection,
    starts: Collection[int],
    direction: Direction,
    *,
    kinds: int,
    depth: int | None = None,
    snapshot: int | None = None,
) -> Trace:
    """Trace columns `back` to their sources or `forward` to what is made of them.

    `kinds` are the kinds of edges to follow, `depth` the number of edges, without limit if None. With
    `snapshot`, only runs count that wrote the start's table up to that snapshot (or, forward, read it from
    that one on).
    """
    graph = Graph(database)
    if snapshot is not None:
        levels = steps_of_versions(graph, starts, direction, kinds=kinds, depth=depth, snapshot=snapshot)
    else:
        levels = list(_levels(graph, starts, direction, kinds, depth))
    found = np.concatenate([no_edges(), *levels])
    depths = np.repeat(np.arange(1, len(levels) + 1, dtype=np.int32), [len(each) for each in levels])
    # An edge whose near end was reached as a whole dataset is found again from its columns.
    if graph.has_wholes or snapshot is not None:
        first = np.sort(np.unique(found, axis=0, return_index=True)[1])
        found, depths = found[first], depths[first]
    return Trace(direction, tuple(starts), found, depths)


def _levels(
    graph: Graph, starts: Collection[int], direction: Direction, kinds: int, depth: int | None
) -> Iterator[Rows]:
    """Yield the edges of one depth after the other; each column is gone on from once."""
    far = SOURCE if direction == "back" else TARGET
    seen = front = columns_of(starts)
    level = 0
    while front.size and (depth is None or level < depth):
        level += 1
        found = graph.steps(front, direction, kinds)
        yield found
        front = np.setdiff1d(found[:, far], seen)
        seen = np.union1d(seen, front)
