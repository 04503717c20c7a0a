"""The snapshot of each micro-batch, recorded in the table so that a retried batch gets the same
one.

A pin is a Paimon consumer of the dimension: it keeps snapshot expiry from removing what the batch reads,
survives the driver, and every engine respects it. Its name holds the query, the lookup, the batch, and the
mark of the snapshot (`version_info.mark_of`): after a rollback another snapshot may have its number.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.plugins import StreamProgressed, publish
from lockgate.lookup.spec.status import Pin

if TYPE_CHECKING:
    from lockgate.framework.store import Table

_PREFIX = "lockgate-"
# Ends the name of a pin on the state before the first snapshot, for which consumers have no number.
_EMPTY = ".empty"
# A batch may be planned again until the next one is planned, so the one before the current stays.
_KEPT_BATCHES = 2

_shared: weakref.WeakValueDictionary[tuple[str, str], PinnedSnapshots] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def shared_pinned_snapshots(table: Table, lookup_id: str) -> PinnedSnapshots:
    """Return the pins that all lookups of this process on one cache share.

    So two lookups that differ only in their options give a batch one snapshot.
    """
    with _shared_lock:
        key = (table.location, lookup_id)
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = PinnedSnapshots(table, lookup_id)
        return found


def forget_ended(runs: Callable[[str], bool]) -> None:
    """Stop renewing the pins of this process's queries that no longer run, according to `runs`.

    They stay for as long as those of a driver that has ended, so that the query may start again.
    """
    with _shared_lock:
        caches = list(_shared.values())
    for pins in caches:
        for query_id in pins.queries():
            if not runs(query_id):
                pins.forget(query_id)


def gone(batch: str, snapshot: str, consumer: str, error: SnapshotNotFoundError) -> SnapshotNotFoundError:
    """Return the error for a batch that is planned again after the snapshot of its pin is gone."""
    return SnapshotNotFoundError(
        f"{batch} is answered from {snapshot}, as it was before, and that is gone: {error}. Remove its "
        f"consumer {consumer!r} of the table to answer it from the newest snapshot"
    )


class _Pinned(NamedTuple):
    snapshot_id: int
    # None: a driver of an older version did not note it.
    mark: int | None


class PinnedSnapshots:
    """The pins of one lookup (`lookup_id`) on its table; all methods may be called from any thread."""

    def __init__(self, table: Table, lookup_id: str) -> None:
        self._table = table
        self._lookup_id = lookup_id
        self._lock = threading.Lock()
        self._by_query: dict[str, dict[int, _Pinned]] = {}

    def get(self, query_id: str, batch_id: int) -> int | None:
        """Return the snapshot that this batch was given before, by this driver or by one before it."""
        with self._lock:
            found = self._known(query_id).get(batch_id)
            return None if found is None else found.snapshot_id

    def mark(self, query_id: str, batch_id: int) -> int | None:
        """Return the mark that distinguishes the batch's snapshot from others of its number; None if the pin
        has none.
        """
        with self._lock:
            found = self._known(query_id).get(batch_id)
            return None if found is None else found.mark

    def record(self, query_id: str, batch_id: int, snapshot_id: int, mark: int | None = None) -> None:
        """Give a snapshot to a batch, and drop the pins of batches that are committed by now."""
        with self._lock:
            batches = self._known(query_id)
            pinned = batches[batch_id] = _Pinned(snapshot_id, mark)
            self._table.record_consumer(self._name(query_id, batch_id, pinned), max(snapshot_id, 1))
            for old in [batch for batch in batches if batch <= batch_id - _KEPT_BATCHES]:
                self._table.delete_consumer(self._name(query_id, old, batches.pop(old)))
        publish(
            StreamProgressed(
                query=query_id,
                batch=batch_id,
                table=self._table.location,
                use="lookup",
                snapshot_id=snapshot_id,
            )
        )

    def name_of(self, query_id: str, batch_id: int) -> str:
        """Return the consumer that is a batch's pin on a snapshot."""
        with self._lock:
            return self._name(query_id, batch_id, self._known(query_id).get(batch_id, _Pinned(1, None)))

    def queries(self) -> list[str]:
        """Return the queries whose pins this process renews."""
        with self._lock:
            return list(self._by_query)

    def forget(self, query_id: str) -> None:
        """Stop renewing a query's pins; if it asks again, they are found in the table."""
        with self._lock:
            self._by_query.pop(query_id, None)

    def snapshots(self) -> set[int]:
        """Return every snapshot that a batch of this driver's queries still holds."""
        with self._lock:
            return {pinned.snapshot_id for batches in self._by_query.values() for pinned in batches.values()}

    def all(self) -> tuple[Pin, ...]:
        """Return the pins of this driver's queries, by query and batch."""
        with self._lock:
            return tuple(
                Pin(query, batch, pinned.snapshot_id)
                for query, batches in self._by_query.items()
                for batch, pinned in sorted(batches.items())
            )

    def renew(self, retention_seconds: float) -> list[str]:
        """Renew the pins of this driver's queries, and drop those that nobody has renewed for so long.

        Returns the consumers dropped. A driver that lives renews its pins; otherwise the last pins of a
        query that never runs again would keep their snapshot for ever.
        """
        with self._lock:
            for query, batches in self._by_query.items():
                for batch, pinned in batches.items():
                    name = self._name(query, batch, pinned)
                    self._table.record_consumer(name, max(pinned.snapshot_id, 1))
            own = {f"{_PREFIX}{query}-" for query in self._by_query}
        # The store tells both the age of consumers and the time: a driver's clock may be ahead.
        oldest = self._table.snapshot_files.now_millis() - retention_seconds * 1000
        dropped = [
            name
            for name, noted in self._table.consumer_times().items()
            if name.startswith(_PREFIX) and noted < oldest and not name.startswith(tuple(own))
        ]
        return [name for name in dropped if self._table.delete_consumer(name)]

    def _known(self, query_id: str) -> dict[int, _Pinned]:
        if query_id not in self._by_query:
            start = self._start(query_id)
            found = {}
            for name, snapshot in self._table.consumers().items():
                batch, _, mark = name.removeprefix(start).removesuffix(_EMPTY).partition(".")
                if name.startswith(start) and batch.isdigit():
                    number = 0 if name.endswith(_EMPTY) else snapshot
                    found[int(batch)] = _Pinned(number, int(mark) if mark.isdigit() else None)
            self._by_query[query_id] = found
        return self._by_query[query_id]

    def _start(self, query_id: str) -> str:
        return f"{_PREFIX}{query_id}-{self._lookup_id}-"

    def _name(self, query_id: str, batch_id: int, pinned: _Pinned) -> str:
        mark = f".{pinned.mark}" if pinned.mark else ""
        return f"{self._start(query_id)}{batch_id}{mark if pinned.snapshot_id else _EMPTY}"
