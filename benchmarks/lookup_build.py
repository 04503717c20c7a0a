"""Lookup caches: how fast they are built, read and refreshed, without Spark."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from harness import emit, note, timed
from lookups.dimension import SCHEMA, rows

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.lookup import LookupTable, open_lookup

ROWS = 1_000_000
BATCH_ROWS = 100_000
BATCHES = 7
CHANGED_ROWS = 100_000


def dimension(folder: Path, count: int = ROWS) -> Table:
    """A primary-key table of `count` rows in a warehouse of its own."""
    catalog = Catalog(str(folder / "warehouse"))
    catalog.create_namespace("b")
    options = {"bucket": "1", "lookup.cache-dir": str(folder / "cache")}
    table = catalog.create_table("b.dim", Schema.from_arrow(SCHEMA, primary_keys=("id",), options=options))
    table.append(rows(np.arange(count)))
    return table


def measure(count: int = ROWS) -> dict[str, float]:
    """Build, ask and refresh one cache; rates are rows a second of wall time."""
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-"))
    try:
        table = dimension(folder, count)
        read = timed(lambda: [batch.num_rows for batch in table.read_batches()])
        started = time.perf_counter()
        lookup = open_lookup(table, "id")
        build = time.perf_counter() - started
        asked = median(ask(lookup, count, number) for number in range(BATCHES))
        table.append(rows(np.arange(0, count, max(1, count // CHANGED_ROWS)), salt=1))
        refresh = timed(lookup.refresh)
        status = lookup.status()
        lookup.close()
        assert status.generation is not None
        return {
            "cache_build_rows_per_s": count / build,
            "cache_build_without_reading_rows_per_s": count / max(build - read, 1e-9),
            "cache_bytes_per_row": status.generation.bytes / count,
            "lookup_rows_per_s": BATCH_ROWS / asked,
            "cache_refresh_s": refresh,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask(lookup: LookupTable, count: int, seed: int) -> float:
    """The seconds that a batch of random keys takes, one in ten of them a miss."""
    keys = np.random.default_rng(seed).integers(0, count * 10 // 9, BATCH_ROWS)
    batch = pa.RecordBatch.from_arrays([pa.array(keys)], ["id"])
    return timed(lambda: lookup.get(batch))


UNITS = {"cache_bytes_per_row": "bytes", "cache_refresh_s": "s"}


def main() -> int:
    """Measure a million rows and print the figures."""
    note(f"lookup: a cache of {ROWS:,} rows, batches of {BATCH_ROWS:,} keys, {CHANGED_ROWS:,} changed rows")
    for metric, value in measure().items():
        emit("main", metric, value, UNITS.get(metric, "rows/s"), None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
