"""Which snapshot each micro-batch uses, remembered beside the table so that a retried batch gets the same
one.

A pin is a Paimon consumer of the dimension: it keeps snapshot expiry from removing what the batch reads,
survives the driver, and every engine respects it. Its name holds the query, the lookup and the batch.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from lockgate.lookup.standing import Pin

if TYPE_CHECKING:
    from lockgate.framework.store.table import Table

_PREFIX = "lockgate-"
# Ends the name of a pin on the state before the first snapshot, which a consumer has no number for.
_EMPTY = ".empty"
# A batch may be planned again until the next one is: one before the current stays.
_KEPT_BATCHES = 2

_shared: weakref.WeakValueDictionary[tuple[str, str], Pins] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def shared_pins(table: Table, lookup_id: str) -> Pins:
    """Return the pins that all lookups of this process on one cache share.

    Two lookups that differ in their options only give a batch one snapshot thereby.
    """
    with _shared_lock:
        key = (table.location, lookup_id)
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = Pins(table, lookup_id)
        return found


def forget_ended(runs: Callable[[str], bool]) -> None:
    """Renew the pins of queries no more that this process ran and that do not run now, as `runs` says.

    They stay for as long as those of a driver that has ended, so that the query may start again.
    """
    with _shared_lock:
        known = list(_shared.values())
    for pins in known:
        for query_id in pins.queries():
            if not runs(query_id):
                pins.forget(query_id)


class Pins:
    """The pins of one lookup (`lookup_id`) on its table; all methods may be called from any thread."""

    def __init__(self, table: Table, lookup_id: str) -> None:
        self._table = table
        self._lookup_id = lookup_id
        self._lock = threading.Lock()
        self._by_query: dict[str, dict[int, int]] = {}

    def get(self, query_id: str, batch_id: int) -> int | None:
        """The snapshot that this batch was given before, by this driver or by one before it."""
        with self._lock:
            return self._known(query_id).get(batch_id)

    def record(self, query_id: str, batch_id: int, snapshot_id: int) -> None:
        """Give a snapshot to a batch, and drop the pins of batches that are committed by now."""
        with self._lock:
            known = self._known(query_id)
            self._table.record_consumer(self._name(query_id, batch_id, snapshot_id), max(snapshot_id, 1))
            known[batch_id] = snapshot_id
            for old in [batch for batch in known if batch <= batch_id - _KEPT_BATCHES]:
                self._table.delete_consumer(self._name(query_id, old, known.pop(old)))

    def name_of(self, query_id: str, batch_id: int) -> str:
        """The consumer that is a batch's pin on a snapshot."""
        return self._name(query_id, batch_id, 1)

    def queries(self) -> list[str]:
        """The queries whose pins this process renews."""
        with self._lock:
            return list(self._by_query)

    def forget(self, query_id: str) -> None:
        """Renew a query's pins no more; if it asks again, they are found beside the table."""
        with self._lock:
            self._by_query.pop(query_id, None)

    def snapshots(self) -> set[int]:
        """Every snapshot that a batch of this driver's queries still holds."""
        with self._lock:
            return {snapshot for batches in self._by_query.values() for snapshot in batches.values()}

    def all(self) -> tuple[Pin, ...]:
        """The pins of this driver's queries, by query and batch."""
        with self._lock:
            return tuple(
                Pin(query, batch, snapshot)
                for query, batches in self._by_query.items()
                for batch, snapshot in sorted(batches.items())
            )

    def renew(self, retention_seconds: float) -> list[str]:
        """Note the pins of this driver's queries again, and drop those that nobody noted for so long.

        Returns the consumers dropped. A driver that lives renews its pins; the last ones of a query that
        never runs again would keep their snapshot from expiry for ever.
        """
        with self._lock:
            for query, batches in self._by_query.items():
                for batch, snapshot in batches.items():
                    self._table.record_consumer(self._name(query, batch, snapshot), max(snapshot, 1))
            own = {f"{_PREFIX}{query}-" for query in self._by_query}
        oldest = time.time_ns() // 1_000_000 - retention_seconds * 1000
        dropped = [
            name
            for name, noted in self._table.consumer_times().items()
            if name.startswith(_PREFIX) and noted < oldest and not name.startswith(tuple(own))
        ]
        return [name for name in dropped if self._table.delete_consumer(name)]

    def _known(self, query_id: str) -> dict[int, int]:
        if query_id not in self._by_query:
            start = self._start(query_id)
            found = {}
            for name, snapshot in self._table.consumers().items():
                batch = name.removeprefix(start).removesuffix(_EMPTY)
                if name.startswith(start) and batch.isdigit():
                    found[int(batch)] = 0 if name.endswith(_EMPTY) else snapshot
            self._by_query[query_id] = found
        return self._by_query[query_id]

    def _start(self, query_id: str) -> str:
        return f"{_PREFIX}{query_id}-{self._lookup_id}-"

    def _name(self, query_id: str, batch_id: int, snapshot_id: int) -> str:
        return f"{self._start(query_id)}{batch_id}{'' if snapshot_id else _EMPTY}"
