"""Edges between columns: sorted arrays, in parts that never change, kept in the index and in memory.

A merge adds one part and folds those into it that are not much larger, so few parts hold all edges, and a
small merge never writes a large part again. A question reads a part once; then it stays in memory, because
another part never has the same number.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Rows = NDArray[np.int32]
"""Edges as rows of four numbers: target, source, process, kinds."""

TARGET, SOURCE, PROCESS, KINDS = range(4)

# Edges of the largest part that is folded into another: SQLite keeps at most 1 GB in one value.
_MOST_EDGES = 8_000_000
# Edges that stay in memory, 24 bytes each, and their parts.
_MOST_KEPT = 20_000_000
_MOST_PARTS = 200


@dataclass(frozen=True, eq=False)
class EdgePart:
    """Edges sorted by target, source and process; `by_source` is their order by source."""

    targets: Numbers
    sources: Numbers
    processes: Numbers
    kinds: Numbers
    by_source: Numbers

    @classmethod
    def of(cls, rows: Rows) -> EdgePart:
        """Sort edges; of one that comes twice, as in a join of a table with itself, both kinds count."""
        rows = rows[np.lexsort((rows[:, PROCESS], rows[:, SOURCE], rows[:, TARGET]))]
        is_first = np.ones(len(rows), bool)
        is_first[1:] = (rows[1:, :KINDS] != rows[:-1, :KINDS]).any(axis=1)
        if not is_first.all():
            first = np.flatnonzero(is_first)
            kinds = np.bitwise_or.reduceat(rows[:, KINDS], first)
            rows = rows[first]
            rows[:, KINDS] = kinds
        targets, sources, processes, kinds = (np.ascontiguousarray(rows[:, number]) for number in range(4))
        order = np.argsort(rows[:, SOURCE], kind="stable").astype(np.int32)
        return cls(targets, sources, processes, kinds, order)

    @classmethod
    def read(cls, data: bytes, digest: int) -> EdgePart:
        """Return what `written` made; DatabaseError for anything else."""
        if zlib.crc32(data) != digest or len(data) % 20:
            raise sqlite3.DatabaseError("edges of the index are damaged")
        return cls(*np.frombuffer(data, "<i4").reshape(5, -1))

    def written(self) -> tuple[bytes, int]:
        """Return the bytes of the arrays and their digest."""
        arrays = (self.targets, self.sources, self.processes, self.kinds, self.by_source)
        data = b"".join(each.astype("<i4").tobytes() for each in arrays)
        return data, zlib.crc32(data)

    @cached_property
    def sorted_sources(self) -> Numbers:
        """The sources in the order of `by_source`."""
        return self.sources[self.by_source]

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, places: Any = slice(None)) -> Rows:
        """Return the edges at some places, or all."""
        columns = (self.targets, self.sources, self.processes, self.kinds)
        return np.column_stack([each[places] for each in columns])

    def at(self, ends: Numbers, near: int, kinds: int) -> Rows:
        """Return the edges of some kinds whose target (`near` = 0) or source (1) is one of `ends`, sorted."""
        keys = self.targets if near == TARGET else self.sorted_sources
        places = _ranges(keys.searchsorted(ends, "left"), keys.searchsorted(ends, "right"))
        if near == SOURCE:
            places = self.by_source[places].astype(np.intp)
        return self.rows(places[(self.kinds[places] & kinds) != 0])


def _ranges(first: NDArray[np.intp], end: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return all numbers from each of `first` to before the one of `end`."""
    counts = end - first
    before = np.cumsum(counts) - counts
    places: NDArray[np.intp] = np.arange(counts.sum()) + np.repeat(first - before, counts)
    return places


def no_edges() -> Rows:
    """Return an array of no edges."""
    return np.empty((0, 4), np.int32)


def merged_edges(found: Sequence[Rows], near: int = TARGET) -> Rows:
    """Return the edges of several parts in the order of one: by `near`, the other end and process."""
    if len(found) == 1:
        return found[0]
    rows = np.concatenate([no_edges(), *found])
    return rows[np.lexsort((rows[:, PROCESS], rows[:, 1 - near], rows[:, near]))]


# --- in the index ---


def add_edges(database: sqlite3.Connection, rows: Rows) -> None:
    """Write edges inside the transaction of their merge."""
    if not len(rows):
        return
    part = EdgePart.of(rows)
    folded = _folded(database, len(part))
    if folded:
        part = EdgePart.of(np.concatenate([part.rows(), *(each.rows() for each in _load(database, folded))]))
        database.executemany("DELETE FROM edges WHERE id = ?", [(number,) for number in folded])
    # By chance, so that no part is taken for another: also of a transaction that was rolled back, or of an
    # index that was made again.
    number = secrets.randbits(62)
    database.execute("INSERT INTO edges VALUES (?, ?, ?, ?)", (number, len(part), *reversed(part.written())))


def _folded(database: sqlite3.Connection, size: int) -> list[int]:
    """Return the parts to fold into a new one: what is left is more than twice as large as what comes."""
    folded = []
    for number, count in database.execute("SELECT id, count FROM edges ORDER BY count"):
        if count > 2 * size or count + size > _MOST_EDGES:
            break
        folded.append(number)
        size += count
    return folded


def _load(database: sqlite3.Connection, numbers: Iterable[int]) -> list[EdgePart]:
    rows = [
        database.execute("SELECT data, digest FROM edges WHERE id = ?", (number,)).fetchone()
        for number in numbers
    ]
    return [EdgePart.read(*row) for row in rows]


# --- in memory ---

_lock = threading.Lock()
_kept: OrderedDict[int, EdgePart] = OrderedDict()


def parts(database: sqlite3.Connection) -> list[EdgePart]:
    """Return all edges of an index, which is read in one transaction; DatabaseError if they are damaged."""
    found = []
    for (number,) in database.execute("SELECT id FROM edges ORDER BY count DESC, id").fetchall():
        with _lock:
            part = _kept.get(number)
        if part is None:
            [part] = _load(database, [number])
        found.append(part)
        _keep(number, part)
    return found


def _keep(number: int, part: EdgePart) -> None:
    with _lock:
        _kept[number] = part
        _kept.move_to_end(number)
        while len(_kept) > _MOST_PARTS or (len(_kept) > 1 and sum(map(len, _kept.values())) > _MOST_KEPT):
            _kept.popitem(last=False)


def all_edges(database: sqlite3.Connection) -> Rows:
    """Return every edge, sorted by target, source and process."""
    return merged_edges([part.rows() for part in parts(database)])
