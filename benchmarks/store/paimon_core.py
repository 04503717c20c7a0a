"""Upserts into dynamic buckets and compaction with a changelog, compared with Paimon's own Java core.

No public Maven repository has Paimon's connector for Spark 4, only its core. The core has a thread a core and
the changes made in memory, and starts in each repetition from a copy of the files that Lockgate starts from.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness import emit, note, ratio, timed

from lockgate import Lake
from lockgate.framework.store import Catalog

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from paimon_java import class_path, fetch_bundle

BENCH = "store"
SOURCE = Path(__file__).with_name("java") / "PaimonCore.java"
COLUMNS = "id BIGINT NOT NULL, name STRING, price DOUBLE, size INT, changed TIMESTAMP"
BUCKETS = 4
TABLES = {
    "dynamic": "'bucket' = '-1'",
    "followed": f"'bucket' = '{BUCKETS}', 'changelog-producer' = 'full-compaction'",
}
ROW = (
    "concat('n', id) AS name, cast(id % 8999 + {change} AS DOUBLE) AS price, cast(id % 71 AS INT) AS size, "
    "timestamp_seconds(1700000000 + id) AS changed"
)


class Core:
    """Paimon's core in a JVM of its own, over a warehouse of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        path = class_path(fetch_bundle(folder))
        subprocess.run(["javac", "-d", str(folder), "-cp", path, str(SOURCE)], check=True)
        self.warehouse = folder / "lake"
        self._log = (folder / "log").open("w+b")
        command = ["java", "-Xmx2g", "-Duser.timezone=UTC", "-cp", f"{folder}:{path}", "PaimonCore"]
        self._process = subprocess.Popen(
            [*command, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def run(self, table: str, what: str, size: int) -> float:
        """Do a thing and return the seconds it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(self.warehouse, table, what, size, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            raise SystemExit(f"Paimon's core failed: {answer}") from None

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
        self._log.close()


def paimon_core(lake: Lake, folder: Path, keys: int, repetitions: int) -> None:
    """Print how long an upsert and a compaction take, relative to Paimon's core."""
    note(f"paimon-core: {keys:,} keys; 1 % of them changed, 0.1 % new")
    core = Core(folder / "core")
    changed = f"SELECT id * 100 AS id FROM range({keys // 100})"
    new = f"SELECT {keys} + id AS id FROM range({keys // 1000})"
    changes = f"SELECT id, {ROW.format(change=1)} FROM ({changed} UNION ALL {new})"
    try:
        for name, options in TABLES.items():
            _make(lake, name, options, keys)
        _compare(
            *(lake, core, folder, "dynamic", "dynamic_upsert_vs_paimon", repetitions),
            lambda: lake.sql(f"INSERT INTO lake.b.dynamic {changes}"),
            ("upsert", keys),
        )
        lake.sql(f"INSERT INTO lake.b.followed {changes}")
        _compare(
            *(lake, core, folder, "followed", "changelog_compact_vs_paimon", repetitions),
            lambda: lake.call("compact", table="b.followed", compact_strategy="full"),
            ("compact", BUCKETS),
        )
    finally:
        core.close()


def _make(lake: Lake, name: str, options: str, keys: int) -> None:
    """Load a table in an order that is not that of its keys, and compact it."""
    properties = f"'primary-key' = 'id', {options}"
    lake.sql(f"CREATE TABLE lake.b.{name} ({COLUMNS}) TBLPROPERTIES ({properties})")
    ids = f"SELECT pmod(id * 7919, {keys}) AS id FROM range({keys})"
    lake.sql(f"INSERT INTO lake.b.{name} SELECT id, {ROW.format(change=0)} FROM ({ids})")
    lake.call("compact", table=f"b.{name}", compact_strategy="full")


def _compare(
    lake: Lake,
    core: Core,
    folder: Path,
    name: str,
    metric: str,
    repetitions: int,
    ours: Callable[[], object],
    theirs: tuple[str, int],
) -> None:
    lake.call("create_tag", table=f"b.{name}", tag="before")
    start, copy = folder / f"before-{name}", core.warehouse / "b.db" / name
    shutil.copytree(folder / "lake" / "b.db" / name, start)
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for repetition in range(-1, repetitions):
        lake.call("rollback", table=f"b.{name}", version="before")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(start, copy)
        runs: dict[str, Callable[[], float]] = {
            "ours": lambda: timed(ours),
            "theirs": lambda: core.run(f"b.{name}", *theirs),
        }
        for who in list(runs) if repetition % 2 == 0 else reversed(list(runs)):
            took = runs[who]()
            if repetition >= 0:
                seconds[who].append(took)
        if repetition < 0:
            _check(folder, core, name)
    shown = {who: f"{median(times):.2f} s" for who, times in seconds.items()}
    note(f"{metric}: ours {shown['ours']}, Paimon's core {shown['theirs']}")
    emit(BENCH, metric, ratio(seconds["ours"], seconds["theirs"]), "x", "Paimon's core; the goal: 1.0")


def _check(folder: Path, core: Core, name: str) -> None:
    """Stop unless both tables have the same rows, and the same number of changes in the changelog."""
    found = []
    for warehouse in (folder / "lake", core.warehouse):
        table = Catalog(warehouse).load_table(f"b.{name}")
        rows, snapshot = table.read(columns=["id", "price"]), table.latest_snapshot()
        assert snapshot is not None
        sums = [sum(rows[column].to_pylist()) for column in ("id", "price")]
        found.append((rows.num_rows, sums, snapshot.changelog_record_count))
    if found[0] != found[1]:
        raise AssertionError(f"{name}: the tables differ: {found}")
