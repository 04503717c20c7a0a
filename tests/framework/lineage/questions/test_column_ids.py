"""The history of renamed, dropped and recreated columns and tables follows their ids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from lockgate.framework.io import LocalFileSystem
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.model.edge_kinds import DIRECT
from lockgate.framework.lineage.model.lineage_records import shape_from_json
from lockgate.framework.lineage.questions.trace import trace
from lockgate.framework.lineage.questions.vertices import find, vertices
from lockgate.framework.lineage.store.edges import SOURCE, TARGET, all_edges
from lockgate.framework.lineage.store.journal import lines_of
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments

FILE = Dataset("file:/in", "file")


def table(name: str, uid: str = "t1") -> Dataset:
    return Dataset.table("hr", name, table_id=uid)


def copied(source: Dataset, column: str, target: Dataset, to: str, uid: str) -> Shape:
    return Shape("INSERT", target, (source,), ((to, 0, column, 1),), columns=(to,), ids=((-1, to, uid),))


def renamed(of: Dataset, old: str, new: str, uid: str) -> Shape:
    ids = ((-1, new, uid), (0, old, uid))
    return Shape("RENAME_COLUMN", of, (of,), ((new, 0, old, 1),), columns=(new,), ids=ids)


def indexed(folder: Path, shapes: Sequence[tuple[int, Shape]]) -> Index:
    """An index of shapes with their times, each from a segment of its own, in this order."""
    segments = Segments(LocalFileSystem(), str(folder / "lake"))
    index = Index(segments, folder / "index")
    for at, shape in shapes:
        segments.write(lines_of([(shape, [Run(at, at)])]))
        index.refresh()
    return index


def sources(index: Index, name: str) -> set[str]:
    with index.reading() as database:
        found = trace(database, find(database, name).fields, "back", kinds=int(DIRECT)).fields
        names = vertices(database, found)
        return {vertex.qualified for vertex in names.values()}


T = table("t")
# Column 3 is `a` first, then `b`; another column 4 has the name `a` afterwards.
HISTORY = [
    (1, copied(FILE, "old", T, "a", "3")),
    (2, renamed(T, "a", "b", "3")),
    (3, copied(FILE, "new", T, "a", "4")),
    (4, copied(FILE, "later", T, "b", "3")),
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_column_keeps_its_history_in_any_order_of_segments(tmp_path: Path, order: tuple[int, ...]) -> None:
    index = indexed(tmp_path, [HISTORY[number] for number in order])
    assert sources(index, "hr.t.b") == {"hr.t.b", "file:/in#old", "file:/in#later"}
    assert sources(index, "hr.t.a") == {"hr.t.a", "file:/in#new"}


def test_a_column_renamed_back(tmp_path: Path) -> None:
    index = indexed(tmp_path, [*HISTORY[:2], (3, renamed(T, "b", "a", "3")), (4, renamed(T, "a", "b", "3"))])
    assert sources(index, "hr.t.b") == {"hr.t.b", "file:/in#old"}
    with index.reading() as database:
        edges = all_edges(database)
        assert not (edges[:, TARGET] == edges[:, SOURCE]).any()


def test_a_dropped_column_passes_no_history_to_its_namesake(tmp_path: Path) -> None:
    dropped = Shape("DROP_COLUMNS", T, columns=("a",), ids=((-1, "a", "3"),))
    later = copied(FILE, "new", T, "a", "7")
    index = indexed(tmp_path, [HISTORY[0], (2, dropped), (3, later)])
    assert sources(index, "hr.t.a") == {"hr.t.a", "file:/in#new"}
    with index.reading() as database:
        fields = find(database, "hr.t").fields
        gone = {v.column: v.is_dropped for v in vertices(database, fields).values()}
    assert gone == {"a": False}


def test_a_column_that_is_added_again_starts_without_a_history(tmp_path: Path) -> None:
    dropped = Shape("DROP_COLUMNS", T, columns=("a",), ids=((-1, "a", "3"),))
    added = Shape("ADD_COLUMNS", T, columns=("a",), ids=((-1, "a", "7"),))
    index = indexed(tmp_path, [HISTORY[0], (2, dropped), (3, added)])
    assert sources(index, "hr.t.a") == {"hr.t.a"}


def test_members_of_a_renamed_struct(tmp_path: Path) -> None:
    shape = Shape("INSERT", T, (FILE,), (("s.zip", 0, "z", 1),), ids=((-1, "s.zip", "3.zip"),))
    after = Shape("INSERT", T, (FILE,), (("r.zip", 0, "y", 1),), ids=((-1, "r.zip", "3.zip"),))
    index = indexed(tmp_path, [(1, shape), (2, after)])
    assert sources(index, "hr.t.r") == {"hr.t.r.zip", "file:/in#z", "file:/in#y"}


def test_records_without_ids_match_records_with_ids(tmp_path: Path) -> None:
    """Old records of warehouses have no ids."""
    before = Shape("INSERT", T, (FILE,), (("a", 0, "old", 1),))
    index = indexed(tmp_path, [(1, before), (2, copied(FILE, "new", T, "a", "3")), (3, HISTORY[1][1])])
    assert sources(index, "hr.t.b") == {"hr.t.b", "file:/in#old", "file:/in#new"}


def test_a_renamed_table_keeps_its_history(tmp_path: Path) -> None:
    new = table("u")
    rename = Shape("RENAME_TABLE", new, (T,), (("a", 0, "a", 1),), columns=("a",), ids=((-1, "a", "3"),))
    again = copied(FILE, "other", table("t", "t2"), "a", "0")
    index = indexed(tmp_path, [HISTORY[0], (2, rename), (3, copied(new, "a", table("v", "t3"), "x", "0"))])
    assert sources(index, "hr.v.x") == {"hr.v.x", "hr.u.a", "file:/in#old"}
    assert sources(index, "hr.t.a") == {"hr.u.a", "file:/in#old"}
    with index.reading() as database:
        assert [name for (name,) in database.execute("SELECT name FROM dataset WHERE uid = 't1'")] == ["hr.u"]
    segments = Segments(LocalFileSystem(), str(tmp_path / "lake"))
    segments.write(lines_of([(again, [Run(4, 4)])]))
    assert sources(index, "hr.t.a") == {"hr.t.a", "file:/in#other"}
    assert sources(index, "hr.u.a") == {"hr.u.a", "file:/in#old"}


def test_a_failed_rename_changes_nothing(tmp_path: Path) -> None:
    segments = Segments(LocalFileSystem(), str(tmp_path / "lake"))
    failed = Shape("RENAME_COLUMN", T, (T,), (("b", 0, "a", 1),), columns=("b",), ids=((0, "a", "3"),))
    segments.write(lines_of([(HISTORY[0][1], [Run(1, 1)]), (failed, [Run(2, 2, failed=1, error="E")])]))
    index = Index(segments, tmp_path / "index")
    assert sources(index, "hr.t.a") == {"hr.t.a", "file:/in#old"}


def test_shapes_contain_ids() -> None:
    shape = HISTORY[1][1]
    assert shape_from_json(shape.to_json()) == shape
    assert "ids" not in Shape("INSERT", T).to_json()
    assert Record(shape, Run(1, 2)).shape.hash != renamed(T, "a", "b", "5").hash
