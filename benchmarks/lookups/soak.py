"""A stream joins while a writer commits every second and the cache's owner is killed again and again.

Each row that comes out names its snapshot; afterwards the commits are replayed and every row is compared.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from harness import emit, note
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it

from lockgate import Lake
from lockgate.framework.store import Catalog, Schema
from lockgate.lookup import close_all, status
from lockgate.procedures import ProcedureContext, call

BENCH = "lookup"
TABLE = "b.soaked"
KEYS = 200_000
UPSERTS, DELETES = 5_000, 500
ROWS_PER_SECOND = 20_000
DISK_BUDGET_MB = 512
_COMMIT_SECONDS = 1.0
_KILL_SECONDS = 30.0
_SAMPLE_SECONDS = 2.0
_COMPACT_EVERY = 30
_EXPIRE_EVERY = 45
_KEPT_SNAPSHOTS = 30
_SCHEMA = pa.schema([("id", pa.int64()), ("version", pa.int64()), ("text", pa.string())])
_GONE = -1


# --- the dimension's history ----------------------------------------------------------------------------


def _changes(number: int) -> tuple[Any, Any]:
    # The keys that commit `number` writes and those that it deletes; the first one writes all.
    if number == 0:
        return np.arange(KEYS), np.empty(0, np.int64)
    chosen = np.random.default_rng(number).choice(KEYS, UPSERTS + DELETES, replace=False)
    return chosen[:UPSERTS], chosen[UPSERTS:]


def _rows(ids: Any, version: int) -> pa.Table:
    text = pc.binary_join_element_wise(pa.array(ids).cast(pa.string()), str(version), "-")
    return pa.table([pa.array(ids), pa.array(np.full(len(ids), version)), text], schema=_SCHEMA)


def commit_every_second(warehouse: str, log: str) -> None:
    """Commit until the process is ended; the log says what each snapshot did.

    Two a second: one that writes rows, one that deletes some.
    """
    catalog = Catalog(warehouse)
    context = ProcedureContext(catalog)
    started = time.monotonic()
    number = 0
    with open(log, "a", buffering=1) as file:
        while True:
            table = catalog.load_table(TABLE)
            written, deleted = _changes(number)
            snapshot = table.append(_rows(written, number))
            file.write(json.dumps({"number": number, "deletes": False, "snapshot": snapshot.id}) + "\n")
            if len(deleted):
                snapshot = table.delete(pa.table({"id": deleted}))
                file.write(json.dumps({"number": number, "deletes": True, "snapshot": snapshot.id}) + "\n")
            if number % _COMPACT_EVERY == _COMPACT_EVERY - 1:
                call(context, "compact", table=TABLE)
            if number % _EXPIRE_EVERY == _EXPIRE_EVERY - 1:
                call(context, "expire_snapshots", table=TABLE, retain_max=_KEPT_SNAPSHOTS, retain_min=1)
            number += 1
            time.sleep(max(0.0, started + number * _COMMIT_SECONDS - time.monotonic()))


# --- what is watched while it runs --------------------------------------------------------------------------


@dataclass
class Watch:
    """Samples of what the processes and the cache take, and the owners that were killed."""

    cache: Path
    kills: int = 0
    owner_mb: list[float] = field(default_factory=list)
    workers_mb: list[float] = field(default_factory=list)
    disk_mb: list[float] = field(default_factory=list)
    lag_s: list[float] = field(default_factory=list)

    def until(self, ended: threading.Event) -> None:
        """Sample, and kill the owner now and then, until the event."""
        kill_at = time.monotonic() + _KILL_SECONDS
        while not ended.wait(_SAMPLE_SECONDS):
            report = status(TABLE)
            self.lag_s.append(report.lag_millis / 1000)
            self._sample(report.owner_pid)
            if time.monotonic() > kill_at and report.owner_pid is not None:
                os.kill(report.owner_pid, signal.SIGKILL)
                self.kills += 1
                kill_at += _KILL_SECONDS

    def _sample(self, owner: int | None) -> None:
        workers = 0
        for process in psutil.Process().children(recursive=True):
            try:
                own = process.memory_full_info().uss
                if process.pid == owner:
                    self.owner_mb.append(own / 2**20)
                elif "pyspark.daemon" in " ".join(process.cmdline()):
                    workers += own
            except psutil.NoSuchProcess:
                continue
        self.workers_mb.append(workers / 2**20)
        self.disk_mb.append(_disk_mb(self.cache))


def _disk_mb(folder: Path) -> float:
    # Hard links count once, as the disk counts them.
    found: dict[int, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                stat = (Path(parent) / name).stat()
            except FileNotFoundError:
                continue
            found[stat.st_ino] = stat.st_blocks * 512
    return sum(found.values()) / 2**20


# --- the run ---------------------------------------------------------------------------------------------


def soak(lake: Lake, folder: Path, minutes: float) -> int:
    """Run for so long, print what was seen, and return how many rows were wrong."""
    note(f"soak: {minutes:g} minutes, {KEYS:,} keys, {ROWS_PER_SECOND:,} rows a second")
    schema = Schema.from_arrow(_SCHEMA, primary_keys=("id",), options={"bucket": "2"})
    lake.catalog.create_table(TABLE, schema)
    log, output = folder / "commits.jsonl", folder / "output"
    writer = _start_writer(folder / "lake", log)
    watch = Watch(folder / "cache")
    ended = threading.Event()
    try:
        while not log.exists() or not log.read_text():
            time.sleep(0.1)
        query = _start_stream(lake, folder, output)
        while not query.recentProgress or not any(one.numInputRows for one in query.recentProgress):
            time.sleep(0.1)
        watcher = threading.Thread(target=watch.until, args=(ended,))
        watcher.start()
        try:
            _wait(query, writer, minutes * 60)
        finally:
            ended.set()
            watcher.join()
        query.stop()
    finally:
        writer.kill()
        writer.wait()
        close_all()
    return _report(watch, *_wrong_rows(output, log))


def _start_writer(warehouse: Path, log: Path) -> subprocess.Popen[bytes]:
    home = Path(__file__).resolve().parents[1]
    return subprocess.Popen([sys.executable, "-m", "lookups.soak", str(warehouse), str(log)], cwd=home)


def _start_stream(lake: Lake, folder: Path, output: Path) -> Any:
    numbers = lake.spark.readStream.format("rate").option("rowsPerSecond", ROWS_PER_SECOND).load()
    # One key in eleven is never in the table.
    asked = numbers.select(F.pmod(F.xxhash64("value"), F.lit(KEYS + KEYS // 10)).alias("id"))
    options = {
        "lookup.cache-dir": str(folder / "cache"),
        "lookup.cache-max-disk-size": f"{DISK_BUDGET_MB} mb",
    }
    joined = lake.lookup_join(
        asked, TABLE, on="id", select=["version", "text"], snapshot_column="snapshot", options=options
    )
    return (
        joined.writeStream.format("parquet")
        .option("path", str(output))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )


def _wait(query: Any, writer: subprocess.Popen[bytes], seconds: float) -> None:
    started, minutes = time.monotonic(), 0
    while time.monotonic() - started < seconds:
        if query.awaitTermination(1):
            raise AssertionError("the stream ended by itself")
        if writer.poll() is not None:
            raise AssertionError(f"the writer ended with {writer.returncode}")
        if (passed := int(time.monotonic() - started) // 60) > minutes:
            minutes = passed
            note(f"soak: {minutes} minutes, {status(TABLE)}")


def _wrong_rows(output: Path, log: Path) -> tuple[int, int, int]:
    # Wrong rows, all rows, distinct snapshots.
    commits = [json.loads(line) for line in log.read_text().splitlines()]
    snapshots = np.array([commit["snapshot"] for commit in commits])
    rows = ds.dataset(output, format="parquet").to_table().sort_by("snapshot")
    answered = rows.column("snapshot").to_numpy()
    state = np.full(KEYS + KEYS // 10, _GONE)
    applied, wrong = 0, 0
    for snapshot in np.unique(answered):
        upto = int(np.searchsorted(snapshots, snapshot, side="right"))
        for commit in commits[applied:upto]:
            written, deleted = _changes(commit["number"])
            if commit["deletes"]:
                state[deleted] = _GONE
            else:
                state[written] = commit["number"]
        applied = upto
        first, last = np.searchsorted(answered, [snapshot, snapshot + 1])
        wrong += _differ(rows.slice(first, last - first), state)
    return wrong, rows.num_rows, len(np.unique(answered))


def _differ(rows: pa.Table, state: Any) -> int:
    ids = rows.column("id").to_numpy()
    versions = pc.fill_null(rows.column("version"), _GONE).to_numpy()
    expected = pc.binary_join_element_wise(
        pa.array(ids).cast(pa.string()), pa.array(versions).cast(pa.string()), "-"
    )
    text = rows.column("text").combine_chunks()
    same = pc.fill_null(pc.equal(text, expected), False).to_numpy(zero_copy_only=False)
    right = (versions == state[ids]) & np.where(versions == _GONE, text.is_null(), same)
    return int((~right).sum())


def _report(watch: Watch, wrong: int, rows: int, snapshots: int) -> int:
    emit(BENCH, "soak_wrong_rows", wrong, "rows", f"of {rows:,} rows of {snapshots:,} snapshots; the goal: 0")
    emit(BENCH, "soak_owner_kills", watch.kills, "kills", None)
    emit(BENCH, "soak_disk_peak_mb", max(watch.disk_mb), "MB", f"the budget: {DISK_BUDGET_MB}")
    for name, samples in (("owner", watch.owner_mb), ("workers", watch.workers_mb), ("disk", watch.disk_mb)):
        quarter = max(1, len(samples) // 4)
        before, after = median(samples[quarter : 2 * quarter + 1]), median(samples[-quarter:])
        remark = f"last quarter's median over the second's; {after:.0f} MB at the end"
        emit(BENCH, f"soak_{name}_growth", after / max(before, 1.0), "ratio", remark)
    emit(
        BENCH,
        "soak_lag_p99_s",
        float(np.percentile(watch.lag_s, 99)),
        "s",
        "the owner is killed concurrently",
    )
    return wrong


if __name__ == "__main__":
    commit_every_second(*sys.argv[1:])
