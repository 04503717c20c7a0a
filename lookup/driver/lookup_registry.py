"""The registry of the lookups that this driver runs."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import NotFoundError, nearest
from lockgate.lookup.driver.cache_hosts import LocalCacheHost
from lockgate.lookup.driver.reports import REPORTS
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.spec.lookup_spec import LookupSpec, cache_id
from lockgate.lookup.spec.status import LookupStatus

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog, Table
    from lockgate.lookup.driver.cache_hosts import CacheHost

_lock = threading.Lock()
_lookups: dict[str, Lookup] = {}


def lookup_for(
    catalog: Catalog,
    table: Table,
    spec: LookupSpec,
    cache_host: Callable[[], CacheHost] = LocalCacheHost,
    runs: Callable[[], bool] | None = None,
) -> Lookup:
    """Return the running lookup for a spec, started at a site that `cache_host` makes if it is the first.

    `runs` as for `Lookup.note_use`.
    """
    identity = f"{cache_id(table, spec)}:{sorted(spec.options.items())}"
    with _lock:
        for name in [name for name, lookup in _lookups.items() if lookup.closed]:
            del _lookups[name]
        lookup = _lookups.get(identity)
        if lookup is None or not lookup.touch():
            if not _lookups:
                atexit.register(close_all)
            lookup = _lookups[identity] = Lookup(catalog, table, spec, cache_host())
        lookup.note_use(runs)
        return lookup


def lookups_of(cache: str) -> list[Lookup]:
    """Return the running lookups on the cache of an id (`spec.cache_id`)."""
    with _lock:
        return [lookup for lookup in _lookups.values() if lookup.id == cache and not lookup.closed]


@checked_arguments
def statuses() -> list[LookupStatus]:
    """Return the status of every lookup of this driver, in the order of their start."""
    with _lock:
        running = [lookup for lookup in _lookups.values() if not lookup.closed]
    return [_status(lookup) for lookup in running]


@checked_arguments
def status(table: str) -> LookupStatus:
    """Return the status of the newest lookup on a table, named `db.t` or `lake.db.t`.

    Raises NotFoundError with the nearest names if no lookup on it is running.
    """
    return _status(_running(table))


def _status(lookup: Lookup) -> LookupStatus:
    last = REPORTS.last(lookup.id)  # takes over what was counted, too
    return replace(lookup.status(), last_batch=last)


@checked_arguments
def wait_for(table: str, snapshot_id: int | None = None, timeout: float = 60.0) -> int:
    """Wait until the newest lookup on a table serves a snapshot or a newer one, and return the number it
    serves.

    Without `snapshot_id` it waits for the table's newest snapshot. Raises LookupTimeoutError after `timeout`
    seconds.
    """
    return _running(table).wait_for(snapshot_id, timeout)


def _running(table: str) -> Lookup:
    with _lock:
        running = {lookup.spec.identifier: lookup for lookup in _lookups.values() if not lookup.closed}
    found = running.get(table) or running.get(table.partition(".")[2])
    if found is None:
        raise NotFoundError(f"no lookup on {table!r} is running{nearest(table, running)}")
    found.touch()
    return found


def serving(lookup_id: str) -> int | None:
    """Return the snapshot that the running lookups on a cache give their batches now; None if none does
    yet.
    """
    with _lock:
        running = [lookup for lookup in _lookups.values() if lookup.id == lookup_id and not lookup.closed]
    served = [lookup.status().served_snapshot for lookup in running]
    return max((number for number in served if number is not None), default=None)


@checked_arguments
def close_all() -> None:
    """Stop every lookup of this driver; their caches stay."""
    with _lock:
        running = list(_lookups.values())
        _lookups.clear()
    for lookup in running:
        lookup.close()
