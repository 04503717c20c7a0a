"""Consumers of running streams: each keeps the snapshots that its query has yet to read from expiry.

A consumer is a file in the table, as Paimon's `ConsumerManager` writes it. A driver that lives renews those
of its queries, so that `consumer.expiration-time` ends only those of queries that no longer run.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from lockgate.errors import LockgateError

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

RENEWAL_SECONDS = 20.0
"""Seconds after which a consumer is noted again; less where the table's option forgets it earlier."""

_log = logging.getLogger("lockgate.streams")


class StreamConsumers:
    """The consumers of this process's streams; all methods may be called from any thread."""

    def __init__(self, renewal_seconds: float = RENEWAL_SECONDS) -> None:
        self._renewal_seconds = renewal_seconds
        self._lock = threading.Lock()
        # By query, and by the folder of the table and the name of the consumer.
        self._noted: dict[str, dict[tuple[str, str], tuple[TableHandle, int]]] = {}
        self._thread: threading.Thread | None = None
        self._changed = threading.Event()

    def record(self, query: str, table: TableHandle, name: str, next_snapshot: int) -> None:
        """Note what a query reads next, and go on noting it until `forget`."""
        key = (table.branch_location, name)
        with self._lock:
            consumers = self._noted.setdefault(query, {})
            earlier = consumers.get(key)
            consumers[key] = (table, next_snapshot)
            if earlier is None or earlier[1] != next_snapshot:
                table.consumer_files.record(name, next_snapshot)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._renew_always, name="lockgate-stream-consumers", daemon=True
                )
                self._thread.start()
        self._changed.set()

    def keep(self, query: str, table: TableHandle, name: str, next_snapshot: int) -> None:
        """Note what a query reads next, unless it is noted already: what it has read stays as it is."""
        with self._lock:
            earlier = (table.branch_location, name) in self._noted.get(query, {})
        if not earlier:
            self.record(query, table, name, next_snapshot)

    def forget(self, query: str) -> None:
        """Stop renewing the consumers of a query; their files stay, so that the query may start again."""
        with self._lock:
            self._noted.pop(query, None)

    def names(self) -> list[str]:
        """Return the consumers that this process renews."""
        with self._lock:
            return sorted(name for consumers in self._noted.values() for _, name in consumers)

    def renew(self) -> None:
        """Note all consumers again, those too that somebody has removed."""
        with self._lock:
            # Under the lock, so that nothing older overwrites what a query notes.
            for (_, name), (table, next_snapshot) in self._all():
                try:
                    table.consumer_files.record(name, next_snapshot)
                except (OSError, LockgateError):
                    _log.warning("consumer %s of %s was not renewed", name, table.identifier, exc_info=True)

    def _all(self) -> list[tuple[tuple[str, str], tuple[TableHandle, int]]]:
        return [each for consumers in self._noted.values() for each in consumers.items()]

    def _renew_always(self) -> None:
        while True:
            self._changed.wait(self._pause())
            if self._changed.is_set():
                self._changed.clear()
                continue
            self.renew()

    def _pause(self) -> float:
        from lockgate.framework import options as table_options

        with self._lock:
            ages = [
                table.options.get_option(table_options.CONSUMER_EXPIRATION) for _, (table, _) in self._all()
            ]
        shortest = min((age.total_seconds() for age in ages if age), default=3 * self._renewal_seconds)
        return min(self._renewal_seconds, shortest / 3)
