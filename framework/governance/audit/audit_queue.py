"""The lane to one audit destination: a bounded queue, a thread, and with a spool a place for what waits.

With a spool, lines go from the queue to the disk at once and from there to the destination, so a killed
process loses only what it had in the queue. Without one, a destination that fails several times in a row
loses a batch. Either way no query waits, and `dropped` counts what is lost. Lines that a destination refuses
for good are counted by `refused`, and set aside beside the spool; the others go on.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from pathlib import Path

from lockgate.framework.governance.audit.record import Line
from lockgate.framework.governance.audit.spool import Spool
from lockgate.framework.plugins import AuditSink, write_accepted

_log = logging.getLogger("lockgate.governance")
_BATCH = 2_000
_MOST_NAMED = 5
# The seconds between tries; the last one is repeated.
_WAITS = (0.5, 2.0, 8.0, 30.0)
# How often a batch without a spool is tried.
_TRIES = 3


class Lane:
    """Carries lines to a destination, at the latest `linger` seconds after they came."""

    def __init__(
        self,
        name: str,
        sink: AuditSink,
        *,
        capacity: int,
        linger: float = 0.0,
        spool: Spool | None = None,
        waits: tuple[float, ...] = _WAITS,
    ) -> None:
        self.name, self._sink, self._spool, self._linger, self._waits = name, sink, spool, linger, waits
        self._queue: queue.Queue[Line] = queue.Queue(capacity)
        self._lock, self._end = threading.Lock(), threading.Event()
        # A flush waits for a round of the thread that began after it and left nothing.
        self._rounds = threading.Condition()
        self._wanted = self._reached = 0
        self.written = self.dropped = self.refused = 0
        self._failures, self._next = 0, 0.0
        self._thread = threading.Thread(target=self._work, name=f"lockgate-audit-{name}", daemon=True)
        self._thread.start()

    def offer(self, line: Line) -> None:
        """Queue a line; never waits and never raises."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self._drop(1)

    def flush(self, seconds: float) -> bool:
        """Wait until all that was offered is delivered; False if that takes longer."""
        with self._rounds:
            self._wanted += 1
            wanted = self._wanted
            return self._rounds.wait_for(lambda: self._reached >= wanted, seconds)

    def close(self, seconds: float) -> None:
        """Deliver what is queued, as long as that takes no longer, and end; the rest stays in the spool."""
        self._end.set()
        self._thread.join(seconds)

    # --- the thread ---

    def _work(self) -> None:
        batch: list[Line] = []
        since = time.monotonic()
        ending = False
        while not ending or not self._queue.empty():
            ending, wanted = self._end.is_set(), self._wanted
            batch += self._taken(_BATCH - len(batch))
            drained = len(batch) < _BATCH
            if self._spool is not None and batch:
                self._to_disk(self._spool, batch)
                batch = []
            now = time.monotonic()
            hurries = ending or wanted > self._reached
            if hurries or len(batch) >= _BATCH or now - since >= self._linger:
                since = now
                if self._deliver(batch, last=ending):
                    batch = []
                    self._reach(wanted if drained else self._reached)
        self._drop(len(batch))

    def _reach(self, wanted: int) -> None:
        if wanted > self._reached:
            with self._rounds:
                self._reached = wanted
                self._rounds.notify_all()

    def _taken(self, most: int) -> list[Line]:
        """Return what is queued, waiting a little for the first line."""
        found: list[Line] = []
        try:
            while len(found) < most:
                found.append(self._queue.get(timeout=0 if found or self._end.is_set() else 0.1))
        except queue.Empty:
            pass
        return found

    def _to_disk(self, spool: Spool, batch: list[Line]) -> None:
        try:
            kept = spool.add(batch)
        except Exception as error:  # a full disk, a folder that is no longer private
            kept = 0
            self._complain("its spool takes no records", error)
        self._drop(len(batch) - kept)

    def _deliver(self, batch: list[Line], *, last: bool) -> bool:
        """Deliver what is due; False if it waits for another try."""
        if time.monotonic() < self._next and not last:
            return False
        try:
            if self._spool is not None:
                self._from_disk(self._spool)
            elif batch:
                self._count_refused(self._written(batch), None)
        except Exception as error:  # a plugin may raise anything
            self._next = time.monotonic() + self._waits[min(self._failures, len(self._waits) - 1)]
            self._failures += 1
            self._complain("it takes no records", error)
            if self._spool is not None or self._failures < _TRIES or last:
                return False
            self._drop(len(batch))
        self._failures = 0
        return True

    def _from_disk(self, spool: Spool) -> None:
        spool.cut()
        while True:
            with spool.oldest() as due:
                if due is None:
                    return
                refused = self._written(due.lines) if due.lines else []
                self._count_refused(refused, spool.set_aside(due, refused) if refused else None)
                self._drop(due.damaged)
                due.remove()

    def _written(self, lines: list[Line]) -> list[Line]:
        """Write lines, and return those that the destination refuses."""
        refused = write_accepted(self._sink.write, lines)
        self.written += len(lines) - len(refused)
        return refused

    def _count_refused(self, lines: list[Line], path: Path | None) -> None:
        """Count and name refused lines, which are kept in a file, or lost."""
        if not lines:
            return
        self.refused += len(lines)
        if path is None:
            self._drop(len(lines))
        names = ", ".join(str(line.get("id")) for line in lines[:_MOST_NAMED])
        _log.warning(
            "audit destination %r refuses %d records for good, such as %s; %s",
            *(self.name, len(lines), names, "they are lost" if path is None else f"they are kept in {path}"),
        )

    def _drop(self, count: int) -> None:
        with self._lock:
            self.dropped += count

    def _complain(self, what: str, error: Exception) -> None:
        if self._failures <= 1:
            _log.warning("audit destination %r: %s (%s: %s)", self.name, what, type(error).__name__, error)
