"""Traces: every column that some columns come from, or flow into.

The index is read level by level, which takes few statements; `Trace.walk` gives the edges depth-first.
Between names there are circles (a MERGE reads its own target), so each vertex is visited once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lockgate.framework.lineage.questions.graph import Direction, Graph, Step
from lockgate.framework.lineage.questions.versions import steps_of_versions


@dataclass(frozen=True)
class Trace:
    """Edges by numbers, with the depth at which each was found; `starts` are the columns that were asked
    for."""

    direction: Direction
    starts: tuple[int, ...]
    steps: tuple[tuple[Step, int], ...]

    @property
    def fields(self) -> set[int]:
        """The numbers of all columns, those that were asked for too."""
        return {*self.starts, *(end for step, _ in self.steps for end in (step.target, step.source))}

    def walk(self) -> Iterator[tuple[Step, int]]:
        """Yield every edge once, depth-first from the starts, with its depth on the way taken."""
        near = {"back": 0, "forward": 1}[self.direction]
        at: dict[int, list[Step]] = {}
        for step, _ in self.steps:
            at.setdefault(step[near], []).append(step)
        stack = [(step, 1) for start in reversed(self.starts) for step in reversed(at.get(start, ()))]
        seen: set[Step] = set()
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
        found = steps_of_versions(graph, starts, direction, kinds=kinds, depth=depth, snapshot=snapshot)
        return Trace(direction, tuple(starts), tuple(found))
    far = 1 if direction == "back" else 0
    seen, front = set(starts), set(starts)
    steps: list[tuple[Step, int]] = []
    level = 0
    while front and (depth is None or level < depth):
        level += 1
        found_here = graph.steps(front, direction, kinds)
        # An edge whose near end was reached as a whole dataset is found again from its columns.
        steps += [(step, level) for step in found_here]
        front = {step[far] for step in found_here} - seen
        seen |= front
    return Trace(direction, tuple(starts), tuple(_once(steps) if graph.has_wholes else steps))


def _once(steps: list[tuple[Step, int]]) -> list[tuple[Step, int]]:
    first: dict[Step, int] = {}
    for step, level in steps:
        first.setdefault(step, level)
    return list(first.items())
