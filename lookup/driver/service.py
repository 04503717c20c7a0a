"""The driver's side of lookups: one `Lookup` per cache, which finds new snapshots and has them built.

A timer publishes the newest snapshot as the target, an owner process builds it, and batches use the built
states. Nothing here waits for a batch: a lookup refreshes whether or not rows arrive.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lockgate.errors import (
    LookupCacheError,
    LookupTimeoutError,
    MaskedDataWarning,
    SnapshotNotFoundError,
)
from lockgate.framework.store import Snapshot
from lockgate.lookup.cache.backends import Storage
from lockgate.lookup.cache.builder import check_mark, fingerprint, is_rolled_back
from lockgate.lookup.cache.caches import note_status, report_of
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.cache.version_info import CacheVersionInfo, mark_of
from lockgate.lookup.driver.bar import LoadBar
from lockgate.lookup.driver.cache_hosts import CacheHost, CacheServers, LocalCacheHost
from lockgate.lookup.driver.hosts import Hosts
from lockgate.lookup.driver.lookup_tables import location_of
from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots, gone, shared_pinned_snapshots
from lockgate.lookup.driver.refresher import Refresher
from lockgate.lookup.driver.status_report import status_of
from lockgate.lookup.server.server_messages import CacheCommand, CacheEvent, HoldCommand, OpenCache
from lockgate.lookup.server.version_wait import is_ready
from lockgate.lookup.spec.cache_paths import local_path
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_spec import LookupSpec, cache_id, cached_layout, pin_id
from lockgate.lookup.spec.status import LookupStatus

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog, Table

_log = logging.getLogger("lockgate.lookup")

_HEARTBEAT_SECONDS = 5.0
# Pins are renewed this often within the time after which they count as abandoned.
_PIN_RENEWALS = 4
# A lookup that only batch queries use ends so long after the last of them, or its owner rests.
_BATCH_SECONDS = 30.0
# How often a lookup whose owner rests looks whether a task calls for it.
_CALL_SECONDS = 0.25
# The state before the first snapshot: a table without rows.
EMPTY = 0


class Lookup:
    """One running lookup: its target, its built states, and the batches that use them."""

    def __init__(
        self, catalog: Catalog, table: Table, spec: LookupSpec, cache_host: CacheHost | None = None
    ) -> None:
        self.table = table
        self.spec = spec
        self.id = cache_id(table, spec)
        self.location = location_of(table, spec)
        # For caches on other hosts only the name is known.
        self.directory = CacheDirectory(local_path(self.location))
        self._cache_host = cache_host or LocalCacheHost()
        self._options = lookup_options(table.options, spec.options)
        self._is_sealed = bool(cached_layout(table, spec).keys)
        self._name = uuid.uuid4().hex
        self._pinned_snapshots = shared_pinned_snapshots(table, pin_id(table, spec))
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._hosts = Hosts(spec.identifier, self._send)
        self._refresher = Refresher(
            table, self._options, self._hosts, self._changed, local=self._cache_host.local
        )
        self._serving = self._refresher.serving
        self._awaited: list[int] = []
        self._batch_pins: dict[int, float] = {}
        self._held: set[int] | None = None
        self._holding = threading.Lock()
        self._heartbeat_at = 0.0
        self._used_at = time.monotonic()
        self._resting = self._has_rested = False
        self._rest_seconds = 0.0
        self._rest_lock = threading.Lock()
        self._of_streams = False
        self._batches: list[Callable[[], bool]] = []
        self._pins_at = 0.0
        self._asked_rows = self._hit_rows = 0
        opening: OpenCache = {
            "op": "open",
            "has_keys": table.keys is not None,
            "name": self._name,
            "location": self.location,
            "directory": None,
            "warehouse": catalog.file_system.uri(catalog.warehouse),
            "options": dict(catalog.options or {}),
            "spec": spec.to_json(),
            "table_id": table.table_id,
            "schema_id": table.schema.id,
        }
        self._cache_servers: CacheServers | None = None
        self._cache_servers = self._cache_host.start(
            opening, table.keys, self.directory, self._on_cache_event
        )
        self._thread = threading.Thread(target=self._tick_until_closed, name="lockgate-lookup", daemon=True)
        self._thread.start()

    # --- what batches ask ----------------------------------------------------------------------------

    def pin(self, query_id: str | None, batch_id: int | None) -> int:
        """Return the snapshot that `choose` chooses."""
        return self.choose(query_id, batch_id)[0]

    def choose(self, query_id: str | None, batch_id: int | None) -> tuple[int, int]:
        """Choose the snapshot that a batch uses, built and protected, and its mark (`mark_of`).

        Both are 0 for a table without snapshots; by the mark tasks tell it from others of its number.
        The same batch of the same query gets the same snapshot again, also from the next driver. Without a
        query, as in batch jobs, it is kept for `lookup.cache-file-retention`. Raises LookupTimeoutError if
        it is not built in `lookup.timeout`, and the error of the build if nothing was ever built.
        """
        self._used_at = time.monotonic()
        self._wake()
        if query_id is None or batch_id is None:
            chosen = self._choose()
            return chosen[0], self.provide(*chosen)
        snapshot_id, mark = (
            self._pinned_snapshots.get(query_id, batch_id),
            self._pinned_snapshots.mark(query_id, batch_id),
        )
        if snapshot_id is None:
            snapshot_id, mark = self._choose()
            self._pinned_snapshots.record(query_id, batch_id, snapshot_id, mark)
        try:
            return snapshot_id, self._keep(snapshot_id, mark)
        except SnapshotNotFoundError as error:
            consumer = self._pinned_snapshots.name_of(query_id, batch_id)
            self._pinned_snapshots.forget(query_id)  # read again, once somebody has followed the advice
            what = (
                f"batch {batch_id} of query {query_id}",
                f"snapshot {snapshot_id} of {self.spec.identifier}",
            )
            raise gone(*what, consumer, error) from error

    def provide(self, snapshot_id: int, mark: int | None) -> int:
        """Have a snapshot built that was chosen elsewhere, and keep it for `lookup.cache-file-retention`.

        Returns its mark, which is looked up if it is None; SnapshotNotFoundError if it is another by now.
        """
        self.touch()
        self._wake()
        with self._changed:
            self._batch_pins[snapshot_id] = time.monotonic()
        return self._keep(snapshot_id, mark)

    @property
    def closed(self) -> bool:
        """Say whether it has ended."""
        return self._closed.is_set()

    def touch(self) -> bool:
        """Record a use of the lookup; False if it has ended, as an unused lookup does."""
        self._used_at = time.monotonic()
        return not self._closed.is_set() and not self._cache_host.ended()

    def note_use(self, runs: Callable[[], bool] | None) -> None:
        """Note a batch query, which `runs` or has ended; None: a stream, or somebody who calls `close`."""
        with self._changed:
            if runs is None:
                self._of_streams = True
            else:
                self._batches.append(runs)

    def note_answers(self, rows: int, hits: int) -> None:
        """Count rows that tasks looked up, and how many of them found a match."""
        with self._changed:
            self._used_at = time.monotonic()
            self._asked_rows += rows
            self._hit_rows += hits

    def _choose(self) -> tuple[int, int]:
        served = self._serving.info
        if served is None or self._has_rested or is_rolled_back(self.table, served):
            newest = self._wait_for_newest()
            self._has_rested = False
            return newest
        if self._refresher.paused():
            chosen = served
        elif self._options.refresh_async and not self._is_far_behind(served):
            with self._changed:
                chosen = self._serving.info or served
        else:
            return self._wait_for_newest()
        self._check_staleness()
        return chosen.snapshot_id, chosen.mark

    def _is_far_behind(self, served: CacheVersionInfo) -> bool:
        limit = self._options.pending_snapshots
        newest = None if limit is None else self.table.newest_change()
        return limit is not None and newest is not None and newest.id - served.snapshot_id > limit

    def _check_staleness(self) -> None:
        limit = self._options.max_staleness
        if not limit:
            return
        with self._changed:
            behind = time.monotonic() - self._serving.fresh_at
            served = self._serving.snapshot_id
            error = self._refresher.trouble()[0]
            reason = "" if error is None else f"; the last refresh failed: {error}"
        if behind > limit:
            raise LookupCacheError(
                f"the lookup on {self.spec.identifier} could only be answered from snapshot {served}, which "
                f"has been out of date for {behind:.1f} s: more than lookup.refresh.max-staleness allows"
                f"{reason}"
            )

    def _keep(self, snapshot_id: int, mark: int | None) -> int:
        self._hold()  # before the check: the owner then keeps this one
        if snapshot_id == EMPTY:
            return 0
        if mark is None:
            mark = mark_of(fingerprint(self.table.snapshot(snapshot_id)))
        with self._changed:
            there = self._hosts.have(snapshot_id, mark=mark)
        if not there or (self._cache_host.local and not is_ready(self.directory, snapshot_id, mark)):
            self._await_build(check_mark(self.table, snapshot_id, mark), serve=False)
        return mark

    def wait_for(self, snapshot_id: int | None, timeout: float | None = None) -> int:
        """Wait until a snapshot (None: the newest there is now), or a newer one, is served; returns which is.

        Raises LookupTimeoutError, or the error of the build if the newest cannot be built.
        """
        self._wake()
        if snapshot_id is None:
            return self._wait_for_newest(timeout)[0]
        deadline = time.monotonic() + self._timeout(timeout)
        with self._changed:
            while (served := self._serving.snapshot_id) is None or served < snapshot_id:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._too_late(snapshot_id)
                self._changed.wait(min(left, 0.2))
            return served

    def _wait_for_newest(self, timeout: float | None = None) -> tuple[int, int]:
        newest = self._refresher.look()
        while newest is not None:
            try:
                if not self._serving.is_at(newest):
                    self._await_build(newest, serve=True, timeout=timeout)
                return newest.id, mark_of(fingerprint(newest))
            except SnapshotNotFoundError:
                expired, newest = newest, self._refresher.look()
                if newest is None or newest.id == expired.id:
                    raise
        return EMPTY, 0

    def _timeout(self, given: float | None) -> float:
        return self._options.timeout if given is None else given

    def _await_build(self, snapshot: Snapshot, *, serve: bool, timeout: float | None = None) -> None:
        deadline = time.monotonic() + self._timeout(timeout)
        mark = mark_of(fingerprint(snapshot))
        with self._changed:
            self._hosts.forget(snapshot.id)
            self._refresher.ask_all(snapshot, serve=serve)
            self._awaited.append(snapshot.id)
            bar = LoadBar(f"loading {self.spec.identifier}")
            try:
                while not self._hosts.have(snapshot.id, mark=mark) and self._is_coming():
                    failed = self._hosts.failure(snapshot.id)
                    if failed is not None:
                        raise failed
                    if self._hosts.have(snapshot.id):  # of another snapshot of this number
                        check_mark(self.table, snapshot.id, mark)
                        self._hosts.forget(snapshot.id)
                        self._refresher.ask_all(snapshot, serve=serve)
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise self._too_late(snapshot.id)
                    self._changed.wait(left)
                    bar.show(*self._hosts.loaded())
            finally:
                bar.close()
                self._awaited.remove(snapshot.id)
                self._used_at = time.monotonic()

    def _is_coming(self) -> bool:
        if self._closed.is_set():
            raise LookupCacheError(f"the lookup on {self.spec.identifier} was closed")
        # Without an executor there is no owner to wait for; tasks of later executors wait themselves.
        return bool(self._hosts.all()) or (self._cache_servers is not None and self._cache_servers.expected())

    def _too_late(self, snapshot_id: int) -> LookupTimeoutError:
        return LookupTimeoutError(
            f"snapshot {snapshot_id} of {self.spec.identifier} was not cached in time (lookup.timeout)"
            f"{self._missing_on(snapshot_id)}; the owner's log is "
            f"{self.directory.log_path}"
        )

    def _missing_on(self, snapshot_id: int) -> str:
        if self._cache_host.local:
            return ""
        missing = [host.name for host in self._hosts.deciding() if not host.has(snapshot_id)]
        return f" on {', '.join(missing)}" if missing else ": no executor has started its owner"

    # --- what the owners say -------------------------------------------------------------------------

    def _send(self, link: str, message: CacheCommand) -> bool:
        return self._cache_servers is not None and self._cache_servers.send(link, message)

    def _on_cache_event(self, link: str, event: CacheEvent) -> None:
        kind = event["event"]
        with self._changed:
            host = self._hosts.receive(link, event)
            if host is not None and kind == "leading":
                self._refresher.welcome(host, self._awaited)
                self._heartbeat_at = 0.0
            failed = host is not None and kind in ("failed", "ended") and host.error is not None
            trouble = self._refresher.trouble() if failed else (None, 0)
            moved = self._serving.advance(self._hosts)
            if kind == "built":
                self._refresher.ask_for_target()  # which may have moved on
            self._changed.notify_all()
        if event["event"] == "warning" and event["category"] != MaskedDataWarning.__name__:
            # The warning of masks was given when the lookup was made.
            _log.warning("%s: %s", self.spec.identifier, event["message"])
        if failed:
            _log.warning(
                "refreshing the lookup cache of %s to snapshot %s failed (%d in a row): %s",
                self.spec.identifier,
                event["snapshot"] if event["event"] == "failed" else None,
                trouble[1],
                trouble[0],
            )
        if moved or failed:
            self._heartbeat_at = 0.0  # so that the shell sees it soon
            self._cache_host.publish(self.status())

    # --- the timer -----------------------------------------------------------------------------------

    def _tick_until_closed(self) -> None:
        while True:
            try:
                if not self._resting:
                    self._tick()
                elif self.directory.is_called():
                    self._used_at = time.monotonic()
                    # A query runs that nobody noted: the owner is to last longer, and in the end long enough.
                    self._rest_seconds = 2 * max(self._rest_seconds, _BATCH_SECONDS, _CALL_SECONDS)
                    self._wake()
                elif time.monotonic() - self._heartbeat_at > _HEARTBEAT_SECONDS:
                    self._hold(report_of(self.status()))
            except Exception as error:  # a table that cannot be read now may be readable later
                _log.warning("looking for a new snapshot of %s failed: %s", self.spec.identifier, error)
                self._refresher.note_failure(error)
            if self._closed.wait(self._pause()):
                return
            if self._cache_host.ended() or self._is_idle():
                self.close()

    def _is_idle(self) -> bool:
        with self._changed:
            batches = list(self._batches)
        running = [runs for runs in batches if runs()]
        with self._changed:
            # Without the last one it would not be known that there were any.
            ended = [runs for runs in batches if runs not in running]
            self._batches = [runs for runs in self._batches if runs not in ended[:-1]]
        if running:
            self._used_at = time.monotonic()
            return False
        retention = self._options.file_retention
        if batches and not self._of_streams:
            if self._is_on_disk():
                retention = min(retention, _BATCH_SECONDS)
            else:
                self._rest()
        return not self._awaited and time.monotonic() - self._used_at > retention

    def _rest(self) -> None:
        """Let the owner end once nobody uses it; a kept query that runs again calls for another."""
        with self._rest_lock:
            seconds = max(self._rest_seconds, _BATCH_SECONDS)
            unused = not self._awaited and time.monotonic() - self._used_at > seconds
            if unused and not self._resting and self._cache_servers is not None:
                self.directory.forget_call()
                self._resting = self._has_rested = self._cache_servers.rest()

    def _wake(self) -> None:
        with self._rest_lock:
            if self._resting and self._cache_servers is not None:
                self._cache_servers.wake()
                self._resting = False

    def _is_on_disk(self) -> bool:
        # Of others the owner answers: for rows, or for the key.
        served = self._serving.info
        return served is None or (served.storage != Storage.PARTIAL and not self._is_sealed)

    def _pause(self) -> float:
        if self._resting:
            return _CALL_SECONDS
        due = min(self._refresher.due_at(), time.monotonic() + _HEARTBEAT_SECONDS)
        return max(0.01, due - time.monotonic())

    def _tick(self) -> None:
        self._refresher.look_if_due()
        self._refresher.ask_for_target()
        if time.monotonic() - self._heartbeat_at > _HEARTBEAT_SECONDS:
            self._hold(report_of(self.status()))
        retention = self._options.pin_retention
        if retention and time.monotonic() - self._pins_at > retention / _PIN_RENEWALS:
            self._pins_at = time.monotonic()
            self._pinned_snapshots.renew(retention)
        self._cache_host.publish(self.status())

    def _hold(self, status: Mapping[str, Any] | None = None) -> None:
        retention = self._options.file_retention
        with self._holding:
            with self._changed:
                oldest = time.monotonic() - retention
                self._batch_pins = {pin: at for pin, at in self._batch_pins.items() if at > oldest}
                held = {*self._batch_pins, *self._pinned_snapshots.snapshots()}
                if self._serving.info is not None:
                    held.add(self._serving.info.snapshot_id)
                if not self._cache_host.local:
                    noted = None if status is None else dict(status)
                    hold = HoldCommand(op="hold", name=self._name, snapshots=sorted(held), status=noted)
                    self._hosts.send_to_all(hold)
            if not self._cache_host.local:
                self._heartbeat_at = time.monotonic()
            elif status is not None or held != self._held or not self.directory.is_held_by(self._name):
                self.directory.hold(self._name, held)
                self._held, self._heartbeat_at = held, time.monotonic()
        if self._cache_host.local and status is not None:
            note_status(self.directory, self._name, status)

    # --- for people --------------------------------------------------------------------------------------

    def status(self) -> LookupStatus:
        """Return the status of the lookup."""
        pins = self._pinned_snapshots.all()
        with self._changed:
            return status_of(
                self.spec,
                self._refresher,
                self._hosts,
                directory=str(self.directory.path),
                local=self._cache_host.local,
                pins=pins,
                asked_rows=self._asked_rows,
                hit_rows=self._hit_rows,
            )

    def close(self) -> None:
        """Stop refreshing and end the owner; the cache stays for the next job."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
            self._hosts.send_to_all({"op": "close", "name": self._name})
        if self._cache_servers is not None:
            self._cache_servers.close()
        if self._thread is not threading.current_thread():
            self._thread.join(5)
        # Those of a closed lookup are its own: the next one reads what is on disk.
        self._pinned_snapshots = PinnedSnapshots(self.table, pin_id(self.table, self.spec))
        if self._cache_host.local:
            self.directory.release(self._name)
        self._cache_host.withdraw(self.status())
