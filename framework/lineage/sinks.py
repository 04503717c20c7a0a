"""Sinks: delivery of the lineage that this process records to plugins, on a thread of its own.

The queue is bounded: further records are dropped and counted. They are still in the warehouse, so `lockgate
lineage export` can send them later.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import PluginError
from lockgate.framework.plugins import plugins, write_accepted

if TYPE_CHECKING:
    from lockgate.framework.lineage.model.lineage_records import Record
    from lockgate.framework.plugins import LineageSink

CAPACITY = 1_000
# Waits between tries, in seconds; a sink that fails longer loses what it was offered.
WAITS = (0.5, 2.0, 8.0)
# How long a process that ends waits for sinks, in seconds.
LAST_WAIT = 5.0

_log = logging.getLogger("lockgate.lineage")


@dataclass(frozen=True)
class _Offer:
    warehouse: str
    records: Sequence[Record]


class Sinks:
    """Hands records to sinks, in order, each tried a few times; `waits` are the seconds between tries."""

    def __init__(
        self, sinks: Mapping[str, LineageSink], waits: Sequence[float] = WAITS, capacity: int = CAPACITY
    ) -> None:
        self._sinks = sinks
        self._waits = waits
        self._queue: queue.Queue[_Offer] = queue.Queue(capacity)
        self._complained: set[str] = set()
        self.delivered = 0
        self.dropped = 0
        threading.Thread(target=self._work, name="lockgate-lineage-sinks", daemon=True).start()

    def offer(self, warehouse: str, records: Sequence[Record]) -> None:
        """Put records into the queue; never waits."""
        try:
            self._queue.put_nowait(_Offer(warehouse, records))
        except queue.Full:
            self.dropped += len(records)

    def flush(self, seconds: float) -> bool:
        """Wait until all that was offered is handed over; False if that takes longer."""
        end = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)
        return not self._queue.unfinished_tasks

    def _work(self) -> None:
        while True:
            offered = self._queue.get()
            try:
                for name, sink in self._sinks.items():
                    self._hand_over(name, sink, offered)
            finally:
                self._queue.task_done()

    def _hand_over(self, name: str, sink: LineageSink, offered: _Offer) -> None:
        for wait in (*self._waits, None):
            try:
                refused = write_accepted(
                    lambda records: sink.write(offered.warehouse, records), offered.records
                )
            except Exception as error:  # a plugin may raise anything
                if wait is None:
                    self._give_up(name, offered, error)
                else:
                    time.sleep(wait)
            else:
                self.delivered += len(offered.records) - len(refused)
                if refused:
                    self._count_refused(name, refused)
                self._complained.discard(name)
                return

    def _count_refused(self, name: str, refused: Sequence[Record]) -> None:
        self.dropped += len(refused)
        _log.warning(
            "lineage sink %r refuses %d records for good; the warehouse keeps them", name, len(refused)
        )

    def _give_up(self, name: str, offered: _Offer, error: Exception) -> None:
        self.dropped += len(offered.records)
        if name not in self._complained:
            self._complained.add(name)
            _log.warning(
                "lineage sink %r failed %d times (%s: %s): it misses %d records; the warehouse keeps them",
                *(name, len(self._waits) + 1, type(error).__name__, error, len(offered.records)),
            )


_lock = threading.Lock()
_process_sinks: Sinks | None = None


def offer(warehouse: str, records: Sequence[Record]) -> None:
    """Offer records to the sinks of all plugins; costs nothing where there are none, and never raises."""
    sinks = process_sinks()
    if sinks is not None:
        sinks.offer(warehouse, records)


def process_sinks() -> Sinks | None:
    """Return what hands records to the sinks of all plugins; None where no plugin has one."""
    global _process_sinks
    try:
        sinks = plugins().lineage_sinks()
    except PluginError as error:
        _log.warning("no lineage sink receives records: %s", error)
        return None
    with _lock:
        if not sinks:
            return None
        if _process_sinks is None or _process_sinks._sinks is not sinks:
            _process_sinks = Sinks(sinks)
            atexit.register(_process_sinks.flush, LAST_WAIT)
        return _process_sinks
