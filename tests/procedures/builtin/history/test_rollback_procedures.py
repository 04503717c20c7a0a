"""The procedures of rollback: what they count, what they leave, what they refuse."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.errors import InputError, SnapshotNotFoundError, TagNotFoundError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("ssn", pa.string())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """An encrypted table of three snapshots, the second tagged."""
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options={"orc.encrypt": "pii:ssn"}))
    for number in (1, 2, 3):
        made.append(pa.table({"id": [number], "ssn": ["x"]}, schema=SCHEMA))
    made.create_tag("two", 2)
    made.create_tag("three", 3)
    return made


@pytest.mark.parametrize("target", [{"version": "2"}, {"version": "two"}, {"snapshot": 2}, {"tag": "two"}])
def test_a_rollback_removes_later_snapshots_and_their_files(
    table: Table, run: Run, keyless: Catalog, digest: Callable[[str], str], target: dict[str, object]
) -> None:
    state = digest(table.location)
    planned = run("rollback", "db.t", dry_run=True, within=keyless, **target)
    assert digest(table.location) == state
    done = run("rollback", "db.t", within=keyless, **target)
    assert done.rows == planned.rows
    assert done.rows[0][:-1] == (3, 2, 1, 1, 0, 1, 3)
    assert done["deleted_bytes"] > 0
    assert sorted(table.read()["id"].to_pylist()) == [1, 2]
    assert [tag.name for tag in table.tags()] == ["two"]


def test_rollback_to_a_time(table: Table, run: Run) -> None:
    first = table.snapshot(1)
    at = datetime.datetime.fromtimestamp(first.time_millis / 1000, datetime.UTC)
    last = max(each.id for each in table.snapshots() if each.time_millis <= first.time_millis)
    done = run("rollback_to_timestamp", "db.t", at)
    assert done["current_snapshot_id"] == last
    assert table.read().num_rows == last
    with pytest.raises(SnapshotNotFoundError, match="no snapshot as old"):
        run("rollback_to_timestamp", "db.t", at - datetime.timedelta(days=1))


def test_wrong_arguments_change_nothing(table: Table, run: Run, digest: Callable[[str], str]) -> None:
    state = digest(table.location)
    with pytest.raises(InputError, match="exactly one of version, snapshot and tag"):
        run("rollback", "db.t")
    with pytest.raises(InputError, match="exactly one of version, snapshot and tag"):
        run("rollback", "db.t", version="2", tag="two")
    with pytest.raises(TagNotFoundError, match="did you mean 'two'"):
        run("rollback", "db.t", "twoo")
    with pytest.raises(SnapshotNotFoundError, match="no snapshot 9"):
        run("rollback", "db.t", "9")
    assert digest(table.location) == state
