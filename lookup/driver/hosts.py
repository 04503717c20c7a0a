"""The states that the owners of one lookup have built, per host and on all hosts.

A *host* is a folder of caches and the processes that see it: the driver's own, or one that executors share. A
*link* is the way to one process, named by its executor. Nothing here has a lock of its own: `service.Lookup`
calls it under its condition.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lockgate.errors import LockgateError, LookupCacheError
from lockgate.lookup.cache.version_info import CacheVersionInfo
from lockgate.lookup.server.server_messages import (
    CacheCommand,
    CacheEvent,
    EndedEvent,
    Event,
    LeadingEvent,
    WaitingEvent,
)
from lockgate.lookup.spec.failures import error_from_json
from lockgate.lookup.spec.status import HostStatus

_FIRST_BACK_OFF_SECONDS = 0.5
_LONGEST_BACK_OFF_SECONDS = 30.0
# An owner that ends this often before it is ready will never be ready.
_EARLY_ENDS = 3
# A killed one has more chances, but the kernel may go on killing when memory is short.
_EARLY_KILLS = 10
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # in Python's words, and in the JVM's
_KNOWN_STATES = 32


@dataclass
class Host:
    """One host: the owner of its cache, and the states it has built, was asked for, and failed to build.

    `ready` means that it has served a state: from then on batches get a state only if this host has it too.
    """

    name: str
    directory: str
    links: set[str] = field(default_factory=set)
    leader: str | None = None
    pid: int | None = None
    restarts: int = -1
    ready: bool = False
    served: CacheVersionInfo | None = None
    loading: int | None = None
    expected: int | None = None
    built: dict[int, CacheVersionInfo] = field(default_factory=dict)
    asked: dict[int, bool] = field(default_factory=dict)
    failed: dict[int | None, LockgateError] = field(default_factory=dict)
    error: LockgateError | None = None
    failures: int = 0
    early_ends: int = 0
    retry_at: float = 0.0

    def has(self, snapshot_id: int, fingerprint: str | None = None, *, mark: int | None = None) -> bool:
        """Say whether the state at a snapshot is built here; of one with this fingerprint or mark, if
        given.
        """
        info = self.built.get(snapshot_id)
        return info is not None and fingerprint in (None, info.fingerprint) and mark in (None, info.mark)

    def failure(self, snapshot_id: int) -> LockgateError | None:
        """Return why a state could not be built."""
        return self.failed.get(snapshot_id) or self.failed.get(None)

    def forget(self, snapshot_id: int) -> None:
        """Forget a state: it must be built, or proven, again."""
        self.built.pop(snapshot_id, None)
        self.failed.pop(snapshot_id, None)
        self.failed.pop(None, None)

    def on_built(self, info: CacheVersionInfo) -> None:
        """Note that the owner has a state."""
        serve = self.asked.pop(info.snapshot_id, False)
        self.built[info.snapshot_id] = info
        for old in sorted(self.built)[:-_KNOWN_STATES]:
            del self.built[old]
        if serve:
            self.served = info
            self.ready = True
        self.error, self.failures, self.loading = None, 0, None

    def on_failed(self, snapshot_id: int | None, error: LockgateError) -> None:
        """Note that the owner could not build a state, or open the table (None): tried again after a
        while.
        """
        self.asked.pop(snapshot_id or 0, None)
        if snapshot_id is None:
            self.asked.clear()
        self.failed[snapshot_id] = self.error = error
        self.failures += 1
        self.loading = None
        pause = min(_FIRST_BACK_OFF_SECONDS * 2 ** (self.failures - 1), _LONGEST_BACK_OFF_SECONDS)
        self.retry_at = time.monotonic() + pause

    def on_emptied(self) -> None:
        """Note that the folder was removed, and with it the states built there."""
        self.built.clear()
        self.served, self.ready = None, False

    def status(self) -> HostStatus:
        """Return the status of the host."""
        served = self.served
        return HostStatus(
            host=self.name,
            directory=self.directory,
            executors=tuple(sorted(self.links)),
            served_snapshot=None if served is None else served.snapshot_id,
            rows=0 if served is None else served.rows,
            bytes=0 if served is None else served.bytes,
            build_seconds=0.0 if served is None else served.build_seconds,
            loading_rows=self.loading,
            expected_rows=None if self.loading is None else self.expected,
            last_error=None if self.error is None else str(self.error),
            failures=self.failures,
            owner_pid=self.pid,
            owner_restarts=max(0, self.restarts),
        )


class Hosts:
    """The hosts of one lookup; `send` sends a message to the process at the end of a link."""

    def __init__(self, identifier: str, send: Callable[[str, CacheCommand], bool]) -> None:
        self._identifier = identifier
        self._send = send
        self._hosts: dict[str, Host] = {}
        self._folder_of: dict[str, str] = {}
        self._early_ends: dict[str, int] = {}
        self._broken: dict[str, LockgateError] = {}

    # --- what is known -------------------------------------------------------------------------------

    def all(self) -> list[Host]:
        """Return every host that has a process, in the order in which they came."""
        return list(self._hosts.values())

    def deciding(self) -> list[Host]:
        """Return the hosts that must have a state before a batch is given it: those that serve one.

        While none does, all of them. A host that comes later does not hold up batches: its tasks wait for it.
        """
        hosts = self.all()
        return [host for host in hosts if host.ready] or hosts

    def have(self, snapshot_id: int, fingerprint: str | None = None, *, mark: int | None = None) -> bool:
        """Say whether a state is built on every host that decides; False while there is no host."""
        deciding = self.deciding()
        return bool(deciding) and all(host.has(snapshot_id, fingerprint, mark=mark) for host in deciding)

    def failure(self, snapshot_id: int) -> LockgateError | None:
        """Return why a state cannot be given to batches now, if so."""
        for host in self.deciding():
            error = host.failure(snapshot_id)
            if error is not None:
                return error
        if not self._hosts and self._broken:
            return next(iter(self._broken.values()))
        return None

    def loaded(self) -> tuple[int | None, int | None]:
        """Return rows done and expected of the slowest load; None while nothing is loaded."""
        loads = [(host.loading, host.expected) for host in self._hosts.values() if host.loading is not None]
        return min(loads, key=lambda load: load[0] or 0, default=(None, None))

    def troubles(self) -> list[tuple[str, LockgateError, int]]:
        """Return the errors of the latest refreshes, how often in a row, and where."""
        found = [(host.name, host.error, host.failures) for host in self.all() if host.error is not None]
        return found + [(link, error, 1) for link, error in self._broken.items()]

    def forget(self, snapshot_id: int) -> None:
        """Forget a state on all hosts."""
        for host in self.all():
            host.forget(snapshot_id)

    # --- asking --------------------------------------------------------------------------------------

    def ask(self, host: Host, snapshot_id: int, *, serve: bool) -> None:
        """Have a state built on a host, by the current or next owner of its cache."""
        serve = host.asked[snapshot_id] = host.asked.get(snapshot_id, False) or serve
        if host.leader is not None:
            self._send(host.leader, {"op": "build", "snapshot": snapshot_id, "serve": serve})

    def send_to_all(self, message: CacheCommand) -> None:
        """Send a message to every owner."""
        for host in self.all():
            if host.leader is not None:
                self._send(host.leader, message)

    # --- hearing -------------------------------------------------------------------------------------

    def receive(self, link: str, event: CacheEvent) -> Host | None:
        """Process a message from a process, or its end, and return its host."""
        if event["event"] == "waiting" or event["event"] == "leading":  # mypy narrows by no tuple
            return self._join(link, event)
        if event["event"] == "gone":
            return self._leave(link)
        host = self._hosts.get(self._folder_of.get(link, ""))
        if event["event"] == "ended":
            self._on_ended(link, host, event)
        elif host is not None and host.leader == link:
            self._on_news(host, event)
        return host

    def _join(self, link: str, event: WaitingEvent | LeadingEvent) -> Host:
        folder = event["folder"]
        if self._folder_of.get(link) not in (None, folder):
            self._leave(link)
        host = self._hosts.get(folder)
        if host is None:
            host = self._hosts[folder] = Host(event["host"], event["directory"])
        self._folder_of[link] = folder
        self._broken.pop(link, None)
        host.links.add(link)
        if event["event"] == "leading":
            host.leader, host.pid = link, event["pid"]
            host.restarts += 1
            for snapshot_id, serve in list(host.asked.items()):
                self.ask(host, snapshot_id, serve=serve)
        return host

    def _leave(self, link: str) -> Host | None:
        self._broken.pop(link, None)
        self._early_ends.pop(link, None)
        folder = self._folder_of.pop(link, "")
        host = self._hosts.get(folder)
        if host is not None:
            host.links.discard(link)
            if host.leader == link:
                host.leader = host.pid = None
            if not host.links:
                del self._hosts[folder]
        return host

    def _on_ended(self, link: str, host: Host | None, event: EndedEvent) -> None:
        ends = self._early_ends[link] = self._early_ends.get(link, 0) + 1
        if host is not None and host.leader == link:
            host.leader = host.pid = None
        if ends < (_EARLY_KILLS if event["code"] in _KILLED else _EARLY_ENDS):
            return
        where = f"see {host.directory}/owner.log" if host is not None else "see the executor's log"
        error = LookupCacheError(
            f"the owner of the lookup cache of {self._identifier} ended {ends} times before it was ready "
            f"(exit code {event['code']}){_last_words(event)}; {where}"
        )
        if host is None:
            self._broken[link] = error
        elif host.leader is None:
            host.on_failed(None, error)

    def _on_news(self, host: Host, event: Event) -> None:
        if event["event"] == "ready":
            assert host.leader is not None
            self._early_ends.pop(host.leader, None)
            self._broken.pop(host.leader, None)
        elif event["event"] == "built":
            host.on_built(CacheVersionInfo(**event["info"]))
        elif event["event"] == "failed":
            host.on_failed(event["snapshot"], error_from_json(event["error"]))
        elif event["event"] == "removed":
            for snapshot_id in event["snapshots"]:
                host.built.pop(snapshot_id, None)
        elif event["event"] == "emptied":
            host.on_emptied()
        elif event["event"] == "progress":
            host.loading, host.expected = event["rows"], event["expected"]


def _last_words(event: EndedEvent) -> str:
    words = event["stderr"]
    return f": {words}" if words else ""
