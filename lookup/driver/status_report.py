"""The status of a running lookup, put together for people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lockgate.lookup.spec.status import HostStatus, LookupStatus, Pin

if TYPE_CHECKING:
    from lockgate.lookup.driver.hosts import Hosts
    from lockgate.lookup.driver.refresher import Refresher
    from lockgate.lookup.spec.lookup_spec import LookupSpec


def status_of(
    spec: LookupSpec,
    refresher: Refresher,
    hosts: Hosts,
    *,
    directory: str,
    local: bool,
    pins: tuple[Pin, ...],
    asked_rows: int,
    hit_rows: int,
) -> LookupStatus:
    """Return the status of a lookup, to be called under its condition.

    `directory` is where its cache is on this host, or would be if it is not `local`.
    """
    served, target = refresher.serving.info, refresher.target
    of_hosts = tuple(host.status() for host in hosts.all())
    loading = min((h for h in of_hosts if h.loading_rows is not None), key=_rows_loaded, default=None)
    error, failures = refresher.trouble()
    return LookupStatus(
        table=spec.identifier,
        keys=spec.keys,
        directory=directory if local or not of_hosts else of_hosts[0].directory,
        target_snapshot=None if target is None else target.id,
        served_snapshot=None if served is None else served.snapshot_id,
        lag_millis=_lag_millis(refresher),
        rows=0 if served is None else served.rows,
        bytes=0 if served is None else max(served.bytes, sum(host.bytes for host in of_hosts)),
        build_seconds=0.0 if served is None else served.build_seconds,
        built_millis=0 if served is None else served.built_millis,
        full_load=served is not None and served.full_load,
        loading_rows=None if loading is None else loading.loading_rows,
        expected_rows=None if loading is None else loading.expected_rows,
        last_error=error,
        failures=failures,
        owner_pid=of_hosts[0].owner_pid if of_hosts else None,
        owner_restarts=sum(host.owner_restarts for host in of_hosts),
        pins=pins,
        asked_rows=asked_rows,
        hit_rows=hit_rows,
        hosts=of_hosts,
    )


def _lag_millis(refresher: Refresher) -> int:
    target = refresher.target
    if target is None or refresher.serving.is_at(target):
        return 0
    # Where commits are many, the newest may be young, but the served one old.
    waited = int(time.time() * 1000) - target.time_millis
    return max(0, waited, round(refresher.serving.behind_seconds() * 1000))


def _rows_loaded(host: HostStatus) -> int:
    return host.loading_rows or 0
