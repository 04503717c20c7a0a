"""What owners have built, host by host: back-off, elections, hosts that fail; without processes."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import pytest

from lockgate.errors import CorruptFileError, LookupCacheError
from lockgate.lookup.cache.version_info import CacheVersionInfo
from lockgate.lookup.driver.hosts import Hosts
from lockgate.lookup.spec.failures import error_to_json


class World:
    """Hosts, and what they were told."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.hosts = Hosts("db.dim", self.send)

    def send(self, link: str, message: dict[str, Any]) -> bool:
        self.sent.append((link, message))
        return True

    def hear(self, link: str, event: str, **content: Any) -> None:
        self.hosts.receive(link, {"event": event, **content})

    def join(self, link: str, folder: str, *, lead: bool = False) -> None:
        place = {"folder": folder, "host": f"host-{folder}", "directory": f"/caches/{folder}"}
        self.hear(link, "leading" if lead else "waiting", pid=ord(link), **place)

    def built(self, link: str, snapshot_id: int) -> None:
        info = CacheVersionInfo(snapshot_id, f"mark-{snapshot_id}", 10, 1000, 10, False, 0.1, 1)
        self.hear(link, "built", snapshot=snapshot_id, info=asdict(info))

    def failed(self, link: str, snapshot_id: int | None) -> None:
        error = error_to_json(CorruptFileError(f"broken at {snapshot_id}"))
        self.hear(link, "failed", snapshot=snapshot_id, error=error)


@pytest.fixture
def world() -> World:
    return World()


def test_failures_are_retried_with_longer_and_longer_pauses(world: World) -> None:
    world.join("a", "one", lead=True)
    (host,) = world.hosts.all()
    world.hosts.ask(host, 1, serve=True)
    world.built("a", 1)
    pauses = []
    for _ in range(9):
        world.failed("a", 2)
        pauses.append(host.retry_at - time.monotonic())
    assert [round(pause, 1) for pause in pauses] == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 30, 30], abs=0.2)
    # What is served, and what was built, is as before.
    assert (host.served and host.served.snapshot_id, host.failures) == (1, 9)
    assert world.hosts.have(1)
    assert not world.hosts.have(2)
    assert isinstance(world.hosts.failure(2), CorruptFileError)
    assert [(where, failures) for where, _, failures in world.hosts.troubles()] == [("host-one", 9)]
    world.built("a", 2)
    assert (host.error, host.failures) == (None, 0)
    assert world.hosts.troubles() == []
    world.failed("a", 3)
    assert host.retry_at - time.monotonic() < 1


def test_what_was_asked_for_is_asked_of_the_next_owner(world: World) -> None:
    world.join("a", "one", lead=True)
    world.join("b", "one")
    (host,) = world.hosts.all()
    world.hosts.ask(host, 1, serve=True)
    world.hosts.ask(host, 2, serve=False)
    world.built("a", 1)
    world.hear("a", "ended", code=-9, stderr=None)
    assert (host.leader, host.pid) == (None, None)
    world.hosts.ask(host, 3, serve=True)
    world.sent.clear()
    world.join("b", "one", lead=True)
    assert world.sent == [
        ("b", {"op": "build", "snapshot": 2, "serve": False}),
        ("b", {"op": "build", "snapshot": 3, "serve": True}),
    ]
    assert (host.pid, host.status().owner_restarts) == (ord("b"), 1)


def test_only_owners_are_heard(world: World) -> None:
    world.join("a", "one", lead=True)
    world.join("b", "one")
    world.built("b", 1)
    world.failed("b", 2)
    (host,) = world.hosts.all()
    assert (host.built, host.failures) == ({}, 0)


def test_a_state_counts_when_every_host_that_serves_has_it(world: World) -> None:
    assert not world.hosts.have(1)
    world.join("a", "one", lead=True)
    world.join("b", "two", lead=True)
    for host in world.hosts.all():
        world.hosts.ask(host, 1, serve=True)
    world.built("a", 1)
    assert world.hosts.have(1), "the other has served nothing yet, and is not waited for"
    world.built("b", 1)
    for host in world.hosts.all():
        world.hosts.ask(host, 2, serve=True)
    world.built("a", 2)
    assert not world.hosts.have(2)
    assert world.hosts.have(1, "mark-1")
    assert not world.hosts.have(1, "another snapshot of this number")
    # One that has gone is waited for no more; one that loses its folder must build again.
    world.hear("b", "gone")
    assert world.hosts.have(2)
    world.hear("a", "emptied")
    assert not world.hosts.have(2)
    world.hear("a", "gone")
    assert world.hosts.all() == []


def test_an_executor_whose_folder_was_removed_changes_hosts(world: World) -> None:
    world.join("a", "one", lead=True)
    world.join("b", "one")
    world.join("a", "new", lead=True)
    assert {host.directory: host.links for host in world.hosts.all()} == {
        "/caches/one": {"b"},
        "/caches/new": {"a"},
    }
    world.join("b", "new")
    assert [host.links for host in world.hosts.all()] == [{"a", "b"}]


def test_owners_that_never_get_ready_are_an_error(world: World) -> None:
    for _ in range(3):
        world.hear("a", "ended", code=1, stderr="No module named lockgate")
    error = world.hosts.failure(1)
    assert isinstance(error, LookupCacheError)
    assert "ended 3 times before it was ready (exit code 1): No module named lockgate" in str(error)
    # As soon as one gets ready, all is well; ends after that are counted from 0.
    world.join("a", "one", lead=True)
    world.hear("a", "ready", pid=1, writer=True)
    assert world.hosts.failure(1) is None
    for _ in range(2):
        world.hear("a", "ended", code=1, stderr=None)
    assert world.hosts.failure(1) is None
    world.hear("a", "ended", code=1, stderr=None)
    assert "see /caches/one/owner.log" in str(world.hosts.failure(1))


@pytest.mark.parametrize("code", [-9, 137])
def test_owners_that_are_killed_have_more_chances(world: World, code: int) -> None:
    world.join("a", "one", lead=True)
    for _ in range(9):
        world.hear("a", "ended", code=code, stderr=None)
        assert world.hosts.failure(1) is None
    world.hear("a", "ended", code=code, stderr=None)
    assert f"ended 10 times before it was ready (exit code {code})" in str(world.hosts.failure(1))
