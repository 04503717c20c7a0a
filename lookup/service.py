"""The driver's side of lookups: one `Lookup` a cache, which looks for new snapshots and has them built.

A timer publishes the newest snapshot as the target, an owner process builds it, batches are given what is
built. Nothing here waits for a batch: a lookup refreshes whether or not rows arrive.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from datetime import datetime
from typing import TYPE_CHECKING

from lockgate.errors import (
    LockgateError,
    LookupCacheError,
    LookupTimeoutError,
    MaskedDataWarning,
    SnapshotNotFoundError,
)
from lockgate.framework.store.snapshot import Snapshot
from lockgate.lookup.builder import fingerprint
from lockgate.lookup.directory import GenerationInfo
from lockgate.lookup.options import (
    BLACKLIST,
    FILE_RETENTION,
    MAX_STALENESS,
    PENDING_SNAPSHOTS,
    PIN_RETENTION,
    REFRESH_ASYNC,
    REFRESH_INTERVAL,
    TIMEOUT,
    lookup_options,
)
from lockgate.lookup.owner_process import OwnerProcess
from lockgate.lookup.periods import covers
from lockgate.lookup.pins import Pins, shared_pins
from lockgate.lookup.pipe import Message, error_from_json
from lockgate.lookup.spec import LookupSpec, cache_id
from lockgate.lookup.standing import LookupStatus
from lockgate.lookup.tables import directory_for, newest_target

if TYPE_CHECKING:
    from lockgate.framework.store.catalog import Catalog
    from lockgate.framework.store.table import Table

_log = logging.getLogger("lockgate.lookup")

_HEARTBEAT_SECONDS = 5.0
_FIRST_BACK_OFF_SECONDS = 0.5
_LONGEST_BACK_OFF_SECONDS = 30.0
# An owner that ends so often before it is ready is not killed by accident: waiting for it is in vain.
_EARLY_ENDS = 3
# Pins are noted again so often before they would be taken for abandoned.
_PIN_RENEWALS = 4
# The state before the first snapshot: a table without rows.
EMPTY = 0


class Lookup:
    """One running lookup: its target, what is built of it, and which batches use what."""

    def __init__(self, catalog: Catalog, table: Table, spec: LookupSpec) -> None:
        self.table = table
        self.spec = spec
        self.id = cache_id(table, spec)
        self.directory = directory_for(table, spec)
        self._options = lookup_options(table.options, spec.options)
        self._name = uuid.uuid4().hex
        self._pins = shared_pins(table, self.id)
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._target: Snapshot | None = None
        self._served: GenerationInfo | None = None
        self._ready = False
        self._built: dict[int, GenerationInfo] = {}
        self._asked: dict[int, bool] = {}
        self._asked_at: dict[int, float] = {}
        self._batch_pins: dict[int, float] = {}
        self._error: LockgateError | None = None
        self._failures = 0
        self._failed: dict[int | None, LockgateError] = {}
        self._early_ends = 0
        self._retry_at = 0.0
        self._loading: int | None = None
        self._heartbeat_at = 0.0
        self._used_at = time.monotonic()
        # When what is served was last seen to be the newest.
        self._fresh_at = time.monotonic()
        self._pins_at = 0.0
        self._waiting = 0
        opening = {
            "warehouse": catalog.file_system.uri(catalog.warehouse),
            "options": dict(catalog.options or {}),
            "spec": spec.to_json(),
            "directory": str(self.directory.path),
        }
        self._owner = OwnerProcess(opening, table.keys, self.directory.log_path, self._hear)
        self._thread = threading.Thread(target=self._tick_until_closed, name="lockgate-lookup", daemon=True)
        self._thread.start()

    # --- what batches ask ----------------------------------------------------------------------------

    def pin(self, query_id: str | None, batch_id: int | None) -> int:
        """Choose the snapshot that a batch uses, built and protected; 0 for a table without snapshots.

        The same batch of the same query gets the same snapshot again, also from the next driver. Without a
        query, as in batch jobs, it is kept for `lookup.cache-file-retention`. Raises LookupTimeoutError if
        it is not built in `lookup.timeout`, and the error of the build if nothing was ever built.
        """
        self.touch()
        if query_id is None or batch_id is None:
            snapshot_id = self._choose()
            with self._changed:
                self._batch_pins[snapshot_id] = time.monotonic()
            self._keep(snapshot_id)
            return snapshot_id
        known = self._pins.get(query_id, batch_id)
        if known is None:
            known = self._choose()
            self._pins.record(query_id, batch_id, known)
        self._keep(known)
        return known

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed.is_set()

    def touch(self) -> bool:
        """Note that the lookup is used; False if it has ended, as it does when it is not used for long."""
        self._used_at = time.monotonic()
        return not self._closed.is_set()

    def _choose(self) -> int:
        served = self._served if self._ready else None
        if served is None or self._is_rolled_back(served):
            return self.wait_for(None)
        if self._paused():
            chosen = served.snapshot_id
        elif self._options.get_option(REFRESH_ASYNC) and self._pending(served) <= self._options.get_option(
            PENDING_SNAPSHOTS
        ):
            with self._changed:
                chosen = served.snapshot_id if self._served is None else self._served.snapshot_id
        else:
            return self.wait_for(None)
        self._check_staleness()
        return chosen

    def _paused(self) -> bool:
        return covers(self._options.get_option(BLACKLIST), datetime.now())

    def _pending(self, served: GenerationInfo) -> int:
        if PENDING_SNAPSHOTS.key not in self._options:
            return 0
        newest = newest_target(self.table)
        return 0 if newest is None else newest.id - served.snapshot_id

    def _check_staleness(self) -> None:
        limit = self._options.get_option(MAX_STALENESS)
        if not limit:
            return
        with self._changed:
            behind = time.monotonic() - self._fresh_at
            served = None if self._served is None else self._served.snapshot_id
            reason = "" if self._error is None else f"; the last refresh failed: {self._error}"
        if behind > limit.total_seconds():
            raise LookupCacheError(
                f"the lookup on {self.spec.identifier} could only be answered from snapshot {served}, which "
                f"has been out of date for {behind:.1f} s: more than lookup.refresh.max-staleness allows"
                f"{reason}"
            )

    def _is_rolled_back(self, info: GenerationInfo) -> bool:
        try:
            return fingerprint(self.table.snapshot(info.snapshot_id)) != info.fingerprint
        except SnapshotNotFoundError:
            latest = self.table.latest_snapshot()
            return latest is None or latest.id < info.snapshot_id

    def _keep(self, snapshot_id: int) -> None:
        # Said before it is checked: what the owner removes afterwards is not this one.
        self._hold()
        if snapshot_id != EMPTY and self.directory.generation(snapshot_id) is None:
            self._await_build(snapshot_id, serve=False)

    def wait_for(self, snapshot_id: int | None, timeout: float | None = None) -> int:
        """Wait until a snapshot (None: the newest there is now), or a newer one, is served; returns which is.

        Raises LookupTimeoutError, or the error of the build if the newest cannot be built.
        """
        if snapshot_id is None:
            newest = newest_target(self.table)
            if newest is None:
                return EMPTY
            if self._served is None or self._served.fingerprint != fingerprint(newest):
                self._await_build(newest.id, serve=True, timeout=timeout)
            return newest.id
        deadline = time.monotonic() + self._timeout(timeout)
        with self._changed:
            while self._served is None or self._served.snapshot_id < snapshot_id:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._too_late(snapshot_id)
                self._changed.wait(min(left, 0.2))
            return self._served.snapshot_id

    def _timeout(self, given: float | None) -> float:
        return self._options.get_option(TIMEOUT).total_seconds() if given is None else given

    def _await_build(self, snapshot_id: int, *, serve: bool, timeout: float | None = None) -> None:
        deadline = time.monotonic() + self._timeout(timeout)
        with self._changed:
            self._built.pop(snapshot_id, None)
            self._failed.pop(snapshot_id, None)
            self._failed.pop(None, None)
            self._ask(snapshot_id, serve)
            self._waiting += 1
            try:
                while snapshot_id not in self._built:
                    failed = self._failed.get(snapshot_id) or self._failed.get(None)
                    if failed is not None:
                        raise failed
                    if self._closed.is_set():
                        raise LookupCacheError(f"the lookup on {self.spec.identifier} was closed")
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise self._too_late(snapshot_id)
                    self._changed.wait(left)
            finally:
                self._waiting -= 1
                self._used_at = time.monotonic()

    def _too_late(self, snapshot_id: int) -> LookupTimeoutError:
        return LookupTimeoutError(
            f"snapshot {snapshot_id} of {self.spec.identifier} was not cached in time (lookup.timeout); "
            f"what the owner of the cache reported is in {self.directory.log_path}"
        )

    # --- what the owner says ---------------------------------------------------------------------------

    def _ask(self, snapshot_id: int, serve: bool) -> None:
        self._asked[snapshot_id] = self._asked.get(snapshot_id, False) or serve
        self._asked_at[snapshot_id] = time.monotonic()
        self._owner.send({"op": "build", "snapshot": snapshot_id, "serve": serve})

    def _hear(self, event: Message) -> None:
        with self._changed:
            kind = event["event"]
            if kind == "started":
                for snapshot_id, serve in self._asked.items():
                    self._owner.send({"op": "build", "snapshot": snapshot_id, "serve": serve})
            elif kind == "built":
                self._on_built(GenerationInfo(**event["info"]))
            elif kind == "ready":
                self._early_ends = 0
            elif kind == "failed":
                self._on_failed(event["snapshot"], error_from_json(event["error"]))
            elif kind == "ended":
                self._on_ended(event)
            elif kind == "progress":
                self._loading = event["rows"]
            self._changed.notify_all()
        if event["event"] == "warning" and event["category"] != MaskedDataWarning.__name__:
            # That of masks was given where the lookup was asked for.
            _log.warning("%s: %s", self.spec.identifier, event["message"])

    def _on_built(self, info: GenerationInfo) -> None:
        serve = self._asked.pop(info.snapshot_id, False)
        asked_at = self._asked_at.pop(info.snapshot_id, 0.0)
        self._built[info.snapshot_id] = info
        for old in sorted(self._built)[:-16]:
            del self._built[old]
        if serve:
            self._served = info
            self._ready = True
            self._fresh_at = max(self._fresh_at, asked_at)
        self._error, self._failures, self._loading = None, 0, None

    def _on_ended(self, event: Message) -> None:
        self._early_ends += 1
        if self._early_ends >= _EARLY_ENDS:
            error = LookupCacheError(
                f"the owner of the lookup cache of {self.spec.identifier} ended {self._early_ends} times "
                f"before it was ready (exit code {event['code']}); see {self.directory.log_path}"
            )
            self._on_failed(None, error)

    def _on_failed(self, snapshot_id: int | None, error: LockgateError) -> None:
        self._asked.pop(snapshot_id or 0, None)
        if snapshot_id is None:  # the table could not even be opened
            self._asked.clear()
        self._failed[snapshot_id] = self._error = error
        self._failures += 1
        self._loading = None
        pause = min(_FIRST_BACK_OFF_SECONDS * 2 ** (self._failures - 1), _LONGEST_BACK_OFF_SECONDS)
        self._retry_at = time.monotonic() + pause
        _log.warning(
            "refreshing the lookup cache of %s to snapshot %s failed (%d in a row): %s",
            self.spec.identifier,
            snapshot_id,
            self._failures,
            self._error,
        )

    # --- the timer -----------------------------------------------------------------------------------

    def _tick_until_closed(self) -> None:
        interval = self._options.get_option(REFRESH_INTERVAL).total_seconds()
        while True:
            try:
                self._tick()
            except Exception as error:  # a table that cannot be read now may be readable later
                _log.warning("looking for a new snapshot of %s failed: %s", self.spec.identifier, error)
                with self._changed:
                    self._error = LookupCacheError(f"looking for a new snapshot failed: {error}")
                    self._failures += 1
            if self._closed.wait(interval):
                return
            idle = time.monotonic() - self._used_at
            if not self._waiting and idle > self._options.get_option(FILE_RETENTION).total_seconds():
                self.close()

    def _tick(self) -> None:
        started = time.monotonic()
        newest = newest_target(self.table)
        with self._changed:
            self._target = newest
            served = self._served
            current = newest is None or (served is not None and served.fingerprint == fingerprint(newest))
            if current:
                self._fresh_at = started
                self._error, self._failures = None, 0
            wanted = None if newest is None or current or (self._ready and self._paused()) else newest.id
            if wanted is not None and wanted not in self._asked and time.monotonic() >= self._retry_at:
                self._ask(wanted, True)
        if time.monotonic() - self._heartbeat_at > _HEARTBEAT_SECONDS:
            self._hold()
        retention = self._options.get_option(PIN_RETENTION).total_seconds()
        if retention and time.monotonic() - self._pins_at > retention / _PIN_RENEWALS:
            self._pins_at = time.monotonic()
            self._pins.renew(retention)

    def _hold(self) -> None:
        retention = self._options.get_option(FILE_RETENTION).total_seconds()
        with self._changed:
            oldest = time.monotonic() - retention
            self._batch_pins = {pin: at for pin, at in self._batch_pins.items() if at > oldest}
            held = {*self._batch_pins, *self._pins.snapshots()}
            if self._served is not None:
                held.add(self._served.snapshot_id)
            self._heartbeat_at = time.monotonic()
        self.directory.hold(self._name, held)

    # --- for people --------------------------------------------------------------------------------------

    def status(self) -> LookupStatus:
        """Say where the lookup stands."""
        pins = self._pins.all()
        with self._changed:
            served, target = self._served, self._target
            current = served is not None and target is not None and served.snapshot_id == target.id
            lag = 0 if current or target is None else max(0, int(time.time() * 1000) - target.time_millis)
            return LookupStatus(
                table=self.spec.identifier,
                keys=self.spec.keys,
                directory=str(self.directory.path),
                target_snapshot=None if target is None else target.id,
                served_snapshot=None if served is None else served.snapshot_id,
                lag_millis=lag,
                rows=0 if served is None else served.rows,
                bytes=0 if served is None else served.bytes,
                build_seconds=0.0 if served is None else served.build_seconds,
                built_millis=0 if served is None else served.built_millis,
                full_load=served is not None and served.full_load,
                loading_rows=self._loading,
                last_error=None if self._error is None else str(self._error),
                failures=self._failures,
                owner_pid=self._owner.pid,
                owner_restarts=max(0, self._owner.restarts),
                pins=pins,
            )

    def close(self) -> None:
        """Stop refreshing and end the owner; the cache stays for the next job."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
        self._owner.close()
        if self._thread is not threading.current_thread():
            self._thread.join(5)
        # Those of a closed lookup are its own: the next one reads what is on disk.
        self._pins = Pins(self.table, self.id)
        self.directory.release(self._name)
