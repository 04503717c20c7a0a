"""Commits are atomic, idempotent where they are named, and refused where they would lose something."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError, InputError, TableNotFoundError, UnsupportedFormatError
from lockgate.framework.store import (
    BaseSnapshot,
    Catalog,
    CommitKind,
    CommitMessage,
    CommitRequest,
    DataFileMeta,
    Snapshot,
    StreamEpoch,
    Table,
)
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import TableSchema

MakeTable = Callable[..., Table]
MakeFile = Callable[..., DataFileMeta]
MakeMessage = Callable[..., CommitMessage]
LiveNames = Callable[[Table], list[str]]

PARTITIONED = {"id": pa.int64(), "dt": pa.string()}


def alter(table: Table, changes: dict[str, str | None]) -> TableSchema:
    schema = (table.schema_files.latest() or table.schema).with_options(changes)
    table.schema_files.create(schema)
    return schema


def test_counts_and_lists(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, live_names: LiveNames
) -> None:
    table = make_table()
    first = table.commit([message(data_file("a", rows=10), data_file("b", rows=5))])
    assert (first.id, first.total_record_count, first.delta_record_count) == (1, 15, 15)
    second = table.commit([message(data_file("c", rows=1))])
    assert (second.id, second.total_record_count, second.delta_record_count) == (2, 16, 1)
    assert [meta.file_name for meta in table.manifests.base_manifests(second)] == [
        meta.file_name for meta in table.manifests.manifests(first)
    ]
    third = table.commit(
        [message(data_file("d", rows=16), deleted=(data_file("a", rows=10),))], kind="COMPACT"
    )
    assert (third.commit_kind, third.total_record_count, third.delta_record_count) == (
        CommitKind.COMPACT,
        22,
        6,
    )
    assert live_names(table) == ["b", "c", "d"]
    assert (Path(table.location) / "snapshot" / "LATEST").read_text() == "3"
    assert (Path(table.location) / "snapshot" / "EARLIEST").read_text() == "1"


def test_nothing_to_commit(make_table: MakeTable) -> None:
    table = make_table()
    first = table.commit([])
    assert (first.id, first.total_record_count) == (1, 0)
    assert table.commit([]) == first


def test_a_named_commit_happens_once(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    first = table.commit([message(data_file("a"))], user="query", identifier=0)
    assert table.commit([message(data_file("a"))], user="query", identifier=0) == first
    table.commit([message(data_file("other"))])
    second = table.commit([message(data_file("b"))], user="query", identifier=1)
    assert second.id == 3
    # An older batch that is replayed was committed before the newer one.
    assert table.commit([message(data_file("a"))], user="query", identifier=0) == second
    assert table.commit([message(data_file("x"))], user="another", identifier=0).id == 4
    compaction = table.commit(
        [message(data_file("y"), deleted=(data_file("b"),))], user="query", identifier=1, kind="COMPACT"
    )
    assert compaction.id == 5


def test_a_replayed_commit_leaves_no_files(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    table.commit([message(data_file("a"))], user="query", identifier=0)
    before = sorted(path.name for path in (Path(table.location) / "manifest").iterdir())
    table.commit([message(data_file("a"))], user="query", identifier=0)
    assert sorted(path.name for path in (Path(table.location) / "manifest").iterdir()) == before


def test_batch_commits_of_a_user_do_not_count_for_its_stream(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    table.commit([message(data_file("a"))], user="query")
    assert table.commit([message(data_file("b"))], user="query", identifier=0).id == 2


def test_a_table_that_was_dropped_is_not_written(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, catalog: Catalog
) -> None:
    table = make_table()
    catalog.drop_table("db.t")
    with pytest.raises(TableNotFoundError, match="was dropped"):
        table.commit([message(data_file("a"))])
    assert not Path(table.location).exists()
    time.sleep(0.002)
    make_table()
    with pytest.raises(CommitConflictError, match="created again"):
        table.commit([message(data_file("a"))])


def test_deleting_a_file_that_is_gone(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    table.commit([message(data_file("a"))])
    table.commit([message(data_file("b"), deleted=(data_file("a"),))], kind="COMPACT")
    files = sorted(path.name for path in Path(table.location).rglob("*"))
    with pytest.raises(CommitConflictError, match="file a of bucket 0 is gone"):
        table.commit([message(data_file("c"), deleted=(data_file("a"),))], kind="COMPACT")
    with pytest.raises(CommitConflictError, match="file n is already in the table"):
        table.commit([message(data_file("n"), data_file("n"), deleted=(data_file("b"),))], kind="COMPACT")
    assert sorted(path.name for path in Path(table.location).rglob("*")) == files


def test_an_append_that_takes_rows_away_is_an_overwrite(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    table.commit([message(data_file("a"))])
    snapshot = table.commit([message(data_file("b"), deleted=(data_file("a"),))])
    assert snapshot.commit_kind is CommitKind.OVERWRITE


def test_overwriting_partitions(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, live_names: LiveNames
) -> None:
    table = make_table(columns=PARTITIONED, partition_keys=("dt",))
    table.commit([message(data_file("a"), partition=("1",)), message(data_file("b"), partition=("2",))])
    snapshot = table.commit([message(data_file("c"), partition=("1",))], overwrite={"dt": "1"})
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    assert snapshot.delta_record_count == 0
    assert live_names(table) == ["b", "c"]
    assert table.commit([], overwrite={}).total_record_count == 0
    assert live_names(table) == []
    with pytest.raises(InputError, match=r"'di'.*known: dt"):
        table.commit([], overwrite={"di": "1"})


def test_an_overwrite_computed_from_an_older_snapshot(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table(columns=PARTITIONED, partition_keys=("dt",))
    base = table.commit([message(data_file("a"), partition=("1",))])
    table.commit([message(data_file("b"), partition=("2",))])
    replace_one = [message(data_file("c"), partition=("1",))]
    assert table.commit(replace_one, overwrite={"dt": "1"}, base_snapshot_id=base.id).id == 3
    with pytest.raises(CommitConflictError, match="snapshot 3 changed partition"):
        table.commit(
            [message(data_file("d"), partition=("1",))], overwrite={"dt": "1"}, base_snapshot_id=base.id
        )


def test_compactions_of_the_same_keys_conflict(
    make_table: MakeTable, key_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    old = [key_file("a", 0, 9), key_file("b", 5, 20)]
    table.commit([message(*old, total_buckets=1)])
    table.commit([message(key_file("x", 0, 9, level=5), deleted=(old[0],), total_buckets=1)], kind="COMPACT")
    with pytest.raises(CommitConflictError, match="overlap in level 5"):
        table.commit(
            [message(key_file("y", 5, 20, level=5), deleted=(old[1],), total_buckets=1)], kind="COMPACT"
        )
    # Another level, or other keys, do not conflict.
    assert (
        table.commit(
            [message(key_file("z", 10, 20, level=5), deleted=(old[1],), total_buckets=1)], kind="COMPACT"
        ).id
        == 3
    )


def test_changed_buckets_conflict(
    make_table: MakeTable, key_file: MakeFile, message: MakeMessage, catalog: Catalog
) -> None:
    table = make_table(primary_keys=("id",), bucket="2")
    table.commit([message(key_file("a"), total_buckets=2)])
    alter(table, {"bucket": "4"})
    with pytest.raises(CommitConflictError, match="from 2 to 4 buckets"):
        table.commit([message(key_file("b"), total_buckets=2)])
    fresh = catalog.load_table("db.t")
    with pytest.raises(CommitConflictError, match=r"has 2 buckets, the new files were written for 4"):
        fresh.commit([message(key_file("b"), total_buckets=4)])
    assert fresh.commit([message(key_file("b"), total_buckets=4)], overwrite={}).id == 2


def test_changed_encryption_conflicts(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    alter(table, {"orc.encrypt": "pii:v"})
    with pytest.raises(CommitConflictError, match=r"'orc\.encrypt' of the table was changed"):
        table.commit([message(data_file("a"))])


def test_other_changes_of_the_schema_do_not_conflict(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    alter(table, {"target-file-size": "1 mb"})
    assert table.commit([message(data_file("a"))]).schema_id == 1


@pytest.mark.parametrize("options", [{"bucket": "-2"}, {"row-tracking.enabled": "true"}])
def test_tables_of_other_engines_are_not_damaged(
    make_table: MakeTable, key_file: MakeFile, message: MakeMessage, catalog: Catalog, options: dict[str, str]
) -> None:
    table = make_table(primary_keys=("id",), bucket="2")
    schema = replace(table.schema, id=1, options={**table.schema.options, **options})
    table.schema_files.create(schema)
    with pytest.raises(UnsupportedFormatError):
        catalog.load_table("db.t").commit([message(key_file("a"), total_buckets=2)])


def test_bad_requests(make_table: MakeTable) -> None:
    with pytest.raises(InputError, match="kind 'APEND'; did you mean 'APPEND'"):
        make_table().commit([], kind="APEND")
    with pytest.raises(InputError, match="needs the user"):
        make_table("u").commit([], identifier=1)


def test_manifests_are_merged(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, live_names: LiveNames
) -> None:
    table = make_table(manifest_merge__min__count="5")
    table.commit([message(data_file("a0"))])
    for number in range(1, 12):
        old, new = data_file(f"a{number - 1}"), data_file(f"a{number}")
        table.commit([message(new, data_file(f"b{number}"), deleted=(old,))], kind="COMPACT")
        assert len(table.manifests.manifests(table.snapshot(number + 1))) <= 6
    assert sorted(live_names(table)) == sorted(["a11", *(f"b{number}" for number in range(1, 12))])
    # What was merged away is still there for the older snapshots.
    for snapshot in table.snapshots():
        assert len(table.manifests.live_files(snapshot)) == snapshot.id


def test_merging_keeps_order_across_large_and_small_manifests(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, live_names: LiveNames
) -> None:
    table = make_table(manifest_merge__min__count="2", manifest_target__file__size="1800 b")
    many = [data_file(f"many-{number:03}-{number * 7919 % 1009}") for number in range(60)]
    table.commit([message(data_file("x"))])
    table.commit([message(*many, deleted=(data_file("x"),))], kind="COMPACT")
    for number in range(6):
        table.commit([message(data_file(f"y{number}"), deleted=(many[number],))], kind="COMPACT")
    assert sorted(live_names(table)) == sorted(
        [*(file.file_name for file in many[6:]), *(f"y{number}" for number in range(6))]
    )


class _Loses:
    """Snapshots of a table where another writer is faster, so many times."""

    def __init__(self, table: Table, others: list[CommitMessage]) -> None:
        self._files = table.snapshot_files
        self._rival = Table(table.identifier, table.location, table.schema, TableContext(table.file_system))
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def create(self, snapshot: Snapshot) -> bool:
        if self._others:
            self._rival.commit([self._others.pop(0)])
        return self._files.create(snapshot)


def test_the_loser_of_a_race_tries_again(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, live_names: LiveNames
) -> None:
    table = make_table(commit_min__retry__wait="1 ms")
    others = [message(data_file(f"other{number}")) for number in range(3)]
    table.snapshot_files = _Loses(table, others)  # type: ignore[assignment]  # a stand-in that loses races
    snapshot = table.commit([message(data_file("mine"))])
    assert (snapshot.id, snapshot.total_record_count) == (4, 40)
    assert live_names(table) == ["other0", "other1", "other2", "mine"]
    used = {
        name for each in table.snapshots() for name in (each.base_manifest_list, each.delta_manifest_list)
    }
    used |= {meta.file_name for each in table.snapshots() for meta in table.manifests.manifests(each)}
    assert {path.name for path in (Path(table.location) / "manifest").iterdir()} == used


def test_a_race_that_is_lost_for_good(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table(commit_max__retries="2", commit_min__retry__wait="1 ms")
    others = [message(data_file(f"other{number}")) for number in range(9)]
    table.snapshot_files = _Loses(table, others)  # type: ignore[assignment]  # a stand-in that loses races
    with pytest.raises(CommitConflictError, match="others committed first, 3 times"):
        table.commit([message(data_file("mine"))])


def test_a_race_against_a_conflicting_change(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, live_names: LiveNames
) -> None:
    table = make_table(commit_min__retry__wait="1 ms")
    table.commit([message(data_file("a"))])
    rival = message(data_file("theirs"), deleted=(data_file("a"),))
    table.snapshot_files = _Loses(table, [rival])  # type: ignore[assignment]  # a stand-in that loses races
    with pytest.raises(CommitConflictError, match="file a of bucket 0 is gone"):
        table.commit([message(data_file("mine"), deleted=(data_file("a"),))], kind="COMPACT")
    assert live_names(table) == ["theirs"]


def test_upserts_computed_from_an_old_snapshot_do_not_undo_later_ones(
    make_table: MakeTable, key_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table(primary_keys=("id",), bucket="2")

    def upsert(name: str, low: int, high: int, *, bucket: int = 0, base: int | None = None) -> int:
        added = message(key_file(name, low, high), bucket=bucket, total_buckets=2)
        return table.commit([added], base_snapshot_id=base).id

    upsert("a", 0, 9)
    base = upsert("b", 10, 19)
    upsert("c", 5, 12)
    with pytest.raises(CommitConflictError, match=r"snapshot 3 changed .* after snapshot 2.*repeat"):
        upsert("d", 12, 30, base=base)
    assert table.snapshot_files.latest_id() == 3
    assert upsert("e", 13, 30, base=base) == 4
    assert upsert("f", 12, 12, bucket=1, base=base) == 5
    with pytest.raises(CommitConflictError):
        upsert("g", 30, 31, base=base)
    with pytest.raises(CommitConflictError):
        upsert("h", 12, 12, base=0)
    assert upsert("i", 0, 100, base=5) == 6
    assert upsert("j", 0, 100) == 7


def test_upserts_computed_from_a_snapshot_whose_successors_expired_are_refused(
    make_table: MakeTable, key_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    for number in range(4):
        table.commit([message(key_file(f"{number}", number, number), total_buckets=1)])
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=0)
    with pytest.raises(CommitConflictError, match="expired since"):
        table.commit([message(key_file("x", 99, 99), total_buckets=1)], base_snapshot_id=1)


def test_a_request_or_its_parts(make_table: MakeTable, data_file: MakeFile, message: MakeMessage) -> None:
    table, messages = make_table(), [message(data_file("a"))]
    request = CommitRequest(messages, epoch=StreamEpoch("stream", 1), base=BaseSnapshot(0))
    first = table.commit(request)
    assert (first.commit_user, first.commit_identifier) == ("stream", 1)
    assert table.commit(messages, user="stream", identifier=1) == first
    with pytest.raises(InputError, match="either it or its parts"):
        table.commit(request, kind="OVERWRITE")
    with pytest.raises(InputError, match="needs the user"):
        table.commit([], identifier=2)
