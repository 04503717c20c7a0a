"""Nothing is left behind by a query, a micro-batch or a lookup; `./dev bench leaks` does more of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from leaks.counts import Counts, growth, repeat
from leaks.kinds import Kinds, working

if TYPE_CHECKING:
    from lockgate import Lake

# How often, and before how often: the first ones fill pools.
REPETITIONS = {
    "point": 30,
    "scan": 20,
    "insert": 16,
    "merge": 12,
    "call": 20,
    "explain": 20,
    "keys": 16,
    "unwrap": 16,
    "lookup": 20,
    "lookup_stream": 24,
    "foreach_batch": 24,
}
WARM_UP = 8
QUICK = {"point"}


@pytest.fixture(scope="module")
def kinds(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kinds]:
    from lockgate import lookup

    yield Kinds(lake, tmp_path_factory.mktemp("leaks"))
    lookup.close_all()
    lake.catalog.drop_namespace("leaks", cascade=True)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in REPETITIONS]
)
def test_nothing_is_left_behind(kinds: Kinds, name: str) -> None:
    counts = Counts(kinds.spark.sparkContext)
    times = REPETITIONS[name]
    with working(kinds, name) as work:
        repeat(work, WARM_UP)
        before, led_to = counts.take(), counts.descriptors()
        repeat(work, times, WARM_UP)
        added = growth(before, counts.take())
        # Whatever is left by each one would be `times` of it; a few are pools that were not full yet.
        assert added["python_threads"] <= times // 3, (added, counts.java_threads())
        assert added["python_descriptors"] <= times // 3, counts.descriptors() - led_to
        assert added["jvm_descriptors"] <= times // 2, added
        assert added["bridge_connections"] <= 8, added
        assert len(kinds.bridge_threads()) <= 16
