"""Tables of many commits: manifests are merged as they go by, so that planning costs what the files cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.store import CommitMessage, DataFileMeta, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests import manifest_files

MakeTable = Callable[..., Table]
MakeFile = Callable[..., DataFileMeta]
MakeMessage = Callable[..., CommitMessage]


class Reads:
    """Counts the metadata files that a cold plan reads."""

    def __init__(self, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
        self._table = table
        self._monkeypatch = monkeypatch
        self._names: list[str] = []
        read = table.file_system.read_bytes

        def counted(path: str) -> bytes:
            self._names.append(path)
            return read(path)

        monkeypatch.setattr(table.file_system, "read_bytes", counted)

    def of_a_cold_plan(self) -> int:
        for name in ("_lists", "_manifests", "_snapshots"):
            self._monkeypatch.setattr(manifest_files, name, manifest_files.ParsedCache(10**6))
        self._names.clear()
        self._table.scan()
        return len([name for name in self._names if "/manifest/" in name])


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("deletes", [False, True])
def test_manifests_stay_few(
    make_table: MakeTable,
    data_file: MakeFile,
    message: MakeMessage,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    deletes: bool,
) -> None:
    """Each commit adds two files, or replaces one of them by two, as compactions and upserts do."""
    table = make_table(manifest_merge__min__count="10")
    reads = Reads(table, monkeypatch)
    manifests, cold, live = [], [], set()
    for number in range(count):
        new = {f"{number}-a", f"{number}-b"}
        old = {f"{number - 1}-a"} if deletes and number else set()
        files = {name: data_file(f"{name}.orc") for name in new | old}
        table.commit(
            [message(*(files[name] for name in sorted(new)), deleted=tuple(files[name] for name in old))],
            kind="COMPACT" if old else "APPEND",
        )
        live = (live - old) | new
        snapshot = table.latest_snapshot()
        assert snapshot is not None
        manifests.append(len(table.manifests.manifests(snapshot)))
        if number % 20 == 19:
            cold.append(reads.of_a_cold_plan())
    # At most nine small ones, what they were merged into, and the commit's own.
    assert max(manifests) <= 11
    # Two lists, and the manifests.
    assert max(cold) <= 13
    assert {entry.file.file_name for entry in table.manifests.live_files(snapshot)} == {
        f"{name}.orc" for name in live
    }
    stored = sum(
        meta.num_added_files + meta.num_deleted_files for meta in table.manifests.manifests(snapshot)
    )
    # Merging drops pairs of addition and deletion: what is stored grows with the files that are left.
    assert stored <= len(live) + 4 * 10
    # Every older snapshot is as it was, and expiry takes what only those need.
    first = table.snapshot(1)
    assert {entry.file.file_name for entry in table.manifests.live_files(first)} == {"0-a.orc", "0-b.orc"}
    expire_snapshots(table, retain_max=1)
    left = list((Path(table.location) / "manifest").iterdir())
    assert len(left) <= 13


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_rows_stay_through_many_commits(make_table: MakeTable, count: int) -> None:
    table = make_table(primary_keys=("id",), bucket="1", manifest_merge__min__count="5")
    for number in range(count):
        table.append(pa.table({"id": [number, -1], "v": [str(number)] * 2}))
    found = dict(zip(*table.read().to_pydict().values(), strict=True))
    assert found == {**{number: str(number) for number in range(count)}, -1: str(count - 1)}
    assert len(table.manifests.manifests(table.latest_snapshot())) <= 6  # type: ignore[arg-type]  # there is one


def test_large_manifests_are_left_alone(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    """What a commit of a large table rewrites does not grow with the table."""
    table = make_table(manifest_merge__min__count="5", manifest_target__file__size="2 kb")
    table.commit([message(*(data_file(f"large-{number}") for number in range(200)))])
    (large,) = table.manifests.manifests(table.snapshot(1))
    assert large.file_size > 2048
    for number in range(20):
        table.commit([message(data_file(f"small-{number}"))])
        names = {meta.file_name for meta in table.manifests.manifests(table.snapshot(number + 2))}
        assert large.file_name in names
