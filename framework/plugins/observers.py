"""The queue between publishers of events and the plugins that observe them.

A publisher pays for putting an event into the queue, never for an observer. If an observer is slow, the queue
drops events and counts them. If an observer raises an error, that is logged, and the observer gets the next
event.
"""

from __future__ import annotations

import atexit
import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lockgate.framework.plugins.events import Event

# Events are about 200 bytes each, so a full queue holds about 2 MB.
CAPACITY = 10_000
# How long a process that ends waits for observers, in seconds.
LAST_WAIT = 2.0

_log = logging.getLogger("lockgate.events")


@dataclass(frozen=True)
class EventCounts:
    """Counts of events: `delivered` to observers, `dropped` because the queue was full, and `failed` in an
    observer.
    """

    delivered: int
    dropped: int
    failed: int


class EventQueue:
    """Delivers events to `deliver`, in order, on a daemon thread that starts with the first event.

    `deliver` takes an event and returns the errors that observers raised.
    """

    def __init__(
        self, deliver: Callable[[Event], list[tuple[str, BaseException]]], capacity: int = CAPACITY
    ) -> None:
        self._deliver = deliver
        self._queue: queue.Queue[Event] = queue.Queue(capacity)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._delivered = 0
        self._dropped = 0
        self._failed = 0
        self._complained: set[str] = set()

    def publish(self, event: Event) -> None:
        """Queue `event`; a full queue drops it. Never waits and never raises."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            with self._lock:
                self._dropped += 1
            return
        if self._thread is None:
            self._start()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all events so far are delivered; False if that takes more than `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self._queue.all_tasks_done:
            while self._queue.unfinished_tasks:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._queue.all_tasks_done.wait(left)
        return True

    def counts(self) -> EventCounts:
        """Return the counts since this process began."""
        with self._lock:
            return EventCounts(self._delivered, self._dropped, self._failed)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lockgate-events", daemon=True)
                self._thread.start()
                atexit.register(self.flush, LAST_WAIT)

    def _run(self) -> None:
        while True:
            event = self._queue.get()
            try:
                self._hand_over(event)
            finally:
                self._queue.task_done()

    def _hand_over(self, event: Event) -> None:
        errors = self._deliver(event)
        with self._lock:
            self._delivered += 1
            self._failed += len(errors)
        for plugin, error in errors:
            # Once for each plugin: a broken observer would fill the log with every event.
            if plugin not in self._complained:
                self._complained.add(plugin)
                _log.warning(
                    "plugin %r failed to observe %s: %s: %s; later failures are only counted",
                    plugin,
                    type(event).__name__,
                    type(error).__name__,
                    error,
                )
