"""Expiry removes what nothing needs any more, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import CommitMessage, DataFileMeta, Table
from lockgate.framework.store.commit import commit
from lockgate.framework.store.maintenance.snapshot_expiry import ExpireResult, expire_snapshots
from lockgate.framework.store.schema.schema import now_millis

MakeTable = Callable[..., Table]
FOREVER = 2**62


@pytest.fixture
def table(make_table: MakeTable, message: Callable[..., CommitMessage]) -> Table:
    """Snapshots 1 to 6; each replaces the file of the one before, the last only moves its file to a level."""
    table = make_table()
    for number in range(1, 6):
        deleted = (real_file(table, number - 1),) if number > 1 else ()
        table.commit([message(real_file(table, number), deleted=deleted)], kind="COMPACT")
    moved = real_file(table, 5)
    table.commit([message(real_file(table, 5, level=5), deleted=(moved,))], kind="COMPACT")
    return table


def real_file(table: Table, number: int, **fields: Any) -> DataFileMeta:
    file = DataFileMeta(f"data-{number}.orc", 100, 10, creation_time_millis=1, **fields)
    path = Path(table.paths.data_file((), 0, file))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * 100)
    return file


def data_files(table: Table) -> list[str]:
    return sorted(path.name for path in Path(table.location).glob("bucket-*/*"))


def snapshot_ids(table: Table) -> list[int]:
    return [snapshot.id for snapshot in table.snapshots()]


def check_readable(table: Table) -> None:
    for snapshot in table.snapshots():
        for entry in table.manifests.live_files(snapshot):
            assert Path(table.paths.data_file((), 0, entry.file)).exists()
    used = {
        name for each in table.snapshots() for name in (each.base_manifest_list, each.delta_manifest_list)
    }
    used |= {meta.file_name for each in table.snapshots() for meta in table.manifests.manifests(each)}
    assert used <= {path.name for path in (Path(table.location) / "manifest").iterdir()}


def test_all_but_the_newest(table: Table) -> None:
    before = sum(path.stat().st_size for path in Path(table.location).glob("manifest/*"))
    planned = expire_snapshots(table, retain_max=1, dry_run=True)
    assert snapshot_ids(table) == [1, 2, 3, 4, 5, 6]
    assert len(data_files(table)) == 5
    result = expire_snapshots(table, retain_max=1)
    assert result == planned
    assert (result.snapshots, result.data_files, result.earliest_snapshot) == (5, 4, 6)
    assert snapshot_ids(table) == [6]
    assert data_files(table) == ["data-5.orc"]
    assert (Path(table.location) / "snapshot" / "EARLIEST").read_text() == "6"
    after = sum(path.stat().st_size for path in Path(table.location).glob("manifest/*"))
    assert result.bytes == before - after + 4 * 100
    check_readable(table)
    assert expire_snapshots(table, retain_max=1) == ExpireResult(earliest_snapshot=6)


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"retain_max": 3}, [4, 5, 6]),
        ({"retain_max": 3, "retain_min": 2, "older_than_millis": FOREVER}, [5, 6]),
        ({"retain_min": 4, "older_than_millis": FOREVER}, [3, 4, 5, 6]),
        ({"retain_min": 1, "older_than_millis": 0}, [1, 2, 3, 4, 5, 6]),
        ({"retain_max": 1, "max_deletes": 2}, [3, 4, 5, 6]),
        ({"retain_max": 1, "max_deletes": 0}, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_limits_decide_which_snapshots_stay(table: Table, limits: dict[str, int], left: list[int]) -> None:
    expire_snapshots(table, **limits)
    assert snapshot_ids(table) == left
    check_readable(table)


def test_age_counts_from_when_the_next_one_came(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that begins at 250 reads snapshot 2, of the time 200."""
    table = make_table()
    for number in range(1, 6):
        monkeypatch.setattr(commit, "now_millis", lambda now=number * 100: now)
        table.commit([CommitMessage((), 0, -1, (real_file(table, number),))])
        os.utime(table.snapshot_files.path(number), (number / 10, number / 10))
    for older_than, left in (
        (200, [1, 2, 3, 4, 5]),
        (250, [2, 3, 4, 5]),
        (300, [2, 3, 4, 5]),
        (301, [3, 4, 5]),
    ):
        expire_snapshots(table, retain_min=1, older_than_millis=older_than)
        assert snapshot_ids(table) == left
    expire_snapshots(table, retain_min=1, older_than_millis=FOREVER)
    assert snapshot_ids(table) == [5]


