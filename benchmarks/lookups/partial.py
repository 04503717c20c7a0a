"""Partial caches: the first answer, batches of new keys, and batches of hot ones next to a full cache."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import psutil
import pyarrow as pa
from harness import emit, interleaved, note, ratio

from lockgate.framework.store import Catalog, Table
from lockgate.lookup import LookupTable, open_lookup
from lockgate.lookup.cache.directory import disk_usage
from lockgate.lookup.driver.lookup_tables import PartialLookupTable, make_spec
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join import lookup_worker
from lookups.dimension import VALUES, batch, make_dimension, rows

BENCH = "lookup"
HOT_KEYS = 100_000
BATCH_ROWS = 10_000
# In a table of more rows every batch of new keys reads most of the files, so they are asked for at once.
_MANY_ROWS = 20_000_000


def partial_cache(
    catalog: Catalog,
    table: Table,
    count: int,
    label: str,
    folder: Path,
    repetitions: int,
    smaller: tuple[Table, int] | None = None,
) -> None:
    """Print the seconds to the first answer and of new keys, and hot batches' time over a full cache's.

    That is of the same table, or of a `smaller` one with so many rows, whose cache is faster.
    """
    note(f"partial: {count:,} rows")
    whole, whole_count = smaller or (table, count)
    asked_first, step = (BATCH_ROWS, BATCH_ROWS) if count < _MANY_ROWS else (10, HOT_KEYS)
    random = np.random.default_rng(11)
    started = time.perf_counter()
    lookup = open_lookup(table, "id", options={"lookup.cache": "partial"})
    assert isinstance(lookup, PartialLookupTable)
    hot = np.sort(random.choice(count, min(HOT_KEYS, count), replace=False))
    lookup.get(batch(hot[:asked_first]))
    first = time.perf_counter() - started
    started = time.perf_counter()
    full = open_lookup(
        whole, "id", options={"lookup.cache": "full", "lookup.cache-dir": str(folder / "partial")}
    )
    full.get(batch(hot[:BATCH_ROWS] % whole_count))
    remark = f"of {asked_first:,} keys; a full cache of {whole_count:,} rows: "
    remark += f"{time.perf_counter() - started:.2f} s"
    emit(BENCH, f"partial_first_answer_s_{label}", first, "s", remark)
    cold = [_seconds(lookup, hot[start : start + step]) for start in range(asked_first, len(hot), step)]
    emit(BENCH, f"partial_new_keys_s_{label}", median(cold), "s", f"batches of {step:,} new keys")
    misses = np.arange(BATCH_ROWS) + 2 * count
    remark = "new keys that are larger than any"
    emit(BENCH, f"partial_new_misses_s_{label}", _seconds(lookup, misses), "s", remark)
    ratios = []
    for _ in range(repetitions):
        ids = random.choice(hot, BATCH_ROWS)
        asked, asked_whole = batch(ids), batch(ids % whole_count)
        for answer, asked_ids in ((lookup.get(asked), ids), (full.get(asked_whole), ids % whole_count)):
            if not all(answer.rows.column(name).equals(_values(asked_ids, name)) for name in VALUES):
                raise AssertionError("an answer is wrong")
        functions = {"partial": partial(lookup.get, asked), "full": partial(full.get, asked_whole)}
        times = interleaved(functions, 3, clock=time.process_time)
        ratios.append(ratio(times["partial"], times["full"]))
    emit(BENCH, f"partial_warm_vs_full_{label}", median(ratios), "time", "the goal: at most 2")
    emit(
        BENCH, f"partial_memory_mb_{label}", lookup._cache.size / 2**20, "MB", "the goal: 1,000; 10⁵ hot keys"
    )
    lookup.close()
    _over_socket(catalog, table, (full, whole_count), hot, label, folder, repetitions, step)
    full.close()


def misses_among_keys(catalog: Catalog, count: int, repetitions: int) -> None:
    """Print the time of keys between the table's over the time of its own: new ones, and those asked again.

    The table has the even ids, so that no bounds of files or row groups tell that an odd one is not there.
    """
    note(f"partial: misses among {count:,} keys")
    table = make_dimension(catalog, "b.gaps", count, step=2)
    ids = np.random.default_rng(13).permutation(count)
    lookup = open_lookup(table, "id", options={"lookup.cache": "partial"})
    assert isinstance(lookup, PartialLookupTable)
    lookup.get(batch(ids[:BATCH_ROWS] * 2))  # the files' footers
    new, again = [], []
    for number in range(1, repetitions + 1):
        some = ids[number * BATCH_ROWS : (number + 1) * BATCH_ROWS] * 2
        asked = {"hits": batch(some), "misses": batch(some + 1)}
        if number % 2:
            asked = dict(reversed(asked.items()))
        first = {name: _seconds_of(lookup, keys) for name, keys in asked.items()}
        if lookup.get(asked["misses"]).rows.num_rows or lookup.get(asked["hits"]).rows.num_rows != len(some):
            raise AssertionError("an answer is wrong")
        functions = {name: partial(lookup.get, keys) for name, keys in asked.items()}
        times = interleaved(functions, 3)
        new.append(first["misses"] / first["hits"])
        again.append(ratio(times["misses"], times["hits"]))
    lookup.close()
    remark = f"batches of {BATCH_ROWS:,} new keys within the range of the table's"
    emit(BENCH, "partial_new_misses_vs_hits", median(new), "time", f"{remark}; the goal: 1")
    emit(BENCH, "partial_misses_vs_hits", median(again), "time", "keys asked before; the goal: 1")


def _values(ids: np.ndarray, name: str) -> pa.Array:
    return rows(ids).column(name).combine_chunks()


def _over_socket(
    catalog: Catalog,
    table: Table,
    whole: tuple[LookupTable, int],
    hot: np.ndarray,
    label: str,
    folder: Path,
    repetitions: int,
    step: int,
) -> None:
    """Print hot batches' time as tasks see it, who ask the cache's owner, over a full cache's; its memory."""
    full, whole_count = whole
    options = {"lookup.cache": "partial", "lookup.cache-dir": str(folder / "owner")}
    lookup = Lookup(catalog, table, make_spec(table, "id", options=options))
    try:
        state = lookup_worker.WantedState(str(lookup.directory.path), lookup.pin(None, None), 0)
        layout = full.layout
        fields = [layout.row_schema.field(name) for name in layout.columns]
        form = lookup_worker.AnswerForm(fields, many=False)
        for start in range(0, len(hot), step):
            lookup_worker.answer(state, [pa.array(hot[start : start + step])], form)
        random, ratios = np.random.default_rng(12), []
        for _ in range(repetitions):
            ids = random.choice(hot, BATCH_ROWS)
            functions = {
                "partial": partial(lookup_worker.answer, state, batch(ids).columns, form),
                "full": partial(full.get, batch(ids % whole_count)),
            }
            times = interleaved(functions, 5)
            ratios.append(ratio(times["partial"], times["full"]))
        remark = "wall clock; the goal: at most 2"
        emit(BENCH, f"partial_warm_over_socket_vs_full_{label}", median(ratios), "time", remark)
        owner = psutil.Process(lookup.status().owner_pid).memory_info().rss / 2**20
        emit(BENCH, f"partial_owner_memory_mb_{label}", owner, "MB", "of the whole process; the goal: 1,000")
        disk = disk_usage(lookup.directory.path) / 2**20
        emit(BENCH, f"partial_disk_mb_{label}", disk, "MB", "of the cache's folder; the goal: 1,000")
    finally:
        lookup_worker.close_states()
        lookup.close()


def _seconds(lookup: PartialLookupTable, ids: np.ndarray) -> float:
    return _seconds_of(lookup, batch(ids))


def _seconds_of(lookup: PartialLookupTable, asked: pa.RecordBatch) -> float:
    started = time.perf_counter()
    lookup.get(asked)
    return time.perf_counter() - started
