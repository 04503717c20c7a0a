"""What a process keeps of parsed metadata ends at a bound, however many tables and commits it sees."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.store.manifests.parsed_cache import ParsedCache

CACHES = ("_lists", "_manifests", "_snapshots")


def test_never_more_than_its_capacity_and_the_newest_stay() -> None:
    chance, cache = random.Random(5), ParsedCache[int, tuple[int, ...]](100)
    weights: dict[int, int] = {}
    for key in range(500):
        weights[key] = chance.randrange(30)
        cache.put(key, (0,) * weights[key])
        cache.put(key, (0,) * weights[key])
        held = [each for each in range(key + 1) if cache.get(each) is not None]
        assert sum(weights[each] + 1 for each in held) <= 100
        assert held == list(range(held[0], key + 1))
    assert cache.get(0) is None


def test_statements_over_new_tables_stop_taking_memory(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a bound each of them takes some."""
    schema = pa.schema([("id", pa.int64())])

    def statements() -> None:
        for _ in range(10):
            table = catalog.create_table("db.passing", Schema.from_arrow(schema))
            table.append(pa.table({"id": [1]}, schema=schema))
            assert catalog.load_table("db.passing").read().num_rows == 1
            catalog.drop_table("db.passing")

    def growth(bound: int) -> int:
        for name in CACHES:
            monkeypatch.setattr(manifest_files, name, ParsedCache(bound))
        return growth_of(statements)

    bounded, free = growth(10), growth(100_000)
    assert bounded < free / 3, (bounded, free)


def growth_of(work: Callable[[], None]) -> int:
    """How many bytes are held after `work` was done twice that were not after the first time."""
    tracemalloc.start()
    try:
        held = []
        for _ in range(2):
            work()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        return held[1] - held[0]
    finally:
        tracemalloc.stop()
