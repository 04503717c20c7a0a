"""Clocks that are hours off, of writers and of anyone who cleans up, delete nothing that is young."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.commit import commit
from lockgate.framework.store.ddl import validation
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata import clock
from lockgate.framework.store.schema.schema import now_millis
from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots

MakeTable = Callable[..., Table]
HOUR = 60 * 60 * 1000
DAY = 24 * HOUR
ROWS = pa.table({"id": [1], "v": ["a"]})


def ids(table: Table) -> list[int]:
    return [snapshot.id for snapshot in table.snapshots()]


def append(table: Table, monkeypatch: pytest.MonkeyPatch, writer: int, store: int = 0) -> None:
    """Commit a snapshot whose writer's clock, and whose store's, are so many milliseconds off."""
    with monkeypatch.context() as patch:
        patch.setattr(commit, "now_millis", lambda: now_millis() + writer)
        snapshot = table.append(ROWS)
    stored = (now_millis() + store) / 1000
    os.utime(table.snapshot_files.path(snapshot.id), (stored, stored))


@pytest.fixture
def table(make_table: MakeTable) -> Table:
    return make_table(snapshot_num__retained_min="1", snapshot_time__retained="1 h")


@pytest.mark.parametrize(
    ("writer", "store", "left"),
    [
        (0, 0, [1, 2, 3, 4]),
        (-2 * HOUR, 0, [1, 2, 3, 4]),
        (-400 * DAY, 0, [1, 2, 3, 4]),
        (0, -2 * HOUR, [1, 2, 3, 4]),
        (5 * HOUR, -2 * HOUR, [1, 2, 3, 4]),
        (5 * HOUR, 0, [1, 2, 3, 4]),
        (-2 * HOUR, -2 * HOUR, [4]),
        (-2 * HOUR, -30 * 60 * 1000, [1, 2, 3, 4]),
    ],
)
def test_writers_clocks(
    table: Table, monkeypatch: pytest.MonkeyPatch, writer: int, store: int, left: list[int]
) -> None:
    for _ in range(4):
        append(table, monkeypatch, writer, store)
    expire_snapshots(table)
    assert ids(table) == left


def test_a_writer_behind_after_writers_that_are_right(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    append(table, monkeypatch, -5 * HOUR, -5 * HOUR)
    append(table, monkeypatch, -4 * HOUR, -4 * HOUR)
    append(table, monkeypatch, -3 * HOUR, -3 * HOUR)
    # What was the newest until now is read now, although the one that follows claims to be older than all.
    append(table, monkeypatch, -9 * HOUR, 0)
    append(table, monkeypatch, -9 * HOUR, 0)
    expire_snapshots(table)
    assert ids(table) == [3, 4, 5]
    assert table.read(snapshot_id=3).num_rows == 3


@pytest.mark.parametrize(("own", "left"), [(5 * HOUR, [2, 3]), (400 * DAY, [2, 3]), (-5 * HOUR, [1, 2, 3])])
def test_the_clock_of_the_process_that_expires(
    table: Table, monkeypatch: pytest.MonkeyPatch, own: int, left: list[int]
) -> None:
    append(table, monkeypatch, -4 * HOUR, -4 * HOUR)
    append(table, monkeypatch, -2 * HOUR, -2 * HOUR)
    append(table, monkeypatch, 0)
    monkeypatch.setattr(clock, "now_millis", lambda: now_millis() + own)
    before = {path.name for path in (Path(table.location) / "snapshot").iterdir()}
    expire_snapshots(table, dry_run=True)
    assert {path.name for path in (Path(table.location) / "snapshot").iterdir()} == before
    expire_snapshots(table)
    assert ids(table) == left


def test_consumers_are_not_forgotten_by_a_clock_ahead(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(consumer_expiration__time="1 h")
    for _ in range(3):
        append(table, monkeypatch, -2 * HOUR, -2 * HOUR)
    table.record_consumer("dim", 1)
    monkeypatch.setattr(clock, "now_millis", lambda: now_millis() + 9 * HOUR)
    expire_snapshots(table, retain_max=1)
    assert table.consumers() == {"dim": 1}
    assert ids(table) == [1, 2, 3]
    idle = (now_millis() - 2 * HOUR) / 1000
    os.utime(Path(table.location) / "consumer" / "consumer-dim", (idle, idle))
    expire_snapshots(table, retain_max=1)
    assert (table.consumers(), ids(table)) == ({}, [3])


def test_pins_of_other_drivers_are_not_dropped_by_a_clock_ahead(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(ROWS)
    PinnedSnapshots(table, "id").record("theirs", 0, 1)
    own = PinnedSnapshots(table, "id")
    own.record("mine", 0, 1)
    monkeypatch.setattr(clock, "now_millis", lambda: now_millis() + 9 * DAY)
    assert own.renew(3600) == []
    idle = (now_millis() - 2 * HOUR) / 1000
    os.utime(Path(table.location) / "consumer" / "consumer-lockgate-theirs-id-0", (idle, idle))
    assert own.renew(3600) == ["lockgate-theirs-id-0"]


def test_orphans_and_a_clock_ahead(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(ROWS)
    for path in (Path(table.location) / "schema").iterdir():
        old = (now_millis() - 9 * DAY) / 1000
        path.write_text(path.read_text().replace(str(table.schema.time_millis), "1"))
        os.utime(path, (old, old))
    written = table.write(ROWS)[0].added[0].file_name  # by a writer that has not committed yet
    again = Catalog(Path(table.location).parents[1]).load_table("db.t")
    monkeypatch.setattr(clock, "now_millis", lambda: now_millis() + 9 * DAY)
    result = remove_orphan_files(again)
    assert (result.data_files, result.young_files) == (0, 1)
    with pytest.raises(InputError, match="in the future"):
        remove_orphan_files(again, older_than_millis=now_millis() + 5 * DAY, allow_recent=True)
    assert list(Path(table.location).rglob(written))
    old = (now_millis() - 2 * DAY) / 1000
    os.utime(next(Path(table.location).rglob(written)), (old, old))
    assert remove_orphan_files(again).data_files == 1


def test_files_linked_into_a_table_whose_maker_was_behind(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration gives old files new names, and commits them when all are there."""
    with monkeypatch.context() as patch:
        patch.setattr(validation, "now_millis", lambda: now_millis() - 9 * DAY)
        table = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema))
    assert table.schema.time_millis < now_millis() - 8 * DAY
    name = table.write(ROWS)[0].added[0].file_name
    old = (now_millis() - 5 * DAY) / 1000
    os.utime(next(Path(table.location).rglob(name)), (old, old))
    assert remove_orphan_files(table).data_files == 0
