"""The queues between publishers of events and the plugins that observe them, one for each plugin.

A publisher pays for putting an event into the queues, never for an observer. If an observer is slow, its own
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
# How long a process that ends waits for observers, in seconds.
LAST_WAIT = 2.0

_log = logging.getLogger("lockgate.events")


@dataclass(frozen=True)
class EventCounts:
    """Counts of events, each for each observer: `delivered` to it, `dropped` because its queue was full, and
    `failed` in it.
    """

    delivered: int
    dropped: int
    failed: int


class EventQueues:
    """Delivers events to observers, in order, on a daemon thread each that starts with its first event.

    `observe` takes the name of an observer and an event, and returns the errors that were raised.
    """

    def __init__(
        self, observe: Callable[[str, Event], list[tuple[str, BaseException]]], capacity: int = CAPACITY
    ) -> None:
        self._observe, self._capacity = observe, capacity
        self._lock = threading.Lock()
        self._queues: dict[str, Delivery[Event]] = {}
        self._failed = 0
        self._complained: set[str] = set()

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
        """Return the counts since this process began."""
        queues = [*self._queues.values()]
        return EventCounts(
            sum(queue.written for queue in queues), sum(queue.dropped for queue in queues), self._failed
        )

    def _new_queue(self, name: str) -> Delivery[Event]:
        with self._lock:
            if name not in self._queues:
                if not self._queues:
                    atexit.register(self.flush, LAST_WAIT)

                def hand_over(events: Sequence[Event]) -> None:
                    for event in events:
                        self._hand_over(name, event)

                self._queues[name] = Delivery(
                    f"observer {name!r}", hand_over, capacity=self._capacity, log=_log
                )
            return self._queues[name]

    def _hand_over(self, name: str, event: Event) -> None:
        errors = self._observe(name, event)
        with self._lock:
            self._failed += len(errors)
            complaints = [each for each in errors if each[0] not in self._complained]
            # Once for each plugin: a broken observer would fill the log with every event.
            self._complained.update(plugin for plugin, _ in errors)
        for plugin, error in complaints:
            _log.warning(
                "plugin %r failed to observe %s: %s: %s; later failures are only counted",
                *(plugin, type(event).__name__, type(error).__name__, error),
            )
