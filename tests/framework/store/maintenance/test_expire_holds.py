"""Expiry with real rows: whatever still needs a snapshot reads it afterwards, and the rest is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
KINDS = {
    "append": {},
    "parts": {"partition_keys": ["p"]},
    "key": {"primary_keys": ["id"], "options": {"bucket": "2"}},
}
Held = Callable[[], list[int]]


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Four snapshots, each of one row that replaces the row of the one before, in one of two partitions."""
    catalog = Catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, **KINDS[request.param]))
    for number in range(1, 5):
        made.overwrite(row(number))
    return made


def row(number: int) -> pa.Table:
    return pa.table({"id": [number], "p": ["xy"[number % 2]]}, schema=SCHEMA)


def ids(table: Table, **where: object) -> list[int]:
    return sorted(table.read(**where)["id"].to_pylist())  # type: ignore[arg-type]  # keywords of several types


def data_files(table: Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("data-*")}


def begun(table: Table, number: int) -> Held:
    """A query that has been planned and has read nothing yet."""
    plan = table.scan(snapshot_id=number)
    batches: Iterator[pa.RecordBatch] = table.read_batches(plan)
    return lambda: [each for batch in batches for each in batch["id"].to_pylist()]


@contextmanager
def tag(table: Table, number: int) -> Iterator[Held]:
    table.create_tag("kept", number)
    yield lambda: ids(table, tag="kept")
    table.delete_tag("kept")


@contextmanager
def branch(table: Table, number: int) -> Iterator[Held]:
    table.create_branch("kept", number)
    warehouse = Path(table.location).parents[1]
    yield lambda: ids(Catalog(warehouse).load_table("db.t$branch_kept"))
    table.delete_branch("kept")


@contextmanager
def consumer(table: Table, number: int) -> Iterator[Held]:
    table.record_consumer("kept", number)
    yield lambda: ids(table, snapshot_id=number)
    table.delete_consumer("kept")


@pytest.mark.parametrize("hold", [tag, branch, consumer])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_is_held_is_read_afterwards(
    table: Table, hold: Callable[..., contextmanager[Held]], number: int
) -> None:
    with hold(table, number) as read:
        reader = begun(table, number)
        expire_snapshots(table, retain_max=1)
        assert read() == [number]
        assert reader() == [number]
        for other in range(1, number):
            with pytest.raises(SnapshotNotFoundError):
                table.read(snapshot_id=other)
        assert ids(table) == [4]
        table.overwrite(row(5))
        expire_snapshots(table, retain_max=1)
        assert read() == [number]
    expire_snapshots(table, retain_max=1)
    assert [each.id for each in table.snapshots()] == [5]
    assert ids(table) == [5]
    wanted = {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}
    assert data_files(table) == wanted


def test_a_reader_that_began_within_the_time(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads was the newest for long, and is old by its own time; commits have come since."""
    from lockgate.framework.store.commit import commit

    start = now_millis() + 60 * 60 * 1000
    reader = begun(table, 4)
    monkeypatch.setattr(commit, "now_millis", lambda: start + 1)
    for number in range(5, 9):
        table.overwrite(row(number))
    result = expire_snapshots(table, retain_min=1, older_than_millis=start)
    assert result.earliest_snapshot == 4
    assert reader() == [4]
    assert expire_snapshots(table, retain_min=1, older_than_millis=start + 2).snapshots == 4
