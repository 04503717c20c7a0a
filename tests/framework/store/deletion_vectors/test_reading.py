"""Tables with deletion vectors: what is not the same as of any other table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from exact_rows import exact_rows, in_order
from zoo import expected, unpack

from lockgate.errors import CorruptFileError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.clock import store_now
from lockgate.pushdown import Aggregate, Function, col, largest

VECTORS = sorted(name for name in expected() if name.startswith("dv_"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("zoo"))


@pytest.fixture
def own_lake(lake: Path, tmp_path: Path) -> Catalog:
    """A warehouse of one's own, to be damaged."""
    for name in VECTORS:
        shutil.copytree(lake / "zoo.db" / name, tmp_path / "zoo.db" / name)
    return Catalog(tmp_path)


def rows_at(name: str, snapshot_id: int) -> list[object]:
    return in_order(expected()[name]["snapshots"][f"{snapshot_id:03}"]["rows"])


@pytest.mark.parametrize("name", VECTORS)
def test_counts_are_exact_without_opening_a_file(lake: Path, name: str) -> None:
    table = Catalog(lake).load_table(f"zoo.{name}")
    for number in map(int, expected()[name]["snapshots"]):
        there = len(rows_at(name, number))
        answer = table.aggregate([Aggregate(Function.COUNT)], snapshot_id=number)
        assert answer.rows is not None
        assert answer.rows.column(0).to_pylist() == [there]
        plan = table.scan(snapshot_id=number)
        assert plan.row_count == there
        assert plan.report.steps[0].after.rows == there
        assert table.read(columns=[], snapshot_id=number).num_rows == there


def test_a_limit_counts_rows_that_are_left(lake: Path) -> None:
    table = Catalog(lake).load_table("zoo.dv_append_32")
    for limit in (1, 7, 8, 9):
        assert table.read(snapshot_id=4, limit=limit).num_rows == min(limit, 8)


def test_the_largest_value_of_a_deleted_row_is_no_answer(lake: Path) -> None:
    """21 stays in snapshot 4 and 20 goes: statistics of the file alone do not tell."""
    table = Catalog(lake).load_table("zoo.dv_append_32")
    answer = table.aggregate([largest("k")], snapshot_id=4)
    assert answer.rows is None
    assert "deleted" in answer.push_down.remaining[0].reason
    assert table.aggregate([largest("k")], snapshot_id=2).rows is not None


def test_nulls_are_counted_where_there_are_none(lake: Path) -> None:
    table = Catalog(lake).load_table("zoo.dv_append_32")
    answer = table.aggregate([Aggregate(Function.COUNT, ("k",))], snapshot_id=4)
    assert answer.rows is not None
    assert answer.rows.column(0).to_pylist() == [8]


def test_filters_apply_to_rows_that_are_left(lake: Path) -> None:
    table = Catalog(lake).load_table("zoo.dv_append_64")
    assert sorted(table.read(predicate=col("k") < 6, snapshot_id=4)["k"].to_pylist()) == [0, 1, 3, 4]
    assert table.read(predicate=col("k") == 5, snapshot_id=4).num_rows == 0


@pytest.mark.parametrize("name", ["dv_append_32", "dv_key_32", "postpone"])
def test_changes_lead_from_each_state_to_the_next(lake: Path, name: str) -> None:
    """A follower that takes changes, and starts again where it is told to, has the rows of each snapshot."""
    table = Catalog(lake).load_table(f"zoo.{name}")
    rows: list[object] = []
    numbers = sorted(map(int, expected()[name]["snapshots"]))
    for number in numbers:
        for change in table.changes(number - 1, number):
            if change.needs_reload:
                rows = exact_rows(table.read(snapshot_id=number))
            else:
                rows = rows + exact_rows(change.rows.drop_columns(["_VALUE_KIND"]))
        assert in_order(rows) == rows_at(name, number), number


@pytest.mark.parametrize("name", VECTORS)
def test_expiry_and_cleaning_leave_what_is_needed(own_lake: Catalog, name: str) -> None:
    table = own_lake.load_table(f"zoo.{name}")
    numbers = sorted(map(int, expected()[name]["snapshots"]))
    held = numbers[-2]
    table.create_tag("held", held)
    expire_snapshots(table, retain_max=1, retain_min=1)
    now = store_now(table.file_system, f"{table.location}/snapshot")
    remove_orphan_files(table, older_than_millis=now, allow_recent=True)
    table = own_lake.load_table(f"zoo.{name}")
    assert in_order(exact_rows(table.read())) == rows_at(name, numbers[-1])
    assert in_order(exact_rows(table.read(tag="held"))) == rows_at(name, held)
    index = Path(table.location) / "index"
    left = {path.name for path in index.iterdir()} if index.exists() else set()
    table.delete_tag("held")
    assert in_order(exact_rows(table.read())) == rows_at(name, numbers[-1])
    if name.startswith("dv_append"):
        assert left
        assert not list(index.iterdir())


def index_file(table: Table) -> Path:
    (found,) = (path for path in (Path(table.location) / "index").iterdir() if path.stat().st_size == 65)
    return found


def test_a_damaged_vector_is_an_error(own_lake: Catalog) -> None:
    table = own_lake.load_table("zoo.dv_append_32")
    file = index_file(table)
    whole = file.read_bytes()
    for place in range(1, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        file.write_bytes(bytes(damaged))
        with pytest.raises(CorruptFileError, match="deletion vector"):
            table.read(snapshot_id=4)
    for size in range(1, len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(CorruptFileError, match="deletion vector"):
            table.read(snapshot_id=4)
    file.unlink()
    with pytest.raises(CorruptFileError, match="marks deleted rows"):
        table.read(snapshot_id=4)
    assert table.read(snapshot_id=2).num_rows == 12


def test_rows_of_paimon_are_written_again(own_lake: Catalog) -> None:
    table = own_lake.load_table("zoo.dv_key_32")
    before = table.read()
    table.append(before.slice(0, 2))
    assert in_order(exact_rows(table.read())) == in_order(exact_rows(before))
