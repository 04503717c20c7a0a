"""Delivery of the lineage of this process to the sinks of plugins, on one thread for each sink.

Full queues drop and count further records. The warehouse still has them, so `lockgate
lineage export` can send them later.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lockgate.errors import PluginError
from lockgate.framework.delivery import Delivery
from lockgate.framework.plugins import plugins

if TYPE_CHECKING:
    from lockgate.framework.lineage.model.lineage_records import Record
    from lockgate.framework.plugins import LineageSink

CAPACITY = 100_000
# Seconds between attempts; after the last failed one the records are dropped.
WAITS = (0.5, 2.0, 8.0)
# Seconds that an ending process waits for sinks.
EXIT_TIMEOUT = 5.0

_log = logging.getLogger("lockgate.lineage")


class Sinks:
    """Delivers records to sinks in order, with a few attempts; `waits` are the seconds between attempts."""

    def __init__(
        self, sinks: Mapping[str, LineageSink], waits: Sequence[float] = WAITS, capacity: int = CAPACITY
    ) -> None:
        self._sinks, self._waits, self._capacity = sinks, waits, capacity
        self._lock = threading.Lock()
        self._queues: dict[tuple[str, str], Delivery[Record]] = {}

    @property
    def delivered(self) -> int:
        """The number of delivered records, summed over sinks."""
        return sum(queue.written for queue in [*self._queues.values()])

    @property
    def dropped(self) -> int:
        """The number of dropped records, summed over sinks."""
        return sum(queue.dropped for queue in [*self._queues.values()])

    def offer(self, warehouse: str, records: Sequence[Record]) -> None:
        """Queue records for each sink; never waits."""
        for name in self._sinks:
            queue = self._queue(name, warehouse)
            for record in records:
                queue.offer(record)

    def flush(self, seconds: float) -> bool:
        """Wait until all queued records are delivered; False if that takes longer than `seconds`."""
        end = time.monotonic() + seconds
        return all(queue.flush(max(0.0, end - time.monotonic())) for queue in [*self._queues.values()])

    def _queue(self, name: str, warehouse: str) -> Delivery[Record]:
        with self._lock:
            if (name, warehouse) not in self._queues:
                self._queues[name, warehouse] = Delivery(
                    f"lineage sink {name!r}",
                    partial(self._sinks[name].write, warehouse),
                    capacity=self._capacity,
                    waits=self._waits,
                    tries=len(self._waits) + 1,
                    lost="the warehouse keeps them",
                    log=_log,
                )
            return self._queues[name, warehouse]


_lock = threading.Lock()
_process_sinks: Sinks | None = None


def offer(warehouse: str, records: Sequence[Record]) -> None:
    """Queue records for the sinks of all plugins, if there are any; never raises."""
    sinks = process_sinks()
    if sinks is not None:
        sinks.offer(warehouse, records)


def process_sinks() -> Sinks | None:
    """Return the delivery to the sinks of all plugins; None if there are no sinks."""
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
            atexit.register(_process_sinks.flush, EXIT_TIMEOUT)
        return _process_sinks
