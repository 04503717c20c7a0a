"""`compact` on tables without Spark: the rows stay, the files get fewer, and nothing is risked."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from compact_table import SCHEMA, content, live, make, rows
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.errors import (
    CommitConflictError,
    InputError,
    OptionError,
    TableNotFoundError,
)
from lockgate.framework.store import Catalog, CommitKind, Schema
from lockgate.framework.store.maintenance import table_compaction as compact_module
from lockgate.framework.store.maintenance.compaction import rewrite
from lockgate.procedures import ProcedureResult

pytestmark = pytest.mark.usefixtures("without_lineage")

Run = Callable[..., ProcedureResult]


def test_append_table_gets_one_file(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    for number in range(4):
        table.append(rows(number * 10, number * 10 + 10))
    before = content(table)
    result = run("compact", table="db.t").to_dicts()[0]
    assert content(table) == before
    assert [entry.file.row_count for entry in live(table)] == [40]
    assert result["files_before"] == result["files_rewritten"] == 4
    assert result["files_after"] == result["files_written"] == result["buckets"] == 1
    assert result["rows_before"] == result["rows_after"] == 40
    assert result["bytes_after"] == live(table)[0].file.file_size < result["bytes_before"]
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind) == (result["snapshot_id"], CommitKind.COMPACT)
    assert list(table.changes(4, 5)) == []


def test_nothing_to_do_makes_no_snapshot(catalog: Catalog, run: Run) -> None:
    make(catalog)
    assert run("compact", table="db.t")["snapshot_id"] is None
    catalog.load_table("db.t").append(rows(0, 3))
    assert run("compact", table="db.t")["files_rewritten"] == 0
    snapshot = catalog.load_table("db.t").latest_snapshot()
    assert snapshot is not None
    assert snapshot.id == 1


def test_key_table_gets_one_sorted_run_without_deletions(catalog: Catalog, run: Run) -> None:
    table = make(catalog, primary_keys=["id"], bucket=2)
    table.append(rows(0, 50, name="old"))
    table.append(rows(25, 75, name="new"))
    table.delete(pa.table({"id": pa.array([0, 30, 999], pa.int64())}))
    before = content(table)
    result = run("compact", table="db.t").to_dicts()[0]
    assert content(table) == before
    assert len(before) == 73
    files = [entry.file for entry in live(table)]
    assert {file.level for file in files} == {5}
    assert {file.delete_row_count for file in files} == {0}
    assert len(files) == 2
    assert (result["rows_before"], result["rows_after"]) == (103, 73)
    assert not any(split.merge for split in table.scan().splits)
    # Done once, there is nothing more to do.
    assert run("compact", table="db.t")["snapshot_id"] is None


def test_sequence_numbers_survive(catalog: Catalog, run: Run) -> None:
    """A row written before the compaction must not beat one that was written later but committed first."""
    table = make(catalog, primary_keys=["id"], bucket=1)
    table.append(rows(0, 10, name="a"))
    table.append(rows(0, 10, name="b"))
    run("compact", table="db.t")
    (entry,) = live(table)
    assert (entry.file.min_sequence_number, entry.file.max_sequence_number) == (10, 19)
    table.append(rows(0, 1, name="c"))
    assert content(table)[0]["name"] == "c0"


def test_upserts_that_land_concurrently_survive(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog, primary_keys=["id"], bucket=1)
    table.append(rows(0, 10, name="a"))
    table.append(rows(5, 15, name="b"))

    def rewrite_slowly(*arguments: Any) -> Any:
        message = rewrite(*arguments)
        table.append(rows(0, 3, name="late"))
        table.delete(pa.table({"id": pa.array([14], pa.int64())}))
        return message

    monkeypatch.setattr(compact_module, "rewrite", rewrite_slowly)
    run("compact", table="db.t")
    names = {row["id"]: row["name"] for row in content(table)}
    assert names[0] == "late0"
    assert names[4] == "a4"
    assert names[7] == "b7"
    assert 14 not in names


def test_two_compactions_at_once(catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog)
    table.append(rows(0, 5))
    table.append(rows(5, 9))
    before = content(table)

    def rewrite_late(*arguments: Any) -> Any:
        monkeypatch.setattr(compact_module, "rewrite", rewrite)
        run("compact", table="db.t")
        return rewrite(*arguments)

    monkeypatch.setattr(compact_module, "rewrite", rewrite_late)
    with pytest.raises(CommitConflictError, match="another commit replaced it"):
        run("compact", table="db.t")
    assert content(table) == before
    # The loser's file is gone: two old ones and the winner's are left.
    assert len(list(Path(table.location).rglob("data-*"))) == 3


def test_large_files_at_the_top_level_are_left_alone(catalog: Catalog, run: Run) -> None:
    table = make(catalog, primary_keys=["id"], bucket=1, target_file_size="1 kb")
    table.append(rows(0, 100_000))
    run("compact", table="db.t")
    settled = {entry.file.file_name for entry in live(table)}
    assert len(settled) > 1
    table.append(rows(10, 12, name="new"))
    before = content(table)
    result = run("compact", table="db.t").to_dicts()[0]
    assert result["files_rewritten"] < result["files_before"]
    assert len(settled & {entry.file.file_name for entry in live(table)}) == len(settled) - 1
    assert content(table) == before
    assert not any(split.merge for split in table.scan().splits)


def test_new_files_never_span_one_that_stays(catalog: Catalog, run: Run) -> None:
    table = make(catalog, primary_keys=["id"], bucket=1, target_file_size="1 kb")
    table.append(rows(1000, 100_000))
    run("compact", table="db.t")
    table.append(rows(0, 10))
    table.append(rows(100_000, 100_010))
    before = content(table)
    run("compact", table="db.t")
    ranges = sorted((entry.file.min_key, entry.file.max_key) for entry in live(table))
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ranges))
    assert content(table) == before


def test_minor_waits_for_five_runs(catalog: Catalog, run: Run) -> None:
    table = make(catalog, primary_keys=["id"], bucket=1)
    for number in range(4):
        table.append(rows(number, number + 2))
    assert run("compact", table="db.t", compact_strategy="minor")["files_rewritten"] == 0
    table.append(rows(9, 10))
    assert run("compact", table="db.t", compactStrategy="MINOR")["files_rewritten"] == 5
    table = catalog.create_table("db.a", Schema.from_arrow(SCHEMA))
    for number in range(5):
        assert run("compact", table="db.a", compact_strategy="minor")["files_rewritten"] == 0
        table.append(rows(number, number + 1))
    assert run("compact", table="db.a", compact_strategy="minor")["files_rewritten"] == 5


def test_chosen_partitions_are_compacted(catalog: Catalog, run: Run) -> None:
    table = make(catalog, partition_keys=["day"])
    for day in ("mon", "tue", "wed"):
        table.append(rows(0, 3, day=day))
        table.append(rows(3, 5, day=day))
    before = content(table)
    result = run("compact", table="db.t", partitions="day=mon; day=wed").to_dicts()[0]
    assert (result["files_before"], result["files_after"], result["buckets"]) == (4, 2, 2)
    assert sorted(entry.partition[0] for entry in live(table)) == ["mon", "tue", "tue", "wed"]
    assert content(table) == before


def test_dry_run_changes_nothing(catalog: Catalog, run: Run, digest: Callable[[str], str]) -> None:
    table = make(catalog)
    table.append(rows(0, 3))
    table.append(rows(3, 5))
    state = digest(table.location)
    result = run("compact", table="db.t", dry_run=True).to_dicts()[0]
    assert digest(table.location) == state
    assert (result["files_rewritten"], result["files_after"], result["snapshot_id"]) == (2, None, None)


@pytest.mark.parametrize("fails_at", [1, 2, 4])
def test_a_failure_leaves_the_table_as_it_was(
    catalog: Catalog, run: Run, digest: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    table = make(catalog, primary_keys=["id"], bucket=4)
    table.append(rows(0, 30))
    table.append(rows(5, 35))
    state = digest(table.location)
    calls: Iterator[int] = iter(range(1, 9))

    def fail(*arguments: Any) -> Any:
        if next(calls) == fails_at:
            raise OSError("no space left on device")
        return rewrite(*arguments)

    monkeypatch.setattr(compact_module, "rewrite", fail)
    with pytest.raises(OSError, match="no space"):
        run("compact", table="db.t")
    assert digest(table.location) == state


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"table": "db.tt"}, TableNotFoundError, "did you mean '(db.)?t'"),
        ({"table": "t"}, InputError, "database.table"),
        ({"compact_strategy": "ful"}, InputError, "did you mean 'full'"),
        ({"order_strategy": "zorder"}, InputError, "given together"),
        ({"order_by": "id"}, InputError, "given together"),
        ({"order_strategy": "zz"}, InputError, "order_strategy cannot be"),
        ({"order_strategy": "order", "order_by": "id,id"}, InputError, "'id' is named twice"),
        ({"order_strategy": "order", "order_by": "id,nmae"}, InputError, "did you mean 'name'"),
        ({"partitions": "dya=mon"}, InputError, "did you mean 'day'"),
        ({"partitions": "mon"}, InputError, "a partition is written"),
        ({"options": "target-file-sise=1 mb"}, OptionError, "did you mean 'target-file-size'"),
        ({"options": "orc.encrypt=pii:name"}, OptionError, "cannot be set for one call"),
        ({"options": "1 mb"}, InputError, "options are written"),
    ],
)
def test_bad_arguments(
    catalog: Catalog, run: Run, arguments: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    make(catalog, partition_keys=["day"]).append(rows(0, 2))
    with pytest.raises(error, match=complaint):
        run("compact", **{"table": "db.t", **arguments})


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(
        st.tuples(st.sampled_from("wdc"), st.lists(st.integers(0, 20), min_size=1, max_size=8)),
        min_size=1,
        max_size=8,
    ),
    buckets=st.integers(1, 2),
)
def test_any_history_reads_the_same(
    catalog: Catalog, run: Run, batches: list[tuple[str, list[int]]], buckets: int
) -> None:
    catalog.drop_namespace("db", cascade=True)
    catalog.create_namespace("db")
    table = make(catalog, primary_keys=["id"], bucket=buckets)
    model: dict[int, str] = {}
    for number, (what, ids) in enumerate(batches):
        if what == "w":
            names = [f"{number}-{each}" for each in ids]
            table.append(pa.table({"id": ids, "name": names, "day": ["d"] * len(ids)}, schema=SCHEMA))
            model |= dict(zip(ids, names, strict=True))
        elif what == "d":
            table.delete(pa.table({"id": pa.array(ids, pa.int64())}))
            for each in ids:
                model.pop(each, None)
        else:
            run("compact", table="db.t")
    run("compact", table="db.t")
    assert {row["id"]: row["name"] for row in content(table)} == model
    assert not any(split.merge for split in table.scan().splits)


KILLED = """
import os, sys
from lockgate.framework.store import Catalog
from lockgate.procedures import ProcedureContext, call
from lockgate.framework.store.maintenance import table_compaction as compact

