"""The index database when processes die at any operation, and when many writers and a merger meet."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from faults import KILLED, LOST, FaultyFileSystem, Killed, check_between, contents, through
from indexed_table import OPTIONS, call, check, kept, make, rows, segments
from table_work import check_no_orphans

from lockgate.errors import CommitConflictError, LockgateError
from lockgate.framework.index.database.index_segments import opened
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import RemoveOption
from lockgate.framework.store.history.reachable_files import NeededFiles
from lockgate.procedures import ProcedureContext
from lockgate.procedures import call as call_procedure
from lockgate.pushdown import col

pytestmark = pytest.mark.usefixtures("without_lineage")
RETRIES = {
    "commit.min-retry-wait": "0 ms",
    "commit.max-retry-wait": "1 ms",
    "commit.max-retries": "1000",
    "commit.timeout": "10 min",
}
QUESTION = col("host").isin(["host-0", "host-1", "host-4"])


def start(catalog: Catalog) -> None:
    """Two files with segments and one without, at the edge of being merged."""
    table = make(catalog, {**OPTIONS, **RETRIES, "index.merge-at": "2", "index.write.enabled": "false"})
    table.append(rows(0))
    catalog.alter_table("db.t", [RemoveOption("index.write.enabled")])
    table = catalog.load_table("db.t")
    table.append(rows(1))
    table.append(rows(2))


WORK: dict[str, Callable[[Catalog], Any]] = {
    "append and merge": lambda catalog: catalog.load_table("db.t").append(rows(4)),
    "compact": lambda catalog: call_procedure(ProcedureContext(catalog), "compact", table="db.t"),
    "build": lambda catalog: call(BuildIndex(), catalog),
    "merge": lambda catalog: call(MergeIndex(), catalog),
    "drop": lambda catalog: call(DropIndex(), catalog, columns=["host"]),
}


SHORTER = [("append and merge", KILLED)]
LONGER = [(name, how) for name in WORK for how in (KILLED, LOST) if (name, how) not in SHORTER]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *(pytest.param(*each, marks=pytest.mark.long) for each in SHORTER),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in LONGER),
    ],
)
def test_a_failure_at_any_operation(name: str, how: str, tmp_path: Path) -> None:
    """Whatever is done of a change, indexed scans find what full scans do, and segments are whole."""
    origin = tmp_path / "origin"
    Catalog(origin).create_namespace("db")
    start(Catalog(origin))
    whole = copied(origin, tmp_path / "whole")
    before, counting = contents(whole), FaultyFileSystem()
    WORK[name](through(whole, counting))
    after = contents(whole)
    assert counting.changes
    for point in sorted(counting.changes):
        catalog = copied(origin, tmp_path / str(point))
        files = FaultyFileSystem(point, how)
        try:
            WORK[name](through(catalog, files))
        except (OSError, LockgateError, Killed):
            assert files.failed
        check_between(contents(catalog), before, after)
        table = catalog.load_table("db.t")
        check_sound(table)
        WORK[name](catalog)
        check_no_orphans(catalog)
        check_no_lost_segments(table)
        check_sound(table)
        shutil.rmtree(tmp_path / str(point))


def copied(origin: Path, target: Path) -> Catalog:
    shutil.copytree(origin, target)
    return Catalog(target)


def check_sound(table: Table) -> None:
    assert all(opened(table, entry) is not None for entry in segments(table))
    check(table, QUESTION)


def check_no_lost_segments(table: Table) -> None:
    """After `check_no_orphans` each segment in the folder is one that a snapshot has."""
    needed = NeededFiles(table)
    for info in table.file_system.list(f"{table.location}/index"):
        assert info.name in needed, info.name


def run(catalog: Catalog, writers: int, commits: int) -> Table:
    """Writers append and a merger merges, all at once."""
    done = []

    def write(writer: int) -> None:
        table = Catalog(catalog.warehouse).load_table("db.t")
        for number in range(commits):
            table.append(rows(writer * commits + number, 8))
        done.append(writer)

    def merge() -> None:
        while len(done) < writers:
            try:
                call(MergeIndex(), Catalog(catalog.warehouse))
            except CommitConflictError as error:
                if "index files" not in str(error):
                    raise

    with ThreadPoolExecutor(writers + 1) as pool:
        merging = pool.submit(merge)
        for each in [pool.submit(write, number) for number in range(writers)]:
            each.result()
        merging.result()
    return catalog.load_table("db.t")


@pytest.mark.parametrize("commits", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_eight_writers_and_a_merger(catalog: Catalog, commits: int) -> None:
    """No row is lost, none is there twice, and every file is covered, by one segment after the last merge."""
    make(catalog, {**OPTIONS, **RETRIES, "index.merge-at": "5"})
    table = run(catalog, 8, commits)
    files = 8 * commits
    assert table.read().num_rows == 8 * files
    live = {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}
    names = [name for each in segments(table) for name in opened_whole(table, each)]
    assert sorted(names) == sorted(live)
    for number in range(0, files, max(1, files // 8)):
        assert kept(table, col("host") == f"host-{number}") == 1
    call(MergeIndex(), catalog)
    assert len(segments(table)) == 1
    check(table, col("host") == f"host-{files - 1}")
    assert call(BuildIndex(), catalog)[0] == 0


def opened_whole(table: Table, entry: Any) -> tuple[str, ...]:
    segment = opened(table, entry)
    assert segment is not None
    return segment.files.names
