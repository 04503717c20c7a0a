"""`compact_manifest`: fewer manifests and entries, the same files, also while others commit."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.errors import OptionError
from lockgate.framework.store import Catalog, CommitKind, Schema, Table
from lockgate.framework.store.commit.commit_files import CommitFiles
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]


@pytest.fixture
def table(catalog: Catalog, run: Run) -> Table:
    """A table of which six files were made two, and two more were added."""
    schema = Schema.from_arrow(pa.schema([("id", pa.int64())]), options={"target-file-size": "1 mb"})
    made = catalog.create_table("db.t", schema)
    for number in range(6):
        made.append(pa.table({"id": [number]}))
    run("compact", "db.t")
    for number in (6, 7):
        made.append(pa.table({"id": [number]}))
    return made


def live(table: Table) -> set[str]:
    return {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}


def test_manifests_hold_what_is_live(table: Table, run: Run) -> None:
    files, rows = live(table), table.read()["id"].to_pylist()
    before = table.latest_snapshot()
    assert before is not None
    dry = run("compact_manifest", "db.t", dry_run=True)
    assert (dry["manifests_before"], dry["entries_before"]) == (9, 15)
    assert (dry["manifests_after"], dry["entries_after"], dry["snapshot_id"]) == (None, None, None)
    assert table.latest_snapshot() == before
    done = run("compact_manifest", "db.t")
    assert (done["manifests_before"], done["manifests_after"]) == (9, 1)
    assert (done["entries_before"], done["entries_after"]) == (15, 3)
    assert done["bytes_after"] < done["bytes_before"]
    after = table.latest_snapshot()
    assert after is not None
    assert (after.id, after.commit_kind, after.delta_record_count) == (before.id + 1, CommitKind.COMPACT, 0)
    assert after.total_record_count == before.total_record_count == 8
    assert done["snapshot_id"] == after.id
    assert live(table) == files
    assert sorted(table.read()["id"].to_pylist()) == sorted(rows)
    assert table.read(snapshot_id=before.id).num_rows == 8


def test_nothing_is_done_twice(table: Table, run: Run) -> None:
    run("compact_manifest", "db.t")
    latest = table.latest_snapshot()
    again = run("compact_manifest", "db.t")
    assert (again["snapshot_id"], again["manifests_before"], again["manifests_after"]) == (None, 1, 1)
    assert table.latest_snapshot() == latest


def test_the_size_of_manifests_for_one_call(table: Table, run: Run) -> None:
    done = run("compact_manifest", "db.t", options="manifest.target-file-size=1 kb")
    assert done["manifests_after"] < done["manifests_before"]
    assert "manifest.target-file-size" not in table.options
    with pytest.raises(OptionError, match="cannot be set for one call"):
        run("compact_manifest", "db.t", options="bucket=3")


def test_a_table_without_snapshots(catalog: Catalog, run: Run) -> None:
    catalog.create_table("db.t", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    assert run("compact_manifest", "db.t")["manifests_before"] == 0


def test_a_commit_that_lands_first_keeps_its_files(
    table: Table, run: Run, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, landed = CommitFiles.base_list, []

    def base_list(*arguments: object, **options: object) -> tuple[str, int]:
        if not landed:
            landed.append(True)
            catalog.load_table("db.t").append(pa.table({"id": [8]}))
        return plain(*arguments, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(CommitFiles, "base_list", base_list)
    done = run("compact_manifest", "db.t")
    assert landed
    assert sorted(table.read()["id"].to_pylist()) == list(range(9))
    assert done["entries_after"] == len(live(table)) == 4
    orphans = run(
        "remove_orphan_files", "db.t", older_than=datetime.datetime.now(datetime.UTC), allow_recent=True
    )
    assert (orphans["deleted_data_files_count"], orphans["deleted_other_files_count"]) == (0, 0)
