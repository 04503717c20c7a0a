"""How many rows a second one core looks up and decodes, without Spark."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from harness import emit, interleaved, note

from lockgate.framework.store import Table
from lockgate.lookup import LookupTable, open_lookup
from lookups.dimension import Keys, batch, keys

BENCH = "lookup"
BATCH_ROWS = 100_000
SIZES = (10_000, 100_000, 1_000_000)
DISTRIBUTIONS: tuple[Keys, ...] = ("uniform", "zipf")
AIMS = {("full", "1m"): 500_000, ("full", "10m"): 350_000, ("memory", "1m"): 1_500_000}


def rates(table: Table, count: int, label: str, cache: str, folder: Path, repetitions: int) -> None:
    """Print rows a second of CPU time for each size of batch and kind of keys."""
    options = {"lookup.cache": cache, "lookup.cache-dir": str(folder / f"cache-{cache}")}
    with open_lookup(table, "id", options=options) as lookup:
        note(f"rates: {cache}, {count:,} rows")
        for size in SIZES:
            for distribution in DISTRIBUTIONS:
                rate = _rate(lookup, distribution, count, size, repetitions)
                if size == BATCH_ROWS and distribution == "uniform":
                    goal = AIMS.get((cache, label))
                    baseline = None if goal is None else f"the goal: {goal:,}"
                    emit(BENCH, f"{cache}_{label}_rows_per_core", rate, "rows/s", baseline)
                else:
                    metric = f"{cache}_{label}_{distribution}_{size}_rows_per_core"
                    emit(BENCH, metric, rate, "rows/s", None)


def _rate(lookup: LookupTable, distribution: Keys, count: int, size: int, repetitions: int) -> float:
    batches = [batch(keys(distribution, count, size, seed)) for seed in range(repetitions + 1)]
    seconds = []
    for one in batches:
        started = time.process_time()
        found = lookup.get(one)
        seconds.append(time.process_time() - started)
        if not 0.85 < len(found.rows) / size < 0.95:
            raise AssertionError(f"{len(found.rows)} of {size} keys have rows: the lookup answers wrongly")
    return size / median(seconds[1:])


def misses(table: Table, count: int, cache: str, folder: Path, repetitions: int) -> None:
    """Print how fast a batch of keys without rows is answered, over one whose keys all have rows."""
    options = {"lookup.cache": cache, "lookup.cache-dir": str(folder / f"cache-{cache}")}
    random = np.random.default_rng(7)
    with open_lookup(table, "id", options=options) as lookup:
        hit = batch(random.integers(0, count, BATCH_ROWS))
        miss = batch(random.integers(count, 2 * count, BATCH_ROWS))
        if len(lookup.get(hit).rows) != BATCH_ROWS or len(lookup.get(miss).rows):
            raise AssertionError("the lookup answers wrongly")
        times = interleaved(
            {"hit": partial(lookup.get, hit), "miss": partial(lookup.get, miss)},
            repetitions,
            clock=time.process_time,
        )
    metric = "miss_vs_hit" if cache == "full" else f"miss_vs_hit_{cache}"
    emit(BENCH, metric, median(times["hit"]) / median(times["miss"]), "speed", "hits of the same cache")
