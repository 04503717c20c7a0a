"""`remove_orphan_files`: what it counts, what it keeps, what it refuses."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import InputError, NamespaceNotFoundError, ProcedureError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance import orphans
from lockgate.framework.store.schema.schema import now_millis
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("ssn", pa.string())])
DAY = datetime.timedelta(days=1)


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """An encrypted table of one snapshot, and of a writer that was killed before it committed."""
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options={"orc.encrypt": "pii:ssn"}))
    made.append(pa.table({"id": [1], "ssn": ["a"]}, schema=SCHEMA))
    made.write(pa.table({"id": [2], "ssn": ["b"]}, schema=SCHEMA))
    return made


def test_after_a_day(
    table: Table,
    run: Run,
    keyless: Catalog,
    digest: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = digest(table.location)
    assert run("remove_orphan_files", "db.t").rows == ((0, 0, 0, 1),)
    monkeypatch.setattr(orphans, "store_now", lambda *_: now_millis() + 2 * orphans.DAY_MILLIS)
    planned = run("remove_orphan_files", "db.t", dry_run=True, within=keyless)
    assert digest(table.location) == state
    done = run("remove_orphan_files", "db.t", parallelism=2, within=keyless)
    assert done.rows == planned.rows
    assert (done["deleted_data_files_count"], done["young_files_count"]) == (1, 0)
    assert done["deleted_bytes"] > 0
    assert table.read()["ssn"].to_pylist() == ["a"]
    assert len(list(Path(table.location).rglob("data-*"))) == 1


def test_by_age(table: Table, run: Run) -> None:
    for path in Path(table.location).rglob("data-*"):
        os.utime(path, (1, 1))
    now = datetime.datetime.now()
    # The table is younger than that, so the files were linked into it by a migration.
    assert run("remove_orphan_files", "db.t", older_than=now - 2 * DAY).rows == ((0, 0, 0, 1),)
    with pytest.raises(InputError, match="less than a day ago"):
        run("remove_orphan_files", "db.t", older_than=now)
    with pytest.raises(InputError, match="in the future"):
        run("remove_orphan_files", "db.t", older_than=now + DAY, allow_recent=True)
    with pytest.raises(InputError, match="parallelism"):
        run("remove_orphan_files", "db.t", parallelism=0)
    done = run("remove_orphan_files", "db.t", olderThan=now.isoformat(), allowRecent=True)
    assert done["deleted_data_files_count"] == 1
    assert table.read().num_rows == 1


def test_all_tables_of_a_database(table: Table, run: Run, catalog: Catalog) -> None:
    other = catalog.create_table("db.other", Schema.from_arrow(SCHEMA, options={"orc.encrypt": "pii:ssn"}))
    other.write(pa.table({"id": [3], "ssn": ["c"]}, schema=SCHEMA))
    catalog.create_namespace("another")
    catalog.create_table("another.t", Schema.from_arrow(SCHEMA)).write(pa.table({"id": [4], "ssn": ["d"]}))
    now = datetime.datetime.fromtimestamp(now_millis() / 1000, datetime.UTC)
    given = {"older_than": now, "allow_recent": True}
    planned = run("remove_orphan_files", "db.*", dry_run=True, **given)
    assert planned["deleted_data_files_count"] + planned["young_files_count"] == 2
    done = run("remove_orphan_files", "`db`.`*`", **given)
    assert done.rows == planned.rows
    assert run("remove_orphan_files", "another.*", dry_run=True, **given)["young_files_count"] <= 1
    assert table.read()["ssn"].to_pylist() == ["a"]
    # A damaged table is named, and keeps no other from being cleaned.
    other.append(pa.table({"id": [5], "ssn": ["e"]}, schema=SCHEMA))
    (Path(other.location) / "snapshot" / "snapshot-1").write_text("{")
    table.write(pa.table({"id": [6], "ssn": ["f"]}, schema=SCHEMA))
    later = {**given, "older_than": datetime.datetime.fromtimestamp(now_millis() / 1000, datetime.UTC)}
    with pytest.raises(ProcedureError, match=r"1 of 2 tables are not cleaned, the others are: db\.other: "):
        run("remove_orphan_files", "db.*", **later)
    with pytest.raises(NamespaceNotFoundError):
        run("remove_orphan_files", "none.*")
