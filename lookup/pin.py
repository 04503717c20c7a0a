"""The system table `t$pin`: one row, the snapshot that a lookup on `t` answers this batch from.

Beside it stands what the progress of a stream tells of the cache.

Spark plans a scan of it once for each micro-batch, which is the one moment when the driver can choose for
all of the batch's tasks.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import InputError, LookupCacheError
from lockgate.framework.types import BIGINT, DataField
from lockgate.lookup.counting import pack
from lockgate.lookup.pins import forget_ended
from lockgate.lookup.reports import REPORTS, report_of
from lockgate.lookup.shuffle import pin_groups
from lockgate.lookup.spec import LookupSpec, cache_id
from lockgate.lookup.strategy import snapshot_for_spark

if TYPE_CHECKING:
    from lockgate.framework.plugins import BridgeContext
    from lockgate.framework.store.table import Table

# The read option that carries the lookup's spec.
SPEC_OPTION = "lookup.spec"
# The read option that carries the id of the cache which the workers were told to ask.
CACHE_OPTION = "lookup.cache-id"
# The read option that says who answers: `cache`, or `spark`, for which nothing needs to be cached.
ANSWER_OPTION = "lookup.answer"
# The read option with the number of groups that `lookup.shuffle` makes of the buckets.
GROUPS_OPTION = "lookup.groups"
SNAPSHOT_COLUMN = "snapshot_id"
_STATE_COLUMNS = ("lag_millis", "cache_rows", "cache_bytes", "build_millis", "failures")


class PinTable:
    """Implements `lockgate.framework.plugins.SystemTable`."""

    def schema(self, context: BridgeContext, table: Table) -> list[DataField]:
        """The snapshot's id, and of the state: how far it is behind, rows, bytes, time to build, failures."""
        names = (SNAPSHOT_COLUMN, *_STATE_COLUMNS)
        return [DataField(number, name, BIGINT) for number, name in enumerate(names)]

    def rows(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> pa.Table:
        """Choose the batch's snapshot, waiting until it is cached; raises as `service.Lookup.pin` does.

        Raises LookupCacheError if the dimension is another one than the join was planned with.
        """
        from lockgate.lookup.cluster import site_for
        from lockgate.lookup.running import lookup_for

        if SPEC_OPTION not in options:
            raise InputError(f"{table.identifier}$pin is read by lookup joins only")
        spec = LookupSpec.from_json(json.loads(options[SPEC_OPTION]))
        planned = options.get(CACHE_OPTION)
        if planned is not None and planned != cache_id(table, spec):
            # The workers ask the cache of then, where a snapshot of this number may be another state.
            raise LookupCacheError(
                f"the lookup on {table.identifier} was planned with another table, other columns or other "
                "keys: it was dropped and created again, altered, or the keys held have changed; start the "
                "query again"
            )
        query = properties.get("query_id")
        batch = None if properties.get("batch_id") is None else int(properties["batch_id"] or 0)
        if options.get(ANSWER_OPTION) == "spark":
            return _row(*snapshot_for_spark(table, spec, query, batch), 0)
        _forget_ended_queries(context.spark, query)
        catalog = context.catalog(context.request["catalog"])
        site = functools.partial(site_for, context.spark)
        if GROUPS_OPTION in options:
            groups = int(options[GROUPS_OPTION])
            lookup_id, report = pin_groups(catalog, table, spec, groups, query, batch, site)
        else:
            lookup = lookup_for(catalog, table, spec, site)
            snapshot_id = lookup.pin(query, batch)
            lookup_id, report = lookup.id, report_of(lookup.status(), query, batch, snapshot_id)
        token = REPORTS.planned(lookup_id, report)
        return _row(
            pack(report.snapshot_id, token),
            report.lag_millis,
            report.cache_rows,
            report.cache_bytes,
            round(report.build_seconds * 1000),
            report.failures,
        )


def _forget_ended_queries(spark: Any, asking: str | None) -> None:
    # Of all the sessions of this driver.
    running = spark._jsparkSession.sharedState().activeStreamingQueries()
    uuid = spark._jvm.java.util.UUID

    def runs(query_id: str) -> bool:
        return query_id == asking or bool(running.containsKey(uuid.fromString(query_id)))

    forget_ended(runs)


def _row(*values: int) -> pa.Table:
    names = (SNAPSHOT_COLUMN, *_STATE_COLUMNS)
    return pa.table({name: pa.array([value], pa.int64()) for name, value in zip(names, values, strict=True)})