def test_options_of_the_table(make_table: MakeTable) -> None:
    table = make_table(
        snapshot_num__retained_min="2", snapshot_time__retained="1 ms", snapshot_expire_limit="3"
    )
    first = table.commit([])
    for number in range(5):
        table.commit([CommitMessage((), 0, -1, (real_file(table, number),))])
    while now_millis() <= table.snapshot(6).time_millis + 1:
        pass
    expire_snapshots(table)
    assert snapshot_ids(table) == [4, 5, 6]
    assert first.id == 1


def test_consumers_are_respected(table: Table) -> None:
    table.record_consumer("dim", 3)
    result = expire_snapshots(table, retain_max=1)
    assert result.earliest_snapshot == 3
    assert snapshot_ids(table) == [3, 4, 5, 6]
    check_readable(table)
    table.record_consumer("dim", 5)
    expire_snapshots(table, retain_max=1)
    assert snapshot_ids(table) == [5, 6]
    table.delete_consumer("dim")
    expire_snapshots(table, retain_max=1)
    assert snapshot_ids(table) == [6]


def test_idle_consumers_are_forgotten(make_table: MakeTable) -> None:
    table = make_table(consumer_expiration__time="1 ms")
    for number in range(3):
        table.commit([CommitMessage((), 0, -1, (real_file(table, number),))])
    table.record_consumer("dim", 1)
    while now_millis() <= table.consumer_times()["dim"] + 1:
        pass
    assert expire_snapshots(table, retain_max=1, dry_run=True).snapshots == 2
    assert table.consumers() == {"dim": 1}
    expire_snapshots(table, retain_max=1)
    assert table.consumers() == {}
    assert snapshot_ids(table) == [3]


@pytest.mark.parametrize(
    "where", ["tag/tag-keep", "branch/branch-b/tag/tag-keep", "branch/branch-b/snapshot/snapshot-2"]
)
def test_tags_and_branches_keep_their_files(table: Table, where: str) -> None:
    tag = Path(table.location) / where
    tag.parent.mkdir(parents=True)
    tag.write_bytes(table.snapshot(2).to_bytes())
    kept = table.snapshot(2)
    result = expire_snapshots(table, retain_max=1)
    assert (result.snapshots, result.data_files) == (5, 3)
    assert data_files(table) == ["data-2.orc", "data-5.orc"]
    assert [entry.file.file_name for entry in table.manifests.live_files(kept)] == ["data-2.orc"]
    for meta in table.manifests.manifests(kept):
        assert (Path(table.location) / "manifest" / meta.file_name).exists()


def test_an_expiry_that_was_killed_is_finished(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = LocalFileSystem.delete
    for steps in range(30):
        left = steps

        def dying(self: LocalFileSystem, path: str) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return delete(self, path)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFileSystem, "delete", dying)
            try:
                expire_snapshots(table, retain_max=1)
            except KeyboardInterrupt:
                latest = table.latest_snapshot()
                assert latest is not None
                assert len(table.manifests.live_files(latest)) == 1
                assert "data-5.orc" in data_files(table)
            else:
                break
    assert snapshot_ids(table) == [6]
    assert data_files(table) == ["data-5.orc"]
    assert len(list(Path(table.location).glob("manifest/*"))) <= 2 + len(
        table.manifests.manifests(table.snapshot(6))
    )


def test_an_empty_table(make_table: MakeTable) -> None:
    assert expire_snapshots(make_table(), retain_max=1) == ExpireResult()


@pytest.mark.parametrize(
    "limits", [{"retain_max": 2, "retain_min": 3}, {"retain_min": 0}, {"max_deletes": -1}]
)
def test_limits_that_contradict(table: Table, limits: dict[str, int]) -> None:
    with pytest.raises(InputError):
        expire_snapshots(table, **limits)


def test_a_consumer_is_recorded_and_deleted_by_name(make_table: MakeTable) -> None:
    table = make_table()
    assert table.consumers() == {}
    table.record_consumer("a-1.x", 4)
    assert (Path(table.location) / "consumer" / "consumer-a-1.x").read_text() == '{"nextSnapshot": 4}'
    assert table.consumers() == {"a-1.x": 4}
    assert table.delete_consumer("a-1.x")
    assert not table.delete_consumer("a-1.x")
    for name, needed in (("a/b", 1), ("", 1), ("a", 0)):
        with pytest.raises(InputError, match="consumer"):
            table.record_consumer(name, needed)
    (Path(table.location) / "consumer" / "consumer-bad").write_text("{}")
    with pytest.raises(CorruptFileError, match="consumer-bad"):
        table.consumers()
