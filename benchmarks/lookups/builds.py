"""How fast a cache is built, and in how much memory; each in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from harness import emit, note

from lockgate.framework.store import Catalog
from lockgate.lookup import open_lookup

BENCH = "lookup"


def build_times(warehouse: Path, name: str, count: int, label: str, cache: str, repetitions: int) -> None:
    """Print rows a second of wall time and the peak memory of the building process."""
    note(f"building: {cache}, {count:,} rows")
    runs = [_build(warehouse, name, cache, warehouse.parent / f"build-{n}") for n in range(repetitions)]
    prefix = "" if cache == "full" else f"{cache}_"
    suffix = "" if label == "1m" else f"_{label}"
    goal = "the goal: 1,000,000" if label == "1m" else "the goal: 800,000"
    seconds = median(run["seconds"] for run in runs)
    emit(BENCH, f"{prefix}build_rows_per_s{suffix}", count / seconds, "rows/s", goal)
    peak = max(run["peak_mb"] for run in runs)
    emit(BENCH, f"{prefix}build_peak_mb{suffix}", peak, "MB", "the goal: 1,000 for 10 million rows")


def _build(warehouse: Path, name: str, cache: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "lookups.builds", str(warehouse), name, cache, str(folder)]
    home = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "MIMALLOC_PURGE_DELAY": "0"}  # as owners have it
    output = subprocess.run(
        command, cwd=home, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    measured: dict[str, float] = json.loads(output)
    return measured


def child(warehouse: str, name: str, cache: str, folder: str) -> None:
    """Build one cache and print what it took as JSON."""
    table = Catalog(warehouse).load_table(name)
    started = time.perf_counter()
    lookup = open_lookup(table, "id", options={"lookup.cache": cache, "lookup.cache-dir": folder})
    seconds = time.perf_counter() - started
    lookup.close()
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children
    print(json.dumps({"seconds": seconds, "peak_mb": peak / 1024}))


if __name__ == "__main__":
    child(*sys.argv[1:])
