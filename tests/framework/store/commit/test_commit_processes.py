"""Several processes commit at once, and processes are killed while they commit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lockgate.framework.store import CommitMessage, DataFileMeta, Table
from lockgate.framework.store.maintenance.orphans import remove_orphan_files

WORKER = Path(__file__).parents[1] / "commit_worker.py"

MakeTable = Callable[..., Table]
MakeMessage = Callable[..., CommitMessage]


def run(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_all_commits_of_all_processes_land(
    make_table: MakeTable, live_names: Callable[[Table], list[str]]
) -> None:
    table = make_table(
        manifest_merge__min__count="8", commit_min__retry__wait="1 ms", commit_max__retries="200"
    )
    workers = [run("race", table.location, name, "10") for name in "abcd"]
    errors = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0, 0], errors
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 41))
    assert [snapshot.total_record_count for snapshot in table.snapshots()] == [
        10 * id_ for id_ in range(1, 41)
    ]
    assert sorted(live_names(table)) == sorted(f"{name}-{number}" for name in "abcd" for number in range(10))
    # Each process saw its own commits in order.
    for name in "abcd":
        own = [each for each in live_names(table) if each.startswith(name)]
        assert own == sorted(own, key=lambda each: int(each[2:]))


@pytest.mark.slow
def test_eight_processes_commit_fifty_times_each(make_table: MakeTable) -> None:
    """With the options as they are by default: 400 snapshots, no row lost, none twice."""
    table = make_table()
    workers = [run("append", table.location, name, "50") for name in "abcdefgh"]
    errors = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8, errors
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, 401))
    assert [snapshot.total_record_count for snapshot in snapshots] == list(range(1, 401))
    rows = sorted((row["v"], row["id"]) for row in table.read().to_pylist())
    assert rows == [(name, number) for name in "abcdefgh" for number in range(50)]
    found = remove_orphan_files(table, dry_run=True)
    assert found.data_files + found.other_files + found.young_files == 0


def test_a_writer_killed_at_any_step_leaves_all_or_nothing(
    make_table: MakeTable, message: MakeMessage, live_names: Callable[[Table], list[str]]
) -> None:
    def file(name: str) -> DataFileMeta:
        return DataFileMeta(name, 100, 10, creation_time_millis=1)

    tables = [make_table(f"t{point}") for point in range(24)]
    for table in tables:
        table.commit([message(file("first"))])
    worker = run("kill", make_table("warm").location, *(table.location for table in tables))
    output, error = worker.communicate()
    assert worker.returncode == 0, error.decode()
    outcomes = output.decode().split()
    for table, outcome in zip(tables, outcomes, strict=True):
        snapshots = table.snapshots()
        assert live_names(table) == (["first"] if len(snapshots) == 1 else ["killed"])
        assert outcome == "killed" or len(snapshots) == 2
        # Anyone who comes next can work, and the old snapshot is as it was.
        table.commit([message(file("next"))])
        assert len(live_names(table)) == 2
        assert [entry.file.file_name for entry in table.manifests.live_files(snapshots[0])] == ["first"]
    assert (outcomes[0], outcomes[-1]) == ("killed", "done")
    # Some died before and some after their commit became visible.
    visible = {
        len(table.snapshots()) for table, outcome in zip(tables, outcomes, strict=True) if outcome == "killed"
    }
    assert visible == {2, 3}
