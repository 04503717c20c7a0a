"""Columns and edges of the index, read by levels: the columns one step back or forward from some others."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lockgate.framework.lineage.model.edge_kinds import OF_ROWS
from lockgate.framework.lineage.model.lineage_records import WHOLE
from lockgate.framework.lineage.store.edges import (
    PROCESS,
    SOURCE,
    TARGET,
    Rows,
    merged_edges,
    no_edges,
    parts,
)

Direction = Literal["back", "forward"]
Columns = NDArray[np.int32]
"""Numbers of columns, sorted, each once; negative ones are whole datasets."""

# Numbers in one statement: SQLite sorts them once and walks along the index.
_AT_A_TIME = 5_000


class GraphStep(NamedTuple):
    """An edge by numbers: from a source column to a target column, by a process."""

    target: int
    source: int
    process: int
    kinds: int


def steps_of(rows: Rows) -> list[GraphStep]:
    """Return edges by their names."""
    return list(map(GraphStep._make, rows.tolist()))


def columns_of(numbers: Iterable[int]) -> Columns:
    """Return numbers as an array."""
    return np.array(sorted(set(numbers)), np.int32)


def chunks(numbers: Collection[int]) -> Iterator[str]:
    """Return the numbers as lists for SQL, a few thousand each."""
    order = sorted(numbers)
    for at in range(0, len(order), _AT_A_TIME):
        yield ",".join(map(str, order[at : at + _AT_A_TIME]))


class Graph:
    """The graph in an open index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._parts = parts(database)
        self._wholes: dict[int, int] = dict(
            database.execute(f"SELECT dataset, id FROM field WHERE name = '{WHOLE}'")  # noqa: S608 - numbers and a constant, no text of others
        )

    @property
    def has_wholes(self) -> bool:
        """Return whether any statement is known by its datasets only."""
        return bool(self._wholes)

    def steps(self, front: Columns, direction: Direction, kinds: int) -> Rows:
        """Return the edges of these kinds that begin (or end, backward) at the columns of `front`."""
        near = self._with_members(front)
        found = self._edges(near, direction, kinds)
        if kinds & OF_ROWS:
            found = np.concatenate([found, self._row_steps(near.tolist(), direction, kinds)])
        return found

    def steps_by(self, process: int, target: int) -> list[GraphStep]:
        """Return the edges by which a process made the columns of a dataset."""
        found = self._edges(columns_of(self.fields_of([target])), "back", -1)
        return steps_of(found[found[:, PROCESS] == process])

    def _edges(self, front: Columns, direction: Direction, kinds: int) -> Rows:
        near = TARGET if direction == "back" else SOURCE
        return merged_edges([part.at(front, near, int(kinds)) for part in self._parts], near)

    def _with_members(self, front: Columns) -> Columns:
        """Add the vertices of whole datasets, where edges of statements lead that were too large, and the
        columns of whole datasets.
        """
        if not self._wholes and (not front.size or front[0] > 0):
            return front
        numbers = front.tolist()
        columns = {each for each in numbers if each > 0}
        columns |= self.fields_of({-each for each in numbers if each < 0})
        wholes = {self._wholes[each] for each in self._datasets(columns) if each in self._wholes}
        starts = [dataset for dataset, whole in self._wholes.items() if whole in columns]
        return columns_of({*columns, *wholes, *self.fields_of(starts)})

    def _datasets(self, front: Collection[int]) -> set[int]:
        return {
            row[0]
            for numbers in chunks(front)
            for row in self.database.execute(f"SELECT DISTINCT dataset FROM field WHERE id IN ({numbers})")  # noqa: S608 - numbers and a constant, no text of others
        }

    def fields_of(self, datasets: Iterable[int]) -> set[int]:
        """Return all columns of some datasets."""
        return {
            row[0]
            for numbers in chunks(set(datasets))
            for row in self.database.execute(f"SELECT id FROM field WHERE dataset IN ({numbers})")  # noqa: S608 - numbers and a constant, no text of others
        }

    def _row_steps(self, front: Collection[int], direction: Direction, kinds: int) -> Rows:
        """Return the edges of columns that decide which rows there are: they lead to a whole dataset."""
        where = (
            "p.target IN (SELECT dataset FROM field WHERE id IN ({0}))"
            if direction == "back"
            else "r.source IN ({0})"
        )
        found = [
            (self.whole(target), source, process, bits)
            for numbers in chunks(front)
            for target, source, process, bits in self.database.execute(
                "SELECT p.target, r.source, r.process, r.kinds FROM row_edge r "  # noqa: S608 - numbers and a constant, no text of others
                "JOIN process p ON p.id = r.process "
                f"WHERE {where.format(numbers)} AND r.kinds & {int(kinds)} AND p.target IS NOT NULL"
            )
        ]
        return np.array(found, np.int32) if found else no_edges()

    def whole(self, dataset: int) -> int:
        """Return the vertex of a whole dataset; one that has no edges of its own gets a negative number."""
        return self._wholes.get(dataset, -dataset)
