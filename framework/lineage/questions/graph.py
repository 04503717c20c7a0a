"""Columns and edges of the index, read level by level: one step back or forward at a time."""

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
"""Sorted, distinct numbers of columns; a negative number is that of a dataset."""

# Numbers in one statement; SQLite sorts them once and then scans the index.
_CHUNK = 5_000


class GraphStep(NamedTuple):
    """An edge by numbers: from a source column to a target column, by a process."""

    target: int
    source: int
    process: int
    kinds: int


def steps_of(rows: Rows) -> list[GraphStep]:
    """Return rows of edges as named tuples."""
    return list(map(GraphStep._make, rows.tolist()))


def columns_of(numbers: Iterable[int]) -> Columns:
    """Return column numbers as a sorted array without duplicates."""
    return np.array(sorted(set(numbers)), np.int32)


def chunks(numbers: Collection[int]) -> Iterator[str]:
    """Yield the numbers as comma-separated lists for SQL, a few thousand in each."""
    order = sorted(numbers)
    for at in range(0, len(order), _CHUNK):
        yield ",".join(map(str, order[at : at + _CHUNK]))


class Graph:
    """The graph of columns in an open index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._parts = parts(database)
        self._whole_datasets: dict[int, int] = dict(
            database.execute(f"SELECT dataset, id FROM field WHERE name = '{WHOLE}'")  # noqa: S608 - numbers and a constant, no text of others
        )

    @property
    def has_whole_datasets(self) -> bool:
        """Return whether the index has lineage between datasets without columns."""
        return bool(self._whole_datasets)

    def steps(self, front: Columns, direction: Direction, kinds: int) -> Rows:
        """Return the edges of these kinds that begin (or end, backward) at the columns of `front`."""
        near = self._with_related_vertices(front)
        edges = self._edges(near, direction, kinds)
        if kinds & OF_ROWS:
            edges = np.concatenate([edges, self._row_steps(near.tolist(), direction, kinds)])
        return edges

    def steps_by(self, process: int, target: int) -> list[GraphStep]:
        """Return the edges of a process to the columns of a dataset."""
        edges = self._edges(columns_of(self.fields_of([target])), "back", -1)
        return steps_of(edges[edges[:, PROCESS] == process])

    def _edges(self, front: Columns, direction: Direction, kinds: int) -> Rows:
        near = TARGET if direction == "back" else SOURCE
        return merged_edges([part.at(front, near, int(kinds)) for part in self._parts], near)

    def _with_related_vertices(self, front: Columns) -> Columns:
        """Add the dataset vertices of the columns, which are the ends of edges of very large statements, and
        the columns of the datasets.
        """
        if not self._whole_datasets and (not front.size or front[0] > 0):
            return front
        numbers = front.tolist()
        columns = {each for each in numbers if each > 0}
        columns |= self.fields_of({-each for each in numbers if each < 0})
        wholes = {
            self._whole_datasets[each] for each in self._datasets(columns) if each in self._whole_datasets
        }
        starts = [dataset for dataset, whole in self._whole_datasets.items() if whole in columns]
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
        """Return the edges of columns that filter, join, group or sort rows: their target is a dataset."""
        where = (
            "p.target IN (SELECT dataset FROM field WHERE id IN ({0}))"
            if direction == "back"
            else "r.source IN ({0})"
        )
        edges = [
            (self.whole(target), source, process, bits)
            for numbers in chunks(front)
            for target, source, process, bits in self.database.execute(
                "SELECT p.target, r.source, r.process, r.kinds FROM row_edge r "  # noqa: S608 - numbers and a constant, no text of others
                "JOIN process p ON p.id = r.process "
                f"WHERE {where.format(numbers)} AND r.kinds & {int(kinds)} AND p.target IS NOT NULL"
            )
        ]
        return np.array(edges, np.int32) if edges else no_edges()

    def whole(self, dataset: int) -> int:
        """Return the vertex of a dataset; a dataset without edges has a negative number."""
        return self._whole_datasets.get(dataset, -dataset)
