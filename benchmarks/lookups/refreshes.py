"""How soon a commit is seen by lookups, and what its refresh costs those that run concurrently."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from harness import emit, note

from lockgate import Lake
from lockgate.framework.store import Table
from lockgate.lookup import LookupTable, close_all, open_lookup, status, wait_for
from lookups.dimension import batch, keys, rows

BENCH = "lookup"
CHANGED_ROWS = 100_000
PROBE_ROWS = 10_000
ROUNDS = 12


def refresh_times(lake: Lake, table: str, count: int, label: str, folder: Path, repetitions: int) -> None:
    """Print the seconds from a commit of 10⁵ changes until lookups answer from it.

    By default options, under which 10⁶ rows are kept in mapped files, and in RocksDB.
    """
    note(f"refreshing: {count:,} rows, {CHANGED_ROWS:,} changes a commit")
    suffix = "" if label == "1m" else f"_{label}"
    for cache, prefix in (("auto", ""), ("full", "full_")):
        dimension = _start(lake, table, folder / f"cache-{label}", cache)
        seconds = [_seen_after(table, _commit(dimension, count, salt)) for salt in range(repetitions + 1)][1:]
        remark = f"worst {max(seconds):.2f} s; the goal: 1"
        emit(BENCH, f"{prefix}refresh_visible_s{suffix}", median(seconds), "s", remark)
        close_all()


def disturbance(lake: Lake, table: str, count: int, folder: Path) -> None:
    """Print the 99th percentile of lookups during refreshes over that between them, one core left free."""
    dimension = _start(lake, table, folder / "cache-p99")
    cache = {"lookup.cache-dir": str(folder / "cache-p99")}
    calm: list[float] = []
    busy: list[float] = []
    with open_lookup(dimension, "id", options=cache) as lookup:
        for seed in range(50):
            _ask(lookup, count, seed)
        for number in range(ROUNDS):
            started = time.monotonic()
            snapshot = _commit(dimension, count, 100 + number)
            busy += _ask_while(lookup, count, partial(_is_unseen, table, snapshot))
            wait_for(table, snapshot)
            lookup.refresh()
            _ask(lookup, count, number)
            calm += _ask_while(lookup, count, partial(_is_before, 2 * time.monotonic() - started))
    close_all()
    p99 = {name: float(np.percentile(times, 99)) for name, times in (("busy", busy), ("calm", calm))}
    remark = f"{p99['calm'] * 1000:.1f} ms between refreshes, batches of {PROBE_ROWS:,}; the goal: 1.2"
    emit(BENCH, "p99_during_refresh_ratio", p99["busy"] / p99["calm"], "ratio", remark)


def _start(lake: Lake, table: str, folder: Path, cache: str = "auto") -> Table:
    # A batch's plan starts the lookup; its timer goes on by itself.
    probe = lake.spark.range(1)
    options = {"lookup.cache-dir": str(folder), "lookup.cache": cache}
    lake.lookup_join(probe, table, on="id", options=options).collect()
    return lake.catalog.load_table(table)


def _commit(table: Table, count: int, salt: int) -> int:
    table.append(rows(np.arange(salt % 7, count, max(1, count // CHANGED_ROWS)), salt=salt))
    latest = table.latest_snapshot()
    assert latest is not None, "a commit makes a snapshot"
    return latest.id


def _is_unseen(table: str, snapshot: int) -> bool:
    return (status(table).served_snapshot or 0) < snapshot


def _is_before(end: float) -> bool:
    return time.monotonic() < end


def _seen_after(table: str, snapshot: int) -> float:
    started = time.perf_counter()
    wait_for(table, snapshot)
    return time.perf_counter() - started


def _ask(lookup: LookupTable, count: int, seed: int) -> float:
    asked = batch(keys("uniform", count, PROBE_ROWS, seed))
    started = time.perf_counter()
    lookup.get(asked)
    return time.perf_counter() - started


def _ask_while(lookup: LookupTable, count: int, going_on: Callable[[], bool]) -> list[float]:
    times = []
    while going_on():
        times.append(_ask(lookup, count, len(times)))
    return times
