"""The way of records to one receiver: a bounded queue, a thread, and with a spool a place for what waits.

With a spool, records go from the queue to the disk at once and from there to the receiver, so a killed
process loses only what it had in the queue. Without one, a receiver that fails several times in a row loses
a batch. Records that a receiver refuses for good are counted, and set aside beside the spool; the others go
on.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from lockgate.framework.delivery.appended_lines import Line
from lockgate.framework.delivery.refused_records import write_accepted
from lockgate.framework.delivery.spool import Spool

T = TypeVar("T")
_log = logging.getLogger("lockgate.delivery")
_BATCH = 2_000
_MOST_NAMED = 5
# The seconds after which files of killed processes are looked for, if nothing else wakes the thread.
_LOOK_AROUND = 1.0


class Delivery(Generic[T]):
    """Carries records to `write`, in order, at the latest `linger` seconds after they came.

    `write` takes all records or raises: RecordsRefusedError for such as it will never take, anything else to
    get them again after the next of `waits`. Without a spool it gets them `tries` times. `capacity` records
    wait in memory; further ones are dropped. `receiver` names it in messages, `lost` says there what becomes
    of records that it does not get. A forked process begins with an empty queue.
    """

    def __init__(
        self,
        receiver: str,
        write: Callable[[Sequence[T]], None],
        *,
        capacity: int,
        linger: float = 0.0,
        spool: Spool | None = None,
        waits: Sequence[float] = (0.5, 2.0, 8.0, 30.0),
        tries: int = 3,
        lost: str = "they are lost",
        log: logging.Logger = _log,
    ) -> None:
        """Begin; a spool that holds records of earlier processes is delivered at once."""
        self.receiver, self._write, self._spool, self._linger = receiver, write, spool, linger
        self._capacity, self._waits, self._tries, self._lost, self._log = capacity, waits, tries, lost, log
        self.written = self.dropped = self.refused = 0
        self._begin()
        if spool is not None:
            with self._changed:
                self._start()

    def offer(self, record: T) -> None:
        """Queue a record; never waits and never raises."""
        self._own()
        with self._changed:
            if self._ending or len(self._records) >= self._capacity:
                self.dropped += 1
                return
            self._records.append(record)
            self._start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until all that was offered is delivered, or lost; False if that takes longer."""
        self._own()
        with self._changed:
            if self._thread is None:
                return True
            self._wanted += 1
            wanted = self._wanted
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._reached >= wanted, seconds)

    def close(self, seconds: float) -> None:
        """Deliver what is queued, as long as that takes no longer, and end; the rest stays in the spool."""
        self._own()
        with self._changed:
            self._ending = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(seconds)

    def _own(self) -> None:
        if self._process != os.getpid():
            if self._spool is not None:
                self._spool.cut()
            self._begin()

    def _begin(self) -> None:
        self._process, self._changed = os.getpid(), threading.Condition()
        self._records: deque[T] = deque()
        self._thread: threading.Thread | None = None
        self._ending = self._has_complained = False
        # A flush waits for a round of the thread that began after it and left nothing.
        self._wanted, self._reached = 0, 0.0
        # When to deliver, at the earliest after a failure.
        self._due, self._next, self._failures = math.inf, 0.0, 0

    def _start(self) -> None:
        if self._thread is None:
            if self._spool is not None:
                self._due = time.monotonic() + self._linger
            self._thread = threading.Thread(target=self._work, name=f"lockgate {self.receiver}", daemon=True)
            self._thread.start()

    # --- the thread ---

    def _work(self) -> None:
        batch: list[T] = []
        ending = False
        while not ending or (self._records and not batch):
            with self._changed:
                while not self._has_work(len(batch)):
                    moment = self._moment(len(batch))
                    self._changed.wait(None if math.isinf(moment) else max(0.0, moment - time.monotonic()))
                ending, wanted = self._ending, self._wanted
                fresh = [self._records.popleft() for _ in range(min(len(self._records), _BATCH - len(batch)))]
                drained = not self._records
            if fresh:
                self._due = min(self._due, time.monotonic() + self._linger)
                if self._spool is None:
                    batch += fresh
                else:
                    self._to_disk(self._spool, fresh)
            if (ending or time.monotonic() >= self._moment(len(batch))) and self._deliver(batch, last=ending):
                batch = []
                if drained:
                    self._reach(wanted)
        self._drop(len(batch) + len(self._records))
        self._reach(math.inf)

    def _has_work(self, waiting: int) -> bool:
        takes = bool(self._records) and waiting < _BATCH
        return self._ending or takes or time.monotonic() >= self._moment(waiting)

    def _moment(self, waiting: int) -> float:
        """Return when the next delivery is to be tried, for `waiting` records in memory."""
        hurries = self._wanted > self._reached or waiting >= _BATCH
        return self._next if hurries else max(self._due, self._next)

    def _reach(self, wanted: float) -> None:
        with self._changed:
            self._reached = max(self._reached, wanted)
            self._changed.notify_all()

    def _to_disk(self, spool: Spool, records: list[T]) -> None:
        kept = 0
        try:
            kept = spool.add(cast("list[Line]", records))
        except Exception as error:  # a full disk, a folder that is no longer private
            self._complain("its spool takes no records", error)
        self._drop(len(records) - kept)

    def _deliver(self, batch: list[T], *, last: bool) -> bool:
        """Deliver what is due; False if it waits for another try."""
        try:
            if self._spool is not None:
                self._from_disk(self._spool)
            elif batch:
                self._count_refused(self._written(batch), None)
        except Exception as error:  # a plugin may raise anything
            self._due = self._next = time.monotonic() + self._waits[min(self._failures, len(self._waits) - 1)]
            self._failures += 1
            self._complain("it takes no records", error)
            if self._spool is not None or self._failures < self._tries or last:
                return False
            self._drop(len(batch))
        else:
            self._has_complained = False
        self._failures, self._next = 0, 0.0
        self._due = math.inf if self._spool is None else time.monotonic() + max(self._linger, _LOOK_AROUND)
        return True

    def _from_disk(self, spool: Spool) -> None:
        spool.cut()
        while True:
            with spool.oldest() as due:
                if due is None:
                    return
                refused = self._written(cast("list[T]", due.lines)) if due.lines else []
                lines = cast("list[Line]", refused)
                self._count_refused(refused, f"{spool.set_aside(due, lines) or ''}" if refused else None)
                self._drop(due.damaged)
                due.remove()

    def _written(self, records: Sequence[T]) -> list[T]:
        """Write records, and return those that the receiver refuses."""
        refused = write_accepted(self._write, records)
        self.written += len(records) - len(refused)
        return refused

    def _count_refused(self, records: list[T], path: str | None) -> None:
        """Count and name refused records, which are kept in a file, or lost."""
        if not records:
            return
        self.refused += len(records)
        if not path:
            self._drop(len(records))
        ids = [str(record["id"]) for record in records if isinstance(record, Mapping) and "id" in record]
        self._log.warning(
            "%s refuses %d records for good%s; %s",
            *(self.receiver, len(records), f", such as {', '.join(ids[:_MOST_NAMED])}" if ids else ""),
            f"they are kept in {path}" if path else self._lost,
        )

    def _drop(self, count: int) -> None:
        with self._changed:
            self.dropped += count

    def _complain(self, what: str, error: Exception) -> None:
        """Log a failure, once until the receiver takes records again."""
        if not self._has_complained:
            self._has_complained = True
            self._log.warning("%s: %s (%s: %s)", self.receiver, what, type(error).__name__, error)
