"""Queues of events, one for each plugin that observes them.

A publisher only waits for its event to be queued, never for an observer. If an observer is slow, its own
queue drops events and counts them. If it raises an error, that is logged, and it gets the next event.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lockgate.framework.delivery import Delivery
from lockgate.framework.plugins.events import Event

# Events are about 200 bytes each, so a full queue holds about 2 MB.
CAPACITY = 10_000
# Seconds that an ending process waits for observers.
EXIT_TIMEOUT = 2.0

_log = logging.getLogger("lockgate.events")


@dataclass(frozen=True)
class EventCounts:
    """Numbers of events over all observers: delivered, dropped by a full queue, failed in an observer."""

    delivered: int
    dropped: int
    failed: int


class EventQueues:
    """Delivers events to observers in order, each on a daemon thread that starts with its first event.

    `observe` takes the name of an observer and an event, and returns the errors by plugin.
    """

    def __init__(
        self, observe: Callable[[str, Event], list[tuple[str, BaseException]]], capacity: int = CAPACITY
    ) -> None:
        self._observe, self._capacity = observe, capacity
        self._lock = threading.Lock()
        self._queues: dict[str, Delivery[Event]] = {}
        self._failed = 0
        self._reported: set[str] = set()

    def publish(self, event: Event, observers: Iterable[str]) -> None:
        """Queue `event` for observers; a full queue drops it. Never waits and never raises."""
        for name in observers:
            queue = self._queues.get(name) or self._new_queue(name)
            queue.offer(event)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all events so far are delivered; False if that takes more than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        return all(queue.flush(max(0.0, deadline - time.monotonic())) for queue in [*self._queues.values()])

    def counts(self) -> EventCounts:
        """Return the counts since the start of this process."""
        queues = [*self._queues.values()]
        return EventCounts(
            sum(queue.written for queue in queues), sum(queue.dropped for queue in queues), self._failed
        )

    def _new_queue(self, name: str) -> Delivery[Event]:
        with self._lock:
            if name not in self._queues:
                if not self._queues:
                    atexit.register(self.flush, EXIT_TIMEOUT)

                def deliver(events: Sequence[Event]) -> None:
                    for event in events:
                        self._deliver(name, event)

                self._queues[name] = Delivery(
                    f"observer {name!r}", deliver, capacity=self._capacity, log=_log
                )
            return self._queues[name]

    def _deliver(self, name: str, event: Event) -> None:
        errors = self._observe(name, event)
        with self._lock:
            self._failed += len(errors)
            reports = [each for each in errors if each[0] not in self._reported]
            # Once for each plugin: a broken observer would fill the log.
            self._reported.update(plugin for plugin, _ in errors)
        for plugin, error in reports:
            _log.warning(
                "plugin %r failed to observe %s: %s: %s; later failures are only counted",
                *(plugin, type(event).__name__, type(error).__name__, error),
            )
