"""Would a cache of hot rows in front of RocksDB pay? An upper bound of what it could bring.

The hot rows are those that the batches before have asked for last, in the fastest form there is (mapped
files, as in `lookup.cache=memory`), already there and kept up by nobody: what remains is to find a batch's
keys among them first and to ask RocksDB for the others. A real one would also take rows in and drop them.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import emit, interleaved, note

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.lookup import open_lookup
from lockgate.lookup.cache.backends import CacheReader, FoundRows
from lockgate.lookup.cache.cache_version import CacheVersion
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.codec.byte_rows import Rows
from lookups.dimension import SCHEMA, Keys, batch, keys, rows

BENCH = "lookup"
SIZES = (10_000, 100_000)
CAPACITIES = (10_000, 100_000)
DISTRIBUTIONS: tuple[Keys, ...] = ("uniform", "zipf")
_BATCHES_BEFORE = 30
_BLOCK_CACHE = 256 << 20


class Layered:
    """A reader of hot rows, then of all."""

    def __init__(self, hot: CacheReader, all_rows: CacheReader) -> None:
        self._hot, self._all = hot, all_rows
        self.hits = self.asked = 0

    def find(self, keys: Rows) -> list[FoundRows]:
        """Find keys among the hot rows, and those that are not there among all."""
        found = self._hot.find(keys)
        missed = np.ones(len(keys), bool)
        for part in found:
            missed[part.at] = False
        rest = np.flatnonzero(missed)
        self.asked += len(keys)
        self.hits += len(keys) - len(rest)
        return [*found, *(FoundRows(rest[part.at], part.rows) for part in self._all.find(keys.take(rest)))]

    def close(self) -> None:
        """Release the files."""
        self._hot.close()
        self._all.close()


def hot_rows(catalog: Catalog, table: Table, count: int, label: str, folder: Path, repetitions: int) -> None:
    """Print how many times faster lookups would be with hot rows before RocksDB than they are without."""
    note(f"hot rows: {count:,} rows")
    plain = _open(table, "full", folder / "cache-full")
    for size in SIZES:
        for distribution in DISTRIBUTIONS:
            for capacity in CAPACITIES:
                ids = _asked_last(distribution, count, size, capacity)
                name = f"b.hot_{label}_{size}_{distribution}_{capacity}"
                few = catalog.create_table(
                    name, Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1"})
                )
                few.append(rows(ids))
                layered = _open(table, "full", folder / "cache-full")
                reader = Layered(_reader(_open(few, "memory", folder / "cache-hot")), _reader(layered))
                layered._store = reader
                speed = _compare(plain, layered, distribution, count, size, repetitions)
                share = reader.hits / reader.asked
                remark = f"a bound: {capacity:,} hot rows, {share:.0%} of a batch's keys among them"
                emit(BENCH, f"hot_rows_{label}_{distribution}_{size}_{capacity}", speed, "speed", remark)
                layered.close()
    plain.close()


def _asked_last(distribution: Keys, count: int, size: int, capacity: int) -> Any:
    batches = [keys(distribution, count, size, 1000 + seed) for seed in range(_BATCHES_BEFORE)]
    asked = np.concatenate(batches[::-1])
    there = asked[asked < count]
    ids, first = np.unique(there, return_index=True)
    return ids[np.argsort(first)][:capacity]


def _open(table: Table, cache: str, folder: Path) -> CacheVersion:
    with open_lookup(table, "id", options={"lookup.cache": cache, "lookup.cache-dir": str(folder)}) as lookup:
        directory = CacheDirectory(Path(lookup.status().directory))
        snapshot = lookup.status().snapshot_id
    assert snapshot is not None, "the table has rows"
    return CacheVersion(directory, snapshot, _BLOCK_CACHE)


def _reader(generation: CacheVersion) -> CacheReader:
    return generation._store


def _compare(
    plain: CacheVersion, layered: CacheVersion, distribution: Keys, count: int, size: int, repetitions: int
) -> float:
    speeds = []
    for seed in range(repetitions):
        asked = batch(keys(distribution, count, size, seed)).columns
        if plain.get(asked).rows.num_rows != layered.get(asked).rows.num_rows:
            raise AssertionError("the two answer differently")
        times = interleaved(
            {"plain": partial(plain.get, asked), "layered": partial(layered.get, asked)},
            2,
            warm_up=0,
            clock=time.process_time,
        )
        speeds.append(median(times["plain"]) / median(times["layered"]))
    return median(speeds)
