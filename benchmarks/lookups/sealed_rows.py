"""What it costs that the cache of a table with encrypted columns is encrypted: lookups next to plain ones."""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from pathlib import Path
from statistics import median

from harness import emit, interleaved, note

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog
from lockgate.lookup import LookupTable, open_lookup
from lookups.dimension import batch, keys, make_dimension

BENCH = "lookup"
SIZES = (10_000, 100_000)
# Two of eight columns, as the benchmarks of encrypted files have it.
ENCRYPTED = {"orc.encrypt": "pii:s,u"}


def sealed_rows(warehouse: Path, name: str, count: int, label: str, folder: Path, repetitions: int) -> None:
    """Print the speed of lookups in an encrypted cache over those in a plain one of the same rows."""
    note(f"encrypted caches: {count:,} rows")
    catalog = Catalog(warehouse, keys=MemoryKeyProvider({"pii@0": os.urandom(16)}))
    secret = make_dimension(catalog, f"{name}_sealed", count, ENCRYPTED)
    tables = {"plain": catalog.load_table(name), "sealed": secret}
    options = {"lookup.cache": "full", "lookup.cache-dir": str(folder / "cache-sealing")}
    lookups = {kind: open_lookup(table, "id", options=options) for kind, table in tables.items()}
    for size in SIZES:
        speed = _speed(lookups, count, size, repetitions)
        metric = f"sealed_vs_plain_{label}" if size == SIZES[-1] else f"sealed_vs_plain_{label}_{size}"
        emit(BENCH, metric, speed, "speed", "lookups in a plain full cache; the goal: 0.75")
    for lookup in lookups.values():
        lookup.close()
    shutil.rmtree(folder / "cache-sealing")


def _speed(lookups: dict[str, LookupTable], count: int, size: int, repetitions: int) -> float:
    speeds = []
    for seed in range(repetitions + 1):
        asked = batch(keys("uniform", count, size, seed))
        answers = [lookup.get(asked).rows for lookup in lookups.values()]
        if answers[0] != answers[1]:
            raise AssertionError("the two answer differently")
        calls = {kind: partial(lookup.get, asked) for kind, lookup in lookups.items()}
        times = interleaved(calls, 2, warm_up=0, clock=time.process_time)
        speeds.append(median(times["plain"]) / median(times["sealed"]))
    return median(speeds[1:])
