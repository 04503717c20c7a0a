"""`rollback_to_as_latest`: an earlier state is the newest again, and no later expiry takes its files."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError, InputError, SnapshotNotFoundError
from lockgate.framework.store import Catalog, CommitKind, Schema, Table
from lockgate.framework.store.history import table_restore as restoring
from lockgate.framework.store.history.table_restore import restore
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.procedures import ProcedureResult
from lockgate.pushdown import col

Run = Callable[..., ProcedureResult]
ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
KINDS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "append": ((), {}),
    "key": (("id",), {"bucket": "2"}),
    "dynamic": (("id",), {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}),
    "vectors": ((), {"deletion-vectors.enabled": "true"}),
    "parquet": ((), {"file.format": "parquet"}),
}


def create(catalog: Catalog, kind: str) -> Table:
    keys, options = KINDS[kind]
    schema = Schema.from_arrow(ROWS.schema, primary_keys=keys, options=options)
    return catalog.create_table("db.t", schema)


def ids(table: Table, **which: int) -> list[int]:
    return sorted(table.read(**which)["id"].to_pylist())  # type: ignore[arg-type]  # keywords of several types


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_comes_back(catalog: Catalog, run: Run, kind: str) -> None:
    table = create(catalog, kind)
    table.append(ROWS)
    if kind in ("vectors", "key", "dynamic"):
        table.delete(col("id") == 2)
    target = table.latest_snapshot()
    assert target is not None
    wanted = ids(table)
    table.append(ROWS.slice(0, 1))
    run("compact", "db.t")
    table.overwrite(pa.table({"id": [8, 9], "v": ["x", "y"]}))
    before = table.latest_snapshot()
    assert before is not None
    dry = run("rollback_to_as_latest", "db.t", snapshot=target.id, dry_run=True)
    assert (dry["previous_snapshot_id"], dry["snapshot_id"]) == (before.id, None)
    assert table.latest_snapshot() == before
    done = run("rollback_to_as_latest", "db.t", snapshot=target.id)
    assert done["restored_files_count"] == dry["restored_files_count"] > 0
    assert done["removed_files_count"] == dry["removed_files_count"] > 0
    after = table.latest_snapshot()
    assert after is not None
    assert (after.id, after.commit_kind) == (done["snapshot_id"], CommitKind.OVERWRITE)
    assert after.total_record_count == target.total_record_count
    assert ids(table) == wanted
    assert ids(table, snapshot_id=before.id) == [8, 9]
    # What was deleted once goes with the snapshots that had it; what came back stays, at every step.
    while len(table.snapshots()) > 1:
        expire_snapshots(table, retain_max=len(table.snapshots()) - 1, retain_min=1)
        assert ids(table) == wanted
    table.append(pa.table({"id": [1, 7], "v": ["n", "n"]}))
    assert ids(table) == sorted([*wanted, 7] if kind in ("key", "dynamic") else [*wanted, 1, 7])
    run("compact", "db.t")
    assert len(ids(table)) == len(wanted) + (1 if kind in ("key", "dynamic") else 2)


def test_a_tag_whose_snapshot_expired(catalog: Catalog, run: Run) -> None:
    table = create(catalog, "append")
    table.append(ROWS)
    table.create_tag("old")
    table.overwrite(ROWS.slice(0, 1))
    expire_snapshots(table, retain_max=1, retain_min=1)
    run("rollback_to_as_latest", "db.t", tag="old")
    table.delete_tag("old")
    assert ids(table) == [1, 2, 3]


def test_another_commit_lands_first(catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(catalog, "append")
    table.append(ROWS)
    table.overwrite(ROWS.slice(0, 1))
    commit = restoring.commit_messages

    def late(*arguments: object, **options: object) -> object:
        table.append(ROWS.slice(1, 1))
        return commit(*arguments, **options)  # type: ignore[arg-type]  # keywords of several types

    monkeypatch.setattr(restoring, "commit_messages", late)
    with pytest.raises(CommitConflictError, match="while it was restored"):
        run("rollback_to_as_latest", "db.t", snapshot=1)
    assert ids(table) == [1, 2]


def test_a_target_that_expires_concurrently(catalog: Catalog) -> None:
    table = create(catalog, "append")
    target = table.append(ROWS)
    table.overwrite(ROWS.slice(0, 1))
    (entry,) = table.manifests.live_files(target)
    table.file_system.delete(table.paths.data_file(entry.partition, entry.bucket, entry.file))
    with pytest.raises(SnapshotNotFoundError, match="expired while it was restored"):
        restore(table, target)
    assert ids(table) == [1]


def test_one_target_must_be_named(catalog: Catalog, run: Run) -> None:
    create(catalog, "append").append(ROWS)
    with pytest.raises(InputError, match="rollback_to_as_latest needs exactly one of"):
        run("rollback_to_as_latest", "db.t", snapshot=1, tag="a")
