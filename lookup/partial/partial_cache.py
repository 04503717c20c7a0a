"""The cache of a partial lookup: rows of the keys that were asked for, as they are at its newest snapshot.

Rows never expire by time. A step to the next snapshot drops the keys that it changed, so that what is kept,
also that a key has no row, is true of the newest snapshot. An older one shares what has not changed since.
Whatever the cache does not know is read from the snapshot that is asked for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lockgate.errors import SnapshotNotFoundError
from lockgate.lookup.cache.backends import FoundRows
from lockgate.lookup.cache.builder import fingerprint
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.partial.cached_rows import CachedRows
from lockgate.lookup.partial.key_reader import KeyReader
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot, Table

# Changed keys that are remembered, of all steps together; of more, older snapshots share nothing.
_MOST_CHANGED = 1 << 20
_MOST_STEPS = 64


@dataclass(frozen=True)
class SnapshotName:
    """A snapshot by its number, and what tells it from others of that number."""

    id: int
    fingerprint: str

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotName:
        """Return the name of a snapshot."""
        return cls(snapshot.id, fingerprint(snapshot))


@dataclass(frozen=True)
class _Step:
    """The keys that changed after `before`, up to the snapshot of the next step."""

    before: SnapshotName
    changed: frozenset[bytes]


class RowReader(Protocol):
    """Reads what the cache does not know: from the table's files, or by asking a query service."""

    def read(self, snapshot: Snapshot, keys: Rows) -> dict[bytes, bytes]:
        """Return the encoded rows of encoded keys, by key; a key without a row is not among them."""

    def close(self) -> None:
        """Release connections."""


class PartialCache:
    """Answers keys from any snapshot of one table; all methods may be called from any thread."""

    def __init__(
        self, table: Table, spec: LookupSpec, layout: CacheLayout, reader: RowReader | None = None
    ) -> None:
        self._table = table
        self._layout = layout
        self._reader = reader or KeyReader(table, spec, layout)
        self._options = lookup_options(table.options, spec.options)
        self._rows = CachedRows(self._options.partial_max)
        self._newest: SnapshotName | None = None
        self._steps: deque[_Step] = deque(maxlen=_MOST_STEPS)
        self._lock = threading.Lock()
        self._reading = threading.Lock()

    @property
    def size(self) -> int:
        """The memory that keys and rows take, about."""
        return self._rows.size

    def __len__(self) -> int:
        return len(self._rows)

    def close(self) -> None:
        """Release what rows are read from."""
        self._reader.close()

    # --- following the table -------------------------------------------------------------------------

    def advance(self, target: Snapshot) -> int:
        """Make a snapshot the newest one, unless it is older; returns how many keys changed on the way."""
        wanted, before = SnapshotName.of(target), self._newest
        if before is not None and before.id >= wanted.id and self._is_there(before):
            return 0
        steps = None if before is None else self._steps_between(before, target)
        with self._lock:
            if steps is None:
                self._rows.clear()
                self._steps.clear()
                steps = []
            for step in steps:
                self._rows.drop(step.changed)
                self._steps.append(step)
            while sum(len(step.changed) for step in self._steps) > _MOST_CHANGED:
                self._steps.popleft()
            self._newest = wanted
        return sum(len(step.changed) for step in steps)

    def _is_there(self, name: SnapshotName) -> bool:
        try:
            return SnapshotName.of(self._table.snapshot(name.id)) == name
        except SnapshotNotFoundError:
            return False

    def _steps_between(self, before: SnapshotName, target: Snapshot) -> list[_Step] | None:
        # None: what has changed is not told.
        if not self._is_there(before) or target.id - before.id > self._options.full_load_threshold:
            return None
        steps: list[_Step] = []
        names = list(self._layout.key_schema.names)
        try:
            for change in self._table.changes(before.id, target.id, columns=names):
                if change.needs_reload:
                    return None
                rows = change.rows.select(names).combine_chunks()
                changed: set[bytes] = set()
                for batch in rows.to_batches():
                    changed.update(self._layout.key_codec.encode(batch.columns).rows.to_bytes())
                steps.append(_Step(before, frozenset(changed)))
                before = SnapshotName.of(self._table.snapshot(change.snapshot_id))
        except SnapshotNotFoundError:
            return None
        return steps

    # --- answering -----------------------------------------------------------------------------------

    def find(self, name: SnapshotName, keys: Rows) -> list[bytes]:
        """Return the encoded rows of distinct keys at a snapshot, empty where there is none.

        Raises SnapshotNotFoundError if the snapshot is gone, also where another one has its number since, and
        the errors of reading.
        """
        asked = keys.to_bytes()
        found = self._kept(name, asked)
        if None not in found:
            return [value or b"" for value in found]
        with self._reading:  # tasks of a batch miss the same keys at the same time
            found = self._kept(name, asked)
            missed = [number for number, value in enumerate(found) if value is None]
            if missed:
                snapshot = self._table.snapshot(name.id)
                if SnapshotName.of(snapshot) != name:
                    raise SnapshotNotFoundError(
                        f"snapshot {name.id} of {self._table.identifier} was rolled back, and another has "
                        "its number since"
                    )
                rows = self._reader.read(snapshot, keys.take(np.array(missed)))
                fresh = {asked[number]: rows.get(asked[number], b"") for number in missed}
                for number in missed:
                    found[number] = fresh[asked[number]]
                self._keep(name, fresh)
        return [value or b"" for value in found]

    def _kept(self, name: SnapshotName, asked: list[bytes]) -> list[bytes | None]:
        with self._lock:
            changed = self._changed_since(name)
            if changed is None:
                return [None] * len(asked)
            found = self._rows.get(asked)
        if changed:
            found = [None if key in changed else value for key, value in zip(asked, found, strict=True)]
        return found

    def _keep(self, name: SnapshotName, fresh: dict[bytes, bytes]) -> None:
        with self._lock:
            changed = self._changed_since(name)
            if changed is not None:
                self._rows.put({key: value for key, value in fresh.items() if key not in changed})

    def _changed_since(self, name: SnapshotName) -> Collection[bytes] | None:
        """Return the keys that changed from a snapshot to the newest one; None if that is not known."""
        if name == self._newest:
            return ()
        steps = list(self._steps)
        for number, step in enumerate(steps):
            if step.before == name:
                return frozenset().union(*(each.changed for each in steps[number:]))
        return None


class LocalReader:
    """A `backends.Reader` of one snapshot in the process of the cache."""

    def __init__(self, cache: PartialCache, name: SnapshotName) -> None:
        self._cache = cache
        self._name = name

    def find(self, keys: Rows) -> list[FoundRows]:
        """Find the values of distinct keys."""
        return found_rows(Rows.from_values(self._cache.find(self._name, keys))) if len(keys) else []

    def close(self) -> None:
        """Do nothing: the cache stays."""


def found_rows(values: Rows) -> list[FoundRows]:
    """Return the values that are not empty, with the numbers of their keys."""
    at = np.flatnonzero(values.lengths)
    return [FoundRows(at, values.take(at))] if len(at) else []
