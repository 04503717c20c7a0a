"""Columns and edges of the index, read by levels: the columns one step back or forward from some others."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Literal, NamedTuple

from lockgate.framework.lineage.model.kinds import OF_ROWS
from lockgate.framework.lineage.model.records import WHOLE

Direction = Literal["back", "forward"]

# Numbers in one statement: SQLite sorts them once and walks along the index.
_AT_A_TIME = 5_000


class Step(NamedTuple):
    """An edge by numbers: from a source column to a target column, by a process."""

    target: int
    source: int
    process: int
    kinds: int


# Made by the ten thousand: without a call of Python's own for each, a long trace takes a tenth less time.
_step: Callable[[Iterable[int]], Step] = partial(tuple.__new__, Step)


def chunks(numbers: Collection[int]) -> Iterator[str]:
    """Return the numbers as lists for SQL, a few thousand each."""
    order = sorted(numbers)
    for at in range(0, len(order), _AT_A_TIME):
        yield ",".join(map(str, order[at : at + _AT_A_TIME]))


class Graph:
    """The graph in an open index."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self._wholes: dict[int, int] = dict(
            database.execute(f"SELECT dataset, id FROM field WHERE name = '{WHOLE}'")
        )

    @property
    def has_wholes(self) -> bool:
        """Say whether any statement is known by its datasets only."""
        return bool(self._wholes)

    def steps(self, front: Collection[int], direction: Direction, kinds: int) -> list[Step]:
        """Return the edges of these kinds that begin (or end, backward) at the columns of `front`."""
        near = self._with_wholes({each for each in front if each > 0} | self._of_negative(front))
        found = self._edges(near, direction, kinds)
        if kinds & OF_ROWS:
            found += self._row_steps(near, direction, kinds)
        return found

    def _edges(self, front: Collection[int], direction: Direction, kinds: int) -> list[Step]:
        table, near = ("back", "target") if direction == "back" else ("forth", "source")
        found: list[Step] = []
        for numbers in chunks(front):
            rows = self.database.execute(
                f"SELECT target, source, process, kinds FROM {table} "
                f"WHERE {near} IN ({numbers}) AND kinds & {int(kinds)}"
            )
            found += map(_step, rows)
        return found

    def _with_wholes(self, front: Collection[int]) -> set[int]:
        """Add the vertices of whole datasets, where edges of statements lead that were too large."""
        if not self._wholes:
            return set(front)
        datasets = self._datasets(front)
        wholes = {self._wholes[dataset] for dataset in datasets if dataset in self._wholes}
        starts = [dataset for dataset, whole in self._wholes.items() if whole in front]
        return {*front, *wholes, *self.fields_of(starts)}

    def _of_negative(self, front: Collection[int]) -> set[int]:
        return self.fields_of({-each for each in front if each < 0})

    def _datasets(self, front: Collection[int]) -> set[int]:
        return {
            row[0]
            for numbers in chunks(front)
            for row in self.database.execute(f"SELECT DISTINCT dataset FROM field WHERE id IN ({numbers})")
        }

    def fields_of(self, datasets: Iterable[int]) -> set[int]:
        """Return all columns of some datasets."""
        return {
            row[0]
            for numbers in chunks(set(datasets))
            for row in self.database.execute(f"SELECT id FROM field WHERE dataset IN ({numbers})")
        }

    def _row_steps(self, front: Collection[int], direction: Direction, kinds: int) -> list[Step]:
        """Return the edges of columns that decide which rows there are: they lead to a whole dataset."""
        where = (
            "p.target IN (SELECT dataset FROM field WHERE id IN ({0}))"
            if direction == "back"
            else "r.source IN ({0})"
        )
        found = [
            row
            for numbers in chunks(front)
            for row in self.database.execute(
                "SELECT p.target, r.source, r.process, r.kinds FROM row_edge r "
                "JOIN process p ON p.id = r.process "
                f"WHERE {where.format(numbers)} AND r.kinds & {int(kinds)} AND p.target IS NOT NULL"
            )
        ]
        return [Step(self.whole(target), source, process, bits) for target, source, process, bits in found]

    def whole(self, dataset: int) -> int:
        """Return the vertex of a whole dataset; one that has no edges of its own gets a negative number."""
        return self._wholes.get(dataset, -dataset)
