"""The refreshing of one lookup: looks for the newest snapshot, and has hosts build it as the target."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lockgate.errors import LockgateError, LookupCacheError
from lockgate.lookup.cache.builder import fingerprint
from lockgate.lookup.driver.served_version import ServedState
from lockgate.lookup.spec.lookup_options import LookupOptions
from lockgate.lookup.spec.periods import covers

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot, Table
    from lockgate.lookup.driver.hosts import Host, Hosts


class Refresher:
    """The target of a lookup and what was asked of its hosts; `changed` guards these and `serving`."""

    def __init__(
        self,
        table: Table,
        options: LookupOptions,
        hosts: Hosts,
        changed: threading.Condition,
        *,
        local: bool,
    ) -> None:
        self.serving = ServedState()
        self.target: Snapshot | None = None
        self._table = table
        self._options = options
        self._hosts = hosts
        self._changed = changed
        self._local = local
        self._looking = threading.Lock()
        self._look_error: LockgateError | None = None
        self._look_failures = 0
        self._look_at = 0.0

    # --- looking -------------------------------------------------------------------------------------

    def look_if_due(self) -> None:
        """Look for a new snapshot if `lookup.refresh.interval` has passed, or none was seen yet."""
        started = time.monotonic()
        if started >= self._look_at or self.target is None:
            self._look_at = started + self._options.refresh_interval
            self.look()

    def look(self) -> Snapshot | None:
        """Return the newest snapshot, which is the target from now on; None if the table has none."""
        # One look at a time: the result of an earlier look must not replace that of a later one.
        with self._looking:
            started = time.monotonic()
            newest = self._table.newest_change()
            with self._changed:
                before, self.target = self.target, newest
                self._look_error, self._look_failures = None, 0
                if newest is None:
                    self.serving.fresh_at = started
                else:
                    new = before is None or fingerprint(before) != fingerprint(newest)
                    self.serving.notice(newest, new=new, seen_at=started)
        return newest

    def note_failure(self, error: Exception) -> None:
        """Note that the table could not be looked at."""
        with self._changed:
            self._look_error = LookupCacheError(f"looking for a new snapshot failed: {error}")
            self._look_failures += 1

    def due_at(self) -> float:
        """Return the moment of the next look, or of the next try of a build that failed."""
        with self._changed:
            retries = [
                host.retry_at for host in self._hosts.all() if host.error is not None and not host.asked
            ]
        return min([self._look_at, *retries])

    def paused(self) -> bool:
        """Say whether `lookup.refresh.time-periods-blacklist` covers this moment."""
        return covers(self._options.blacklist, datetime.now())

    def trouble(self) -> tuple[str | None, int]:
        """Return what is wrong now, for people, and how often in a row."""
        found = self._hosts.troubles()
        if not found:
            return (None if self._look_error is None else str(self._look_error)), self._look_failures
        where, error, failures = max(found, key=lambda trouble: trouble[2])
        return (str(error) if self._local else f"{where}: {error}"), failures

    # --- asking hosts --------------------------------------------------------------------------------

    def ask_all(self, snapshot: Snapshot, *, serve: bool) -> None:
        """Have a snapshot built on all hosts, with `serve` to be the one that batches get."""
        if serve:
            self.serving.aim(snapshot, again=True)
        for host in self._hosts.all():
            self._hosts.ask(host, snapshot.id, serve=serve)

    def welcome(self, host: Host, awaited: Sequence[int]) -> None:
        """Ask a host whose owner has begun for what batches wait for, and for what is served."""
        # The state that batches get now comes first: tasks on that host need it.
        for snapshot_id in awaited:
            if not host.has(snapshot_id) and snapshot_id not in host.asked:
                self._hosts.ask(host, snapshot_id, serve=self.serving.aims_at(snapshot_id))
        served = self.serving.info
        if served is not None and not host.has(served.snapshot_id) and served.snapshot_id not in host.asked:
            self._hosts.ask(host, served.snapshot_id, serve=True)

    def ask_for_target(self) -> None:
        """Have the target built where it is not, and serve what all hosts have."""
        with self._changed:
            target = self.target
            if target is None:
                return
            self._forgive(target)
            if self.serving.info is not None and self.paused():
                return
            if self._ask_for(target) or self._hosts.have(target.id, fingerprint(target)):
                self.serving.aim(target, again=False)
            self.serving.advance(self._hosts)

    def _forgive(self, target: Snapshot) -> None:
        # A snapshot that the table is at again, such as after a rollback, fails no more.
        for host in self._hosts.all():
            if host.has(target.id, fingerprint(target)) and not host.asked:
                host.error, host.failures = None, 0

    def _ask_for(self, target: Snapshot) -> bool:
        # One snapshot at a time, the same for all hosts that decide. The next one covers the changes until
        # then.
        deciding = self._hosts.deciding()
        busy = any(any(host.asked.values()) for host in deciding)
        asked = False
        for host in self._hosts.all():
            waits = busy if host in deciding else any(host.asked.values())
            has = host.has(target.id, fingerprint(target))
            if not (waits or has) and time.monotonic() >= host.retry_at:
                self._hosts.ask(host, target.id, serve=True)
                asked = True
        return asked
