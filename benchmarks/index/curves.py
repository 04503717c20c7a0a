"""Places of rows on Hilbert's curve, by which a compaction orders them."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from harness import emit, timed

from lockgate.framework.store.maintenance.curves import hilbert, quantiles

BENCH = "index"
ROWS, COLUMNS, BITS = 1_000_000, 3, 20


def measure(repetitions: int) -> None:
    """Print how many rows a second of the processor get a place, with and without their quantiles."""
    chance = np.random.default_rng(3)
    ranks = [chance.integers(0, ROWS, ROWS).astype(np.uint64) for _ in range(COLUMNS)]
    axes = [quantiles(each, BITS) for each in ranks]
    took = [timed(lambda: hilbert(axes, BITS), time.process_time) for _ in range(repetitions)]
    emit(BENCH, "hilbert_rows_per_s", ROWS / median(took), "rows/s", 700_000)
    both = [
        timed(lambda: hilbert([quantiles(each, BITS) for each in ranks], BITS), time.process_time)
        for _ in range(repetitions)
    ]
    emit(BENCH, "hilbert_with_quantiles_rows_per_s", ROWS / median(both), "rows/s")
