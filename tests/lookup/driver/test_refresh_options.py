"""How far a batch may be behind, when nothing is refreshed, and which pins are dropped."""

from __future__ import annotations

import os
import time
import types
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import LookupCacheError, OptionError
from lockgate.framework.plugins import Event, StreamProgressed, hookimpl, plugins
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.framework.store.tables.table import Table
from lockgate.lookup.driver import lookup_registry
from lockgate.lookup.driver.lookup_tables import make_spec, open_lookup
from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots, forget_ended, shared_pinned_snapshots
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.periods import covers, parse_periods

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


class World:
    """A dimension, and the lookups started on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = Catalog(str(folder / "warehouse"))
        self.catalog.create_namespace("db")
        schema = Schema.from_arrow(SCHEMA, primary_keys=("id",), options={"bucket": "1"})
        self.table: Table = self.catalog.create_table("db.dim", schema)
        self.lookups: list[Lookup] = []
        self.add()

    def add(self) -> None:
        self.table.append(pa.table({"id": range(10), "n": [1] * 10}, schema=SCHEMA))

    def options(self, given: dict[str, str]) -> dict[str, str]:
        folder = str(self.folder / "cache")
        return {"lookup.cache-dir": folder, "lookup.refresh.interval": "50 ms", **given}

    def lookup(self, **given: str) -> Lookup:
        spec = make_spec(self.table, "id", options=self.options(given))
        self.lookups.append(Lookup(self.catalog, self.table, spec))
        return self.lookups[-1]

    def break_newest(self) -> None:
        """Commit a snapshot that cannot be read."""
        before = set(Path(self.table.location).glob("bucket-0/*"))
        self.add()
        (added,) = set(Path(self.table.location).glob("bucket-0/*")) - before
        added.write_bytes(b"broken")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for lookup in made.lookups:
        lookup.close()


def test_a_batch_fails_rather_than_answer_from_too_old_a_state(world: World) -> None:
    lookup = world.lookup(**{"lookup.refresh.max-staleness": "1 s"})
    assert lookup.pin("query", 0) == 1
    time.sleep(1.2)
    assert lookup.pin("query", 1) == 1, "what is the newest is never stale"
    # Held still, so that it cannot read the snapshot before it is broken.
    pid = lookup.status().owner_pid
    assert pid is not None
    os.kill(pid, 19)
    world.break_newest()
    os.kill(pid, 18)
    deadline = time.monotonic() + 20
    while lookup.status().failures < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(1)
    message = r"snapshot 1, which has been out of date for .*max-staleness allows; the last refresh failed"
    with pytest.raises(LookupCacheError, match=message):
        lookup.pin("query", 2)
    assert lookup.pin("query", 1) == 1, "a retried batch keeps its snapshot"


def test_asynchronous_refresh_lags_behind_by_so_many_snapshots_at_most(world: World) -> None:
    lookup = world.lookup(
        **{"lookup.refresh.async.pending-snapshot-count": "2", "lookup.refresh.interval": "1 h"}
    )
    assert lookup.pin("query", 0) == 1
    for _ in range(2):
        world.add()
    assert lookup.pin("query", 1) == 1
    world.add()
    assert lookup.pin("query", 2) == 4


def test_nothing_is_refreshed_in_a_period_of_the_blacklist(world: World) -> None:
    today = datetime.now()
    hour = [f"{today + timedelta(hours=by):%Y-%m-%d %H:%M}" for by in (-1, 1)]
    lookup = world.lookup(
        **{"lookup.refresh.time-periods-blacklist": "->".join(hour), "lookup.refresh.async": "false"}
    )
    assert lookup.pin("query", 0) == 1, "the first load is made at any time"
    world.add()
    deadline = time.monotonic() + 20
    while lookup.status().target_snapshot != 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert lookup.pin("query", 1) == 1


def test_periods_without_refreshes_cover_their_hours() -> None:
    periods = parse_periods("2026-01-31 22:00->2026-02-01 02:00, 2026-03-01 00:00->2026-03-01 00:30,")
    assert [covers(periods, datetime(2026, 1, 31, hour)) for hour in (21, 22, 23)] == [False, True, True]
    assert not covers(periods, datetime(2026, 2, 1, 2))
    assert not covers((), datetime(2026, 1, 1))
    for wrong in ("22:00->23:00", "2026-01-31 22:00", "2026-01-31 22:00->2026-01-31 21:00"):
        with pytest.raises(OptionError, match="time-periods-blacklist"):
            lookup_options({}, {"lookup.refresh.time-periods-blacklist": wrong})


def test_pins_that_no_driver_renews_are_dropped(world: World) -> None:
    gone, living = PinnedSnapshots(world.table, "a"), PinnedSnapshots(world.table, "a")
    gone.record("dead", 7, 1)
    living.record("alive", 3, 1)
    world.table.record_consumer("somebody-else", 1)
    for path in (Path(world.table.location) / "consumer").iterdir():
        os.utime(path, (1, 1))
    assert living.renew(3600) == ["lockgate-dead-a-7"]
    assert sorted(world.table.consumers()) == ["lockgate-alive-a-3", "somebody-else"]
    assert min(world.table.consumer_times().values()) == 1000
    assert world.table.consumer_times()["lockgate-alive-a-3"] > 1_000_000
    assert living.renew(3600) == []


def test_the_snapshot_of_a_batch_is_an_event(world: World) -> None:
    seen: list[Event] = []
    observer = hookimpl(lambda event: seen.append(event))
    plugins().register(types.SimpleNamespace(lockgate_event=observer), "observer")
    try:
        PinnedSnapshots(world.table, "a").record("query", 7, 1)
        assert plugins().events.flush()
    finally:
        plugins().unregister("observer")
    (found,) = (event for event in seen if isinstance(event, StreamProgressed))
    assert (found.query, found.batch, found.use, found.snapshot_id) == ("query", 7, "lookup", 1)
    assert found.table == world.table.location


def test_pins_of_queries_that_ended_are_not_renewed(world: World) -> None:
    pins = shared_pinned_snapshots(world.table, "a")
    pins.record("ended", 7, 1)
    pins.record("running", 3, 1)
    forget_ended(lambda query: query == "running")
    assert pins.queries() == ["running"]
    for path in (Path(world.table.location) / "consumer").iterdir():
        os.utime(path, (1, 1))
    assert pins.get("ended", 7) == 1, "until then it may start again"
    forget_ended(lambda query: query == "running")
    assert pins.renew(3600) == ["lockgate-ended-a-7"]
    assert sorted(world.table.consumers()) == ["lockgate-running-a-3"]


def test_lookups_of_one_cache_give_one_snapshot_to_a_batch(world: World) -> None:
    slow = world.lookup(**{"lookup.refresh.interval": "1 h"})
    assert slow.pin("query", 0) == 1
    quick = world.lookup()
    assert (quick.pin("query", 0), quick.pin("query", 1)) == (1, 1)
    world.add()
    quick.wait_for(2, timeout=20)
    # The one that has not seen snapshot 2 is asked first, then the one that has, then the other way round.
    assert (slow.pin("query", 2), quick.pin("query", 2)) == (1, 1)
    assert (quick.pin("query", 3), slow.pin("query", 3)) == (2, 2)


def test_closed_lookups_are_forgotten(world: World) -> None:
    spec = make_spec(world.table, "id", options=world.options({}))
    lookup_registry.close_all()
    try:
        first = lookup_registry.lookup_for(world.catalog, world.table, spec)
        first.close()
        assert lookup_registry.statuses() == []
        other = make_spec(world.table, "id", options=world.options({"lookup.timeout": "1 min"}))
        second = lookup_registry.lookup_for(world.catalog, world.table, other)
        assert list(lookup_registry._lookups.values()) == [second]
    finally:
        lookup_registry.close_all()


def test_a_cache_whose_snapshot_has_expired_is_loaded_again(world: World) -> None:
    options = world.options({})
    open_lookup(world.table, "id", options=options).close()
    for _ in range(2):
        world.add()
    (Path(world.table.location) / "snapshot" / "snapshot-1").unlink()
    with open_lookup(world.table, "id", options=options) as lookup:
        generation = lookup.status().generation
        assert generation is not None
        assert (generation.snapshot_id, generation.full_load) == (3, True)
