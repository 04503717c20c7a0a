"""`lookup.shuffle`: the stream's rows go to tasks by the table's buckets, and each cache holds some buckets.

The caches are those of groups of buckets: bucket b is in group b modulo their number. A task gets the rows of
one group, and asks the cache of that one alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lockgate.errors import InputError
from lockgate.lookup.driver.cache_hosts import LocalCacheHost
from lockgate.lookup.driver.lookup_registry import lookup_for
from lockgate.lookup.driver.pinned_snapshots import shared_pinned_snapshots
from lockgate.lookup.driver.reports import report_of
from lockgate.lookup.spec.lookup_options import lookup_options
from lockgate.lookup.spec.lookup_spec import pin_id

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog, Table
    from lockgate.lookup.driver.cache_hosts import CacheHost
    from lockgate.lookup.driver.pinned_snapshots import PinnedSnapshots
    from lockgate.lookup.spec.lookup_spec import LookupSpec
    from lockgate.lookup.spec.status import BatchReport

# Held while the driver runs: they know the snapshot of each batch.
_pinned_snapshots: dict[tuple[str, str], PinnedSnapshots] = {}


@dataclass(frozen=True)
class Buckets:
    """Distribution of a table's rows: so many buckets, by these columns of the dimension."""

    count: int
    keys: tuple[str, ...]


def buckets_for(table: Table, spec: LookupSpec) -> Buckets | None:
    """Return the buckets to shuffle by, None unless `lookup.shuffle` is set.

    Raises InputError for a table without fixed buckets, or one whose bucket key the join does not cover.
    """
    if not lookup_options(table.options, spec.options).shuffle:
        return None
    count = int(table.schema.options.get("bucket", "-1"))
    keys = table.schema.bucket_keys
    if count < 1 or not keys:
        raise InputError(
            "lookup.shuffle needs a table with a fixed number of buckets and a bucket key; "
            f"{spec.identifier} has bucket={count}"
        )
    missing = [key for key in keys if key not in spec.keys]
    if missing:
        raise InputError(
            f"lookup.shuffle needs a join by the whole bucket key of {spec.identifier} ({', '.join(keys)}); "
            f"on= lacks {', '.join(missing)}"
        )
    return Buckets(count, keys)


def grouped(spec: LookupSpec, groups: int) -> list[LookupSpec]:
    """Return the lookups of the groups, in their order."""
    return [replace(spec, group=(number, groups)) for number in range(groups)]


def pin_groups(
    catalog: Catalog,
    table: Table,
    spec: LookupSpec,
    groups: int,
    query_id: str | None,
    batch_id: int | None,
    cache_host: Callable[[], CacheHost] = LocalCacheHost,
    runs: Callable[[], bool] | None = None,
) -> tuple[str, BatchReport, int]:
    """Choose one snapshot for a batch that all groups' caches have; as `service.Lookup.pin` does for one.

    Returns the id of the first group's cache, the batch's report, with rows and bytes of all groups, and the
    snapshot's mark.
    """
    pins = shared_pinned_snapshots(table, pin_id(table, spec))
    _pinned_snapshots[table.location, pin_id(table, spec)] = pins
    lookups = [lookup_for(catalog, table, each, cache_host, runs) for each in grouped(spec, groups)]
    pinned = None if query_id is None or batch_id is None else pins.get(query_id, batch_id)
    mark = None if pinned is None else pins.mark(query_id or "", batch_id or 0)
    if pinned is None:
        pinned, mark = min(lookup.choose(None, None) for lookup in lookups)
        if query_id is not None and batch_id is not None:
            pins.record(query_id, batch_id, pinned, mark)
    mark = max(lookup.provide(pinned, mark) for lookup in lookups)
    reports = [report_of(lookup.status(), query_id, batch_id, pinned) for lookup in lookups]
    combined = replace(
        reports[0],
        lag_millis=max(report.lag_millis for report in reports),
        cache_rows=sum(report.cache_rows for report in reports),
        cache_bytes=sum(report.cache_bytes for report in reports),
        build_seconds=max(report.build_seconds for report in reports),
        failures=max(report.failures for report in reports),
    )
    return lookups[0].id, combined, mark
