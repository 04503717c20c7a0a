"""Edges in sorted parts: the same answers as a plain list, however they were merged, and damage is found."""

from __future__ import annotations

import dataclasses
import random
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lockgate.errors import CorruptFileError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Run, Shape
from lockgate.framework.lineage.questions.vertices import processes
from lockgate.framework.lineage.store import edges
from lockgate.framework.lineage.store.index_tables import TABLES
from lockgate.framework.lineage.store.journal import lines_of
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.lineage.store.segment_merge import Merger

Row = tuple[int, int, int, int]


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(TABLES)
    yield made
    made.close()


def add(database: sqlite3.Connection, rows: list[Row]) -> None:
    edges.add_edges(database, np.array(rows, np.int32).reshape(-1, 4))


def chance_rows(chance: random.Random, process: int) -> list[Row]:
    ends = {(chance.randrange(1, 40), chance.randrange(1, 40)) for _ in range(chance.choice((1, 5, 60)))}
    return [(target, source, process, 1 << chance.randrange(3)) for target, source in ends]


@pytest.mark.parametrize("seed", range(5))
def test_parts_answer_as_a_list_does(database: sqlite3.Connection, seed: int) -> None:
    chance, every = random.Random(seed), list[Row]()
    for process in range(1, 60):
        rows = chance_rows(chance, process)
        chance.shuffle(rows)
        add(database, rows)
        every += rows
    assert edges.all_edges(database).tolist() == sorted(map(list, every))
    sizes = sorted(len(part) for part in edges.parts(database))
    assert all(before * 2 < after for before, after in pairwise(sizes))
    for near in (edges.TARGET, edges.SOURCE):
        ends = np.array(sorted(chance.sample(range(1, 50), 12)), np.int32)
        found = edges.merged_edges([part.at(ends, near, 5) for part in edges.parts(database)], near)
        expected = [row for row in every if row[near] in ends and row[3] & 5]
        assert found.tolist() == sorted(
            map(list, expected), key=lambda row: (row[near], row[1 - near], row[2])
        )


def test_both_kinds_of_one_edge_count(tmp_path: Path) -> None:
    """In a join of a table with itself, both inputs lead to the same column."""
    index = Index(Segments(LocalFileSystem(), str(tmp_path / "lake")), tmp_path / "cache")
    table = Dataset.table("hr", "people")
    shape = Shape("INSERT", Dataset.table("hr", "c"), (table, table), (("n", 0, "n", 1), ("n", 1, "n", 64)))
    index._segments.write(lines_of([(shape, [Run(1, 2)])]))
    with index.reading() as database:
        assert edges.all_edges(database)[:, edges.KINDS].tolist() == [65]


def test_a_small_merge_leaves_large_parts_alone(database: sqlite3.Connection) -> None:
    add(database, [(number, number + 1, 1, 1) for number in range(1, 1000)])
    before = {id(part) for part in edges.parts(database)}
    add(database, [(5, 9, 2, 1)])
    assert before < {id(part) for part in edges.parts(database)}


@pytest.mark.parametrize("spoil", [lambda data: data[:-4], lambda data: data[:7] + b"\xff" + data[8:]])
def test_damaged_edges_are_not_read(database: sqlite3.Connection, spoil: object) -> None:
    add(database, [(1, 2, 3, 1), (4, 5, 6, 1)])
    [(data,)] = database.execute("SELECT data FROM edges")
    database.execute("UPDATE edges SET data = ?", (spoil(data),))  # type: ignore[operator]  # a function
    with pytest.raises(sqlite3.DatabaseError, match="damaged"):
        edges.parts(database)


def test_a_wrong_line_leaves_nothing(database: sqlite3.Connection) -> None:
    good = Shape("INSERT", Dataset.table("a", "b"), (Dataset.table("a", "c"),), (("x", 0, "x", 1),))
    [line] = lines_of([(good, [Run(1, 2)])])
    for wrong in (["x", 9, "x", 1], ["x", 0, "x", "1"], ["x", 0, "x", 1 << 40], ["x", 0, ["x"], 1], ["x"]):
        merger = Merger(database)
        with pytest.raises(CorruptFileError):
            merger.add({**line, "shape": {**line["shape"], "edges": [["x", 0, "x", 1], wrong]}})
        merger.finish()
        assert database.execute("SELECT count(*) FROM process").fetchone() == (0,)
        assert not len(edges.all_edges(database))
    merger = Merger(database)
    merger.add(line)
    merger.add({**line, "runs": [dataclasses.replace(Run(1, 2), failed=1).to_json()]})
    merger.finish()
    [process] = processes(database, [1]).values()
    assert (process["count"], process["failed"]) == (2, 1)
    assert edges.all_edges(database).tolist() == [[1, 2, 1, 1]]
