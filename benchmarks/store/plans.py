"""How long it takes to plan a scan of a table of 100,000 files, in Python and through Spark.

The files are not there: planning reads metadata only.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow as pa
from harness import emit, note, timed

from lockgate.framework.store import (
    Catalog,
    CommitMessage,
    DataFileMeta,
    ScanPlan,
    Schema,
    SimpleStats,
    Table,
)
from lockgate.pushdown import Comparison, Op, Predicate

BENCH = "store"
FILES, COMMITS = 100_000, 100
ROWS_PER_FILE = 10_000
COLUMNS = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()), ("day", pa.date32())]
)
GOALS = {
    "plan_100k_warm_s": "the goal: 1 s or less",
    "plan_100k_cold_s": "the goal: 3 s or less",
    "plan_100k_point_s": "the goal: 0.3 s or less",
    "spark_plan_100k_warm_s": "the goal: 3 s or less",
    "spark_plan_100k_point_s": "the goal: 3 s or less",
}


def make_table(warehouse: Path) -> Table:
    """A table of 100,000 files in 100 commits of 1,000, sorted by id; manifests are merged as they go by."""
    catalog = Catalog(warehouse)
    catalog.create_namespace("b")
    table = catalog.create_table("b.wide", Schema.from_arrow(COLUMNS))
    note(f"plan: {COMMITS} commits of {FILES // COMMITS:,} files")
    for commit in range(COMMITS):
        each = FILES // COMMITS
        files = tuple(_file(number) for number in range(commit * each, (commit + 1) * each))
        table.commit([CommitMessage((), 0, -1, files, ())])
    return table


def _file(number: int) -> DataFileMeta:
    low = number * ROWS_PER_FILE
    high = low + ROWS_PER_FILE - 1
    day = datetime.date(2024, 1, 1) + datetime.timedelta(days=number % 365)
    minima = (low, f"name-{low:012}", 0.25, day)
    maxima = (high, f"name-{high:012}", 99.75, day + datetime.timedelta(days=30))
    return DataFileMeta(
        f"data-{number:08}-0000-4000-8000-0123456789ab-0.orc",
        600_000 + number,
        ROWS_PER_FILE,
        value_stats=SimpleStats(minima, maxima, (0, 0, 0, 0)),
        value_stats_cols=tuple(COLUMNS.names),
        min_sequence_number=low,
        max_sequence_number=high,
        creation_time_millis=1_700_000_000_000,
    )


def point() -> Predicate:
    """A predicate that one file can match."""
    return Comparison(Op.EQ, ("id",), (pa.scalar(FILES * ROWS_PER_FILE // 3, pa.int64()),))


def in_python(warehouse: Path, repetitions: int) -> None:
    """Time `Table.scan`: in a process that knows the manifests, and in new ones."""
    table = Catalog(warehouse).load_table("b.wide")
    check(table.scan(), FILES)
    check(table.scan(point()), 1)
    report("plan_100k_warm_s", repetitions, table.scan)
    report("plan_100k_point_s", repetitions, lambda: table.scan(point()))
    seconds = [_in_new_process(warehouse) for _ in range(repetitions)]
    emit(BENCH, "plan_100k_cold_s", median(seconds), "s", GOALS["plan_100k_cold_s"])
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    manifests = len(table.manifests.manifests(snapshot))
    emit(BENCH, "plan_100k_manifests", manifests, "manifests", f"{COMMITS} commits made one each")


def check(plan: ScanPlan, files: int) -> None:
    """Stop if a plan is not what it should be: a fast wrong answer is no figure."""
    found = sum(len(split.files) for split in plan.splits)
    if found != files:
        raise AssertionError(f"the plan has {found:,} files, not {files:,}")


def report(metric: str, repetitions: int, function: Callable[[], object]) -> None:
    """Print the median of what a call takes."""
    emit(BENCH, metric, median(timed(function) for _ in range(repetitions)), "s", GOALS[metric])


def _in_new_process(warehouse: Path) -> float:
    """Seconds of the first scan; what Python takes to start and to import is not counted."""
    code = (
        "import sys, time, lockgate.framework.store.scan.scan; from lockgate.framework.store import Catalog;"
        "table = Catalog(sys.argv[1]).load_table('b.wide'); began = time.perf_counter();"
        "plan = table.scan(); took = time.perf_counter() - began;"
        f"assert sum(len(split.files) for split in plan.splits) == {FILES}; print(took)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(warehouse)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)
