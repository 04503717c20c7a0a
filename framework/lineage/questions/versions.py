"""Traces over snapshots: the sources of a table at a snapshot are those of runs up to that snapshot.

Lineage has cycles between names, but none between snapshots: each step back leads to an older snapshot, so
the walk ends.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import numpy as np

from lockgate.framework.lineage.questions.graph import Direction, Graph, GraphStep, columns_of, steps_of
from lockgate.framework.lineage.store.edges import Rows, no_edges

# A column, and the last (or, forward, the first) snapshot of its table whose runs count; None for all.
State = tuple[int, int | None]


def steps_of_versions(
    graph: Graph,
    starts: Collection[int],
    direction: Direction,
    *,
    kinds: int,
    depth: int | None,
    snapshot: int,
) -> list[Rows]:
    """Return the edges of runs within the bounds of snapshots, level by level."""
    runs = _Runs(graph)
    near, far = (0, 1) if direction == "back" else (1, 0)
    front: set[State] = {(start, snapshot) for start in starts}
    visited = set(front)
    levels: list[Rows] = []
    while front and (depth is None or len(levels) < depth):
        edges = []
        by_column: dict[int, list[int | None]] = {}
        for column, bound in front:
            by_column.setdefault(column, []).append(bound)
        next_states: set[State] = set()
        for step in steps_of(graph.steps(columns_of(by_column), direction, kinds)):
            for bound in by_column.get(step[near], [None]):
                fits, next_bound = runs.next_bound(step, bound, direction)
                if fits:
                    edges.append(step)
                    next_states.add((step[far], next_bound))
        front = next_states - visited
        visited |= front
        levels.append(np.array(edges, np.int32) if edges else no_edges())
    return levels


class _Runs:
    """The snapshots that the runs of processes read and wrote, for runs with stored details."""

    def __init__(self, graph: Graph) -> None:
        self._database = graph.database
        self._snapshots: dict[int, list[tuple[dict[int, int], int | None]]] = {}
        self._inputs: dict[tuple[int, int], list[int]] = {}

    def next_bound(self, step: GraphStep, bound: int | None, direction: Direction) -> tuple[bool, int | None]:
        """Return whether a run is within the bound, and the bound at the other end of the step."""
        pairs = [(self._read(step, reads), written) for reads, written in self._snapshots_of(step.process)]
        if bound is None or not pairs:
            return True, None
        if direction == "back":
            fit = [read for read, written in pairs if written is None or written <= bound]
            reads = [read for read in fit if read is not None]
            return bool(fit), max(reads) if reads else None
        fit_writes = [written for read, written in pairs if read is None or read >= bound]
        writes = [written for written in fit_writes if written is not None]
        return bool(fit_writes), min(writes) if writes else None

    def _snapshots_of(self, process: int) -> list[tuple[dict[int, int], int | None]]:
        if process not in self._snapshots:
            rows = self._database.execute("SELECT run FROM run WHERE process = ?", (process,))
            runs = [json.loads(text) for (text,) in rows]
            self._snapshots[process] = [
                ({int(key): value for key, value in run.get("reads", {}).items()}, run.get("written"))
                for run in runs
                if run.get("failed", 0) < run.get("count", 1)
            ]
        return self._snapshots[process]

    def _read(self, step: GraphStep, reads: dict[int, int]) -> int | None:
        read_snapshots = [reads[number] for number in self._numbers(step) if number in reads]
        return max(read_snapshots) if read_snapshots else None

    def _numbers(self, step: GraphStep) -> list[int]:
        """Return the input numbers of the process for the dataset of the step's source."""
        key = (step.process, step.source)
        if key not in self._inputs:
            rows = self._database.execute(
                "SELECT i.number FROM input i WHERE i.process = ? AND i.dataset = "
                "coalesce((SELECT dataset FROM field WHERE id = ?), ?)",
                (step.process, step.source, -step.source),
            )
            self._inputs[key] = [number for (number,) in rows]
        return self._inputs[key]
