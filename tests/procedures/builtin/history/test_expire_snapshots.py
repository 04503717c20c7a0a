"""`expire_snapshots`: what it counts, what it keeps, what it refuses."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, OptionError, SnapshotNotFoundError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """A table of five snapshots, each with another version of the same three rows."""
    made = catalog.create_table(
        "db.t", Schema.from_arrow(SCHEMA, primary_keys=["id"], options={"bucket": "1"})
    )
    for version in "abcde":
        made.append(pa.table({"id": [1, 2, 3], "name": [version] * 3}, schema=SCHEMA))
    return made


def ids(table: Table) -> list[int]:
    return [snapshot.id for snapshot in table.snapshots()]


def test_the_newest_stay(table: Table, run: Run) -> None:
    result = run("expire_snapshots", table="db.t", retain_max=2).to_dicts()[0]
    assert ids(table) == [4, 5]
    assert result["deleted_snapshots_count"] == 3
    assert result["earliest_snapshot_id"] == 4
    assert result["deleted_manifests_count"] > 0
    # No file was replaced so far: all are part of the newest snapshot.
    assert result["deleted_data_files_count"] == 0
    assert set(table.read()["name"].to_pylist()) == {"e"}
    with pytest.raises(SnapshotNotFoundError):
        table.read(snapshot_id=1)


def test_files_that_compact_replaced_go(table: Table, run: Run) -> None:
    run("compact", table="db.t")
    result = run("expire_snapshots", table="db.t", retainMax=1).to_dicts()[0]
    assert result["deleted_data_files_count"] == 5
    assert len(list(Path(table.location).rglob("data-*"))) == 1
    assert table.read().num_rows == 3


def test_dry_run_counts_the_same_and_changes_nothing(
    table: Table, run: Run, digest: Callable[[str], str]
) -> None:
    run("compact", table="db.t")
    state = digest(table.location)
    planned = run("expire_snapshots", table="db.t", retain_max=1, dry_run=True)
    assert digest(table.location) == state
    done = run("expire_snapshots", table="db.t", retain_max=1)
    assert done.rows == planned.rows
    assert done["deleted_bytes"] > 0


def test_by_age(table: Table, run: Run) -> None:
    assert run("expire_snapshots", table="db.t")["deleted_snapshots_count"] == 0
    time.sleep(0.01)
    now = datetime.datetime.now()
    assert run("expire_snapshots", table="db.t", older_than=now)["deleted_snapshots_count"] == 0
    result = run("expire_snapshots", table="db.t", older_than=now.isoformat(), retain_min=1, max_deletes=3)
    assert result["deleted_snapshots_count"] == 3
    assert ids(table) == [4, 5]


def test_consumers_keep_what_they_need(table: Table, run: Run) -> None:
    table.record_consumer("reader", 3)
    run("expire_snapshots", table="db.t", retain_max=1)
    assert ids(table) == [3, 4, 5]


def test_options_for_one_call(table: Table, run: Run) -> None:
    run("expire_snapshots", "db.t", options="snapshot.num-retained.max=3, snapshot.num-retained.min=1")
    assert ids(table) == [3, 4, 5]
    assert "snapshot.num-retained.max" not in table.schema_files.load(0).options


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"retain_max": 0}, InputError, "retain_min must be 1 or more"),
        ({"retain_min": 5, "retain_max": 3}, InputError, "not 5 and 3"),
        ({"max_deletes": -1}, InputError, "max_deletes"),
        ({"older_than": "yesterday"}, InputError, "'older_than'"),
        ({"options": "bucket=3"}, OptionError, "'bucket' cannot be set for one call"),
    ],
)
@pytest.mark.usefixtures("table")
def test_bad_arguments(run: Run, arguments: dict[str, Any], error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        run("expire_snapshots", table="db.t", **arguments)
