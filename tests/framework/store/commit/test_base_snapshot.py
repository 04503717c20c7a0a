"""Changes computed from a snapshot: what others may do concurrently, and what refuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError
from lockgate.framework.store import CommitMessage, DataFileMeta, Snapshot, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.write import write
from lockgate.pushdown import Comparison, Op

MakeTable = Callable[..., Table]
MakeFile = Callable[..., DataFileMeta]
MakeMessage = Callable[..., CommitMessage]

COLUMNS = {"id": pa.int64(), "dt": pa.string()}


def rows(*ids: int, dt: str = "1") -> pa.Table:
    return pa.table({"id": list(ids), "dt": [dt] * len(ids)})


def rewrite_of(table: Table, base: Snapshot, *ids: int) -> CommitMessage:
    """What a DELETE or UPDATE hands in: the files of the snapshot it read, rewritten."""
    (entry,) = table.manifests.live_files(base)
    (message,) = table.write(rows(*ids))
    return CommitMessage(
        entry.partition, entry.bucket, entry.total_buckets, message.added, deleted=(entry.file,)
    )


def ids(table: Table) -> list[int]:
    return sorted(table.read(columns=["id"])["id"].to_pylist())


def test_rows_added_concurrently_do_not_refuse_a_rewrite(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("dt",))
    base = table.append(rows(1, 2))
    changed = rewrite_of(table, base, 10, 2)
    table.append(rows(3))
    table.commit([changed], kind="OVERWRITE", base_snapshot_id=base.id, base_commit_id=base.commit_id)
    assert ids(table) == [2, 3, 10]


def test_a_file_that_another_rewrote_refuses_a_rewrite(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("dt",))
    base = table.append(rows(1, 2))
    ours, theirs = rewrite_of(table, base, 10, 2), rewrite_of(table, base, 1, 20)
    table.commit([theirs], kind="OVERWRITE", base_snapshot_id=base.id)
    with pytest.raises(CommitConflictError, match="another commit replaced it"):
        table.commit([ours], kind="OVERWRITE", base_snapshot_id=base.id)
    assert ids(table) == [1, 20]


def test_serializable_statements_are_refused_by_any_change(make_table: MakeTable, catalog) -> None:
    make_table(columns=COLUMNS, partition_keys=("dt",))
    table = catalog.alter_table("db.t", [SetOption("write.isolation-level", "serializable")])
    base = table.append(rows(1, 2))
    changed = rewrite_of(table, base, 10, 2)
    table.append(rows(3, dt="other"))
    with pytest.raises(CommitConflictError, match="snapshot 2 changed partition"):
        table.commit([changed], kind="OVERWRITE", base_snapshot_id=base.id)
    assert ids(table) == [1, 2, 3]
    # Statements that read nothing are as before.
    table.append(rows(4))


@pytest.mark.parametrize("level", ["snapshot", "serializable"])
def test_a_concurrent_compaction_refuses_no_upsert(
    make_table: MakeTable, compact: Callable[[Table], None], level: str
) -> None:
    table = make_table(primary_keys=("id",), bucket="1", write_isolation__level=level)
    table.append(pa.table({"id": [1], "v": ["a"]}))
    base = table.append(pa.table({"id": [1], "v": ["b"]}))
    changed = table.write(pa.table({"id": [1], "v": ["c"]}))
    compact(table)
    table.commit(changed, base_snapshot_id=base.id, base_commit_id=base.commit_id)
    assert table.read()["v"].to_pylist() == ["c"]


def test_a_basis_whose_number_was_given_again_is_refused(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(pa.table({"id": [1], "v": ["a"]}))
    base = table.append(pa.table({"id": [1], "v": ["wrong"]}))
    changed = table.write(pa.table({"id": [1], "v": ["wrong!"]}))
    table.rollback(1)
    again = table.append(pa.table({"id": [1], "v": ["right"]}))
    assert again.id == base.id
    with pytest.raises(CommitConflictError, match="snapshot 2, which was rolled back"):
        table.commit(changed, base_snapshot_id=base.id, base_commit_id=base.commit_id)
    assert table.read()["v"].to_pylist() == ["right"]
    # The number alone cannot tell.
    table.commit(changed, base_snapshot_id=again.id, base_commit_id=again.commit_id)


def test_an_overwrite_takes_what_has_come_concurrently(make_table: MakeTable) -> None:
    table = make_table(columns=COLUMNS, partition_keys=("dt",))
    table.append(rows(1, dt="1"))
    table.append(rows(2, dt="2"))
    written = table.write(rows(9, dt="1"))
    table.append(rows(3, dt="1"))
    table.commit(written, kind="OVERWRITE", overwrite=lambda partition: partition == ("1",))
    assert ids(table) == [2, 9]


def test_rows_deleted_by_a_predicate_are_not_those_that_others_write_concurrently(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(pa.table({"id": [1, 2], "v": ["old", "old"]}))
    read = write.read_rows

    def read_while_another_writes(*asked: Any) -> pa.Table:
        rows = read(*asked)
        table.append(pa.table({"id": [1], "v": ["new"]}))
        return rows

    monkeypatch.setattr(write, "read_rows", read_while_another_writes)
    old = Comparison(Op.EQ, ("v",), (pa.scalar("old"),))
    with pytest.raises(CommitConflictError, match="repeat the statement"):
        table.delete(old)
    monkeypatch.undo()
    assert sorted(table.read()["v"].to_pylist()) == ["new", "old"]
    table.delete(old)
    assert table.read()["v"].to_pylist() == ["new"]


def test_snapshots_without_an_id_of_their_own_are_told_apart() -> None:
    values = {"base_manifest_list": "b", "delta_manifest_list": "d", "commit_identifier": 1}
    first, other = (
        Snapshot(
            id=1, schema_id=0, commit_user=user, commit_kind="APPEND",  # type: ignore[arg-type] # text is enough
            time_millis=1, total_record_count=0, delta_record_count=0, **values,  # type: ignore[arg-type] # mixed
        )
        for user in ("a", "b")
    )  # fmt: skip
    assert first.commit_id != other.commit_id