where, moment = sys.argv[1:]
table = Catalog(where).load_table("db.t")
if moment == "writing":
    rewrite, calls = compact.rewrite, []
    def last(*arguments):
        calls.append(rewrite(*arguments))
        if len(calls) == 2:
            os._exit(9)
        return calls[-1]
    compact.rewrite = last
else:
    type(table).commit = lambda *arguments, **named: os._exit(9)
call(ProcedureContext(Catalog(where)), "compact", table="db.t")
"""


@pytest.mark.parametrize("moment", ["writing", "committing"])
def test_killed_in_the_middle_it_leaves_at_most_orphans(catalog: Catalog, run: Run, moment: str) -> None:
    table = make(catalog, primary_keys=["id"], bucket=2)
    table.append(rows(0, 10))
    table.append(rows(5, 15, name="x"))
    before, files = content(table), {entry.file.file_name for entry in live(table)}
    done = subprocess.run([sys.executable, "-c", KILLED, catalog.warehouse, moment], check=False)
    assert done.returncode == 9
    assert content(table) == before
    assert {entry.file.file_name for entry in live(table)} == files
    assert len(list(Path(table.location).rglob("data-*.orc"))) == len(files) + 2
    assert run("compact", table="db.t")["files_after"] == 2
    assert content(table) == before
