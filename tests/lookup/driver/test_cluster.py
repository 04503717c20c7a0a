"""Owners kept by executors, which are played here by threads: elections, deaths, hosts that come and go."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from fake_executors import KEY, World, rows, until

from lockgate.errors import LookupCacheError
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.cache.caches import find_caches, remove_cache
from lockgate.lookup.driver.cluster import DriverCacheHost
from lockgate.lookup.driver.service import Lookup


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for lookup in made.lookups:
        lookup.close()
    made.executors.close()


def pids(lookup: Lookup) -> list[int | None]:
    return [host.owner_pid for host in lookup.status().hosts]


def test_executors_of_a_host_share_a_cache_and_take_over(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1")
    world.executors.add("2")
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    assert world.ask(lookup, 1) == {1}
    until(lambda: [host.executors for host in lookup.status().hosts] == [("1", "2")])
    (owner,) = pids(lookup)
    assert owner is not None
    os.kill(owner, signal.SIGKILL)
    until(lambda: pids(lookup)[0] not in (None, owner))
    table.append(rows(2))
    assert lookup.wait_for(2, timeout=60) == 2
    (second,) = pids(lookup)
    leader = next(
        number
        for number, member in world.executors.members.items()
        if second in [process.pid for process in member.processes.values()]
    )
    world.executors.remove(leader)
    table.append(rows(3))
    assert lookup.wait_for(3, timeout=60) == 3
    status = lookup.status()
    assert [len(host.executors) for host in status.hosts] == [1]
    assert status.owner_restarts >= 2
    assert world.ask(lookup, lookup.pin("query", 1)) == {3}
    assert (status.last_error, status.failures) == (None, 0)


def test_a_batch_is_given_what_every_host_has(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1))
    roots = [tmp_path / "one", tmp_path / "two"]
    for number, root in enumerate(roots):
        world.executors.add(str(number), root)
    lookup = world.lookup()
    lookup.pin("query", 0)
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [1, 1])
    slow = lookup.status().hosts[1]
    assert slow.owner_pid is not None
    os.kill(slow.owner_pid, signal.SIGSTOP)
    table.append(rows(2))
    until(lambda: lookup.status().hosts[0].served_snapshot == 2)
    assert lookup.pin("query", 1) == 1
    assert lookup.status().served_snapshot == 1
    os.kill(slow.owner_pid, signal.SIGCONT)
    assert lookup.wait_for(2, timeout=60) == 2
    assert lookup.pin("query", 2) == 2
    for root in roots:
        assert world.ask(lookup, 1, root) == {1}
        assert world.ask(lookup, 2, root) == {2}


@pytest.mark.long
def test_a_host_that_is_lost_holds_nothing_up(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1", tmp_path / "one")
    world.executors.add("2", tmp_path / "two")
    lookup = world.lookup()
    lookup.pin("query", 0)
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [1, 1])
    # One is silent, as when its machine is: nobody says that it has gone.
    world.executors.silent["2"] = 60_000
    until(lambda: len(lookup.status().hosts) == 1)
    table.append(rows(2))
    assert lookup.wait_for(2, timeout=60) == 2
    # It comes back, and is brought to where the others are.
    world.executors.silent.clear()
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [2, 2])


@pytest.mark.long
def test_an_executor_that_comes_later_waits_for_what_batches_use(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1", tmp_path / "one")
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    for n in range(2, 6):
        table.append(rows(n))
        lookup.wait_for(n, timeout=60)
    world.executors.add("2", tmp_path / "two")
    assert lookup.pin("query", 1) == 5
    # Its task asks for the snapshot of its batch, also for one that nobody else needs any more.
    assert world.ask(lookup, 5, tmp_path / "two") == {5}
    assert world.ask(lookup, 3, tmp_path / "two") == {3}
    until(lambda: [host.served_snapshot for host in lookup.status().hosts] == [5, 5])


def test_without_executors_a_batch_is_planned_and_its_tasks_wait(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    lookup = world.lookup()
    assert lookup.pin("query", 0) == 1
    assert lookup.status().hosts == ()
    with pytest.raises(LookupCacheError, match=r"no owner builds .* so snapshot 1 never comes"):
        world.ask(lookup, 1, wait=0.2)
    world.executors.add("1")
    assert world.ask(lookup, 1) == {1}
    assert world.executors.hurried == [True]


def test_a_python_without_lockgate_is_told(world: World) -> None:
    world.create().append(rows(1))
    world.executors.add("1")
    lookup = world.lookup(python="/bin/false")
    with pytest.raises(LookupCacheError, match=r"ended 3 times before it was ready \(exit code 1\)"):
        lookup.pin("query", 0)
    assert str(lookup.status().last_error).startswith("1: the owner of the lookup cache of db.dim ended")


def test_the_error_of_a_host_reaches_the_batch_and_the_task(world: World, tmp_path: Path) -> None:
    table = world.create()
    table.append(rows(1, 5000))
    world.executors.add("1")
    lookup = world.lookup(**{"lookup.cache-max-disk-size": "1 kb"})
    with pytest.raises(LookupCacheError, match=r"lookup\.cache-max-disk-size"):
        lookup.pin("query", 0)
    with pytest.raises(LookupCacheError, match=r"lookup\.cache-max-disk-size"):
        world.ask(lookup, 1)
    (host,) = lookup.status().hosts
    assert host.failures >= 1
    assert "lookup.cache-max-disk-size" in str(host.last_error)


def test_keys_come_from_the_driver_and_lie_nowhere(world: World) -> None:
    world.catalog = Catalog(str(world.folder / "warehouse"), keys=KEY)
    table = world.create(**{"orc.encrypt": "pii:n", "orc.mask": "nullify:n"})
    table.append(rows(1))
    world.executors.add("1")
    lookup = world.lookup()
    assert world.ask(lookup, lookup.pin("query", 0)) == {1}
    (pid,) = pids(lookup)
    for secret in ("0123456789abcdef", "MDEyMzQ1Njc4OWFiY2RlZg=="):
        assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
        assert not [command for command in world.executors.everything if secret in command]


@pytest.mark.long
def test_a_folder_that_is_removed_is_built_again(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    for number in ("1", "2"):
        world.executors.add(number)
    lookup = world.lookup()
    lookup.pin("query", 0)
    (cache,) = find_caches(lookup.directory.path)
    remove_cache(cache)
    table.append(rows(2))
    until(lambda: lookup.status().served_snapshot == 2)
    assert world.ask(lookup, 2) == {2}
    until(lambda: [host.executors for host in lookup.status().hosts] == [("1", "2")])


@pytest.mark.long
def test_the_next_application_uses_the_cache(world: World) -> None:
    world.create().append(rows(1))
    world.executors.add("1")
    first = world.lookup()
    first.pin("query", 0)
    built = first.status().built_millis
    first.close()
    second = world.lookup()
    assert second.pin("query", 0) == 1
    assert second.status().built_millis == built


@pytest.mark.long
def test_two_applications_share_a_host(world: World) -> None:
    table = world.create()
    table.append(rows(1))
    world.executors.add("1")
    lookups = [world.lookup(), world.lookup()]
    for lookup in lookups:
        assert lookup.pin("query", 0) == 1
    table.append(rows(2))
    for lookup in lookups:
        assert lookup.wait_for(2, timeout=60) == 2
    lookups[0].close()
    table.append(rows(3))
    assert lookups[1].wait_for(3, timeout=60) == 3


def test_an_application_ends_when_its_context_is_stopped() -> None:
    context = Mock()
    jvm_context = context._jsc.sc.return_value
    jvm_context.isStopped.return_value = False
    cache_host = DriverCacheHost(context)
    assert not cache_host.ended()
    jvm_context.isStopped.return_value = True
    assert cache_host.ended()
    jvm_context.isStopped.side_effect = ConnectionRefusedError
    assert cache_host.ended()
    context._jsc = None
    assert cache_host.ended()
