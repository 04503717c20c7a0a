"""The system table `t$pin`: one row, the snapshot that a lookup on `t` answers this batch from.

It also holds the cache's figures for the progress of a stream.

Spark plans a scan of it once for each micro-batch, which is the one moment when the driver can choose for
all of the batch's tasks.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import InputError, LookupCacheError
from lockgate.framework.access import AccessRequest, Action, Target
from lockgate.framework.options import Option, at_least, one_of
from lockgate.framework.plugins import current_principal, plugins
from lockgate.framework.spark import fault_in, java_class, shape_of
from lockgate.framework.store import grant
from lockgate.framework.types import BIGINT, DataField, row
from lockgate.lookup.driver.batch_counts import pack
from lockgate.lookup.driver.pinned_snapshots import forget_ended
from lockgate.lookup.driver.reports import REPORTS, report_of
from lockgate.lookup.join.shuffle import pin_groups
from lockgate.lookup.join.strategy import snapshot_for_spark
from lockgate.lookup.spec.lookup_spec import LookupSpec, SpecJson, cache_id
from lockgate.lookup.spec.planned_schema import governed_as_planned, planned_table

if TYPE_CHECKING:
    from lockgate.framework.plugins import BridgeContext
    from lockgate.framework.store import Table
    from lockgate.lookup.driver.cache_hosts import CacheHost

# The read option that carries the lookup's spec.
SPEC_OPTION = "lookup.spec"
# The read option with the id of the cache that the workers ask.
CACHE_OPTION = "lookup.cache-id"
# The read options with the table and the schema that the lookup was planned with.
TABLE_OPTION = "lookup.table-id"
SCHEMA_OPTION = "lookup.schema-id"
# The read option that says who answers: `cache`, or `spark`, which needs no cache.
ANSWER_OPTION = "lookup.answer"
# The read option with the number of groups that `lookup.shuffle` makes of the buckets.
GROUPS_OPTION = "lookup.groups"
_SPEC = shape_of(SpecJson)
READ_OPTIONS = (
    Option(SPEC_OPTION, str, "", "what a lookup join reads"),
    Option(CACHE_OPTION, str, "", "the cache that the workers of a lookup join ask"),
    Option(TABLE_OPTION, str, "", "the table that a lookup join was planned with"),
    Option(SCHEMA_OPTION, at_least(0), 0, "the schema that a lookup join was planned with"),
    Option(ANSWER_OPTION, one_of("cache", "spark"), "cache", "who answers a lookup join"),
    Option(GROUPS_OPTION, at_least(1), 1, "groups of buckets that a shuffled lookup join makes"),
)
# The one column of the table, and the members of it; the mark tells the snapshot from others of its number.
PIN_COLUMN = "pin"
SNAPSHOT_MEMBER = "snapshot_id"
MARK_MEMBER = "mark"
STATE_MEMBERS = ("lag_millis", "cache_rows", "cache_bytes", "build_millis", "failures")
_MEMBERS = (SNAPSHOT_MEMBER, *STATE_MEMBERS, MARK_MEMBER)


# How often pins of ended queries are looked for.
_FORGET_SECONDS = 1.0
_forgot_at = -math.inf


class PinTable:
    """Implements `lockgate.plugins.SystemTable`, and `SnapshotSource`."""

    single_row = True
    authorizes = True

    def schema(self, context: BridgeContext, table: Table) -> list[DataField]:
        """Return one struct: the snapshot's id, how far it is behind, rows, bytes, time to build, failures,
        mark.
        """
        members = tuple(DataField(number, name, BIGINT) for number, name in enumerate(_MEMBERS, 1))
        return [DataField(0, PIN_COLUMN, row(members))]

    def snapshot_id(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> int:
        """Return the snapshot of `rows`, for scans of a join that Spark makes itself."""
        pinned = self.rows(context, table, options, properties)
        return int(pinned.column(PIN_COLUMN)[0].as_py()[SNAPSHOT_MEMBER])

    def rows(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> pa.Table:
        """Choose the batch's snapshot, waiting until it is cached; raises as `service.Lookup.pin` does.

        Raises LookupCacheError if the dimension is another one than the join was planned with, and
        AccessDeniedError if the one who joins may not read the columns of the join.
        """
        from lockgate.lookup.driver.lookup_registry import lookup_for

        if SPEC_OPTION not in options:
            raise InputError(f"{table.identifier}$pin is read by lookup joins only")
        table, spec = _planned(table, options)
        planned = options.get(CACHE_OPTION)
        if planned is not None and planned != cache_id(table, spec):
            raise _other_rights(table)
        catalog = context.catalog(context.request["catalog"])
        query = properties.get("query_id")
        batch = None if properties.get("batch_id") is None else int(properties["batch_id"] or 0)
        if options.get(ANSWER_OPTION) == "spark":
            return _row(*snapshot_for_spark(table, spec, query, batch), 0, 0)
        _forget_ended_queries(context, query)
        runs = _execution(context) if query is None else None
        cache_host = functools.partial(_cache_host, context)
        if GROUPS_OPTION in options:
            groups = int(options[GROUPS_OPTION])
            lookup_id, report, mark = pin_groups(catalog, table, spec, groups, query, batch, cache_host, runs)
        else:
            lookup = lookup_for(catalog, table, spec, cache_host, runs)
            snapshot_id, mark = lookup.choose(query, batch)
            lookup_id, report = lookup.id, report_of(lookup.status(), query, batch, snapshot_id)
        token = REPORTS.planned(lookup_id, report)
        return _row(
            pack(report.snapshot_id, token),
            report.lag_millis,
            report.cache_rows,
            report.cache_bytes,
            round(report.build_seconds * 1000),
            report.failures,
            mark,
        )


def _written(text: str) -> SpecJson:
    """Read the option of a query, without rights; InputError if no lookup join wrote it."""
    try:
        found: SpecJson = json.loads(text)
        fault = fault_in(_SPEC, found)
    except (ValueError, RecursionError):
        fault = "it is not JSON"
    if fault is not None:
        raise InputError(f"the read option {SPEC_OPTION} is not what a lookup join writes: {fault}")
    return {**found, "rights": None}


def _planned(newest: Table, options: Mapping[str, str]) -> tuple[Table, LookupSpec]:
    """Return the table as the lookup was planned with it, and the lookup with the rights of the caller."""
    spec = LookupSpec.from_json(_written(options[SPEC_OPTION]))
    table = newest
    if TABLE_OPTION in options and SCHEMA_OPTION in options:
        table = planned_table(newest, options[TABLE_OPTION], int(options[SCHEMA_OPTION]), spec)
    if options.get(ANSWER_OPTION) != "spark":
        return table, governed_as_planned(newest, table, spec)
    _check_table(newest)
    return table, spec


def _check_table(table: Table) -> None:
    """Ask whether anything of a table may be read, which is joined by a scan with rights of its own."""
    if not plugins().decides_access():
        return
    types = {field.name: str(field.type) for field in table.schema.fields}
    named = table.identifier
    target = Target("table", f"{named.namespace}.{named.table}", named.branch, table.location)
    request = AccessRequest(current_principal(), Action.SELECT, target, frozenset(types))
    if plugins().authorize_sql(request, types, records=False).apply_for:
        grant(table, Action.SELECT)


def _other_rights(table: Table) -> LookupCacheError:
    # The workers ask the planned cache, which holds what other keys and rights show.
    return LookupCacheError(
        f"the lookup on {table.identifier} was planned with other keys or rights: the keys held or the "
        "policies have changed, another user planned it, or the table has moved; start the query again"
    )


def _cache_host(context: BridgeContext) -> CacheHost:
    from lockgate.lookup.driver.cluster import cache_host_for

    return cache_host_for(context.spark)


def _execution(context: BridgeContext) -> Callable[[], bool]:
    """Return a function that says whether the query that asks still runs."""
    spark: Any = context.spark
    number = spark.sparkContext.getLocalProperty("spark.sql.execution.id")

    def runs() -> bool:
        if number is None:  # it is only analysed or shown
            return False
        try:
            executions = java_class(spark, "org.apache.spark.sql.execution.SQLExecution")
            return executions.getQueryExecution(int(number)) is not None
        except Exception:  # the application has ended
            return False

    return runs


def _forget_ended_queries(context: BridgeContext, asking: str | None) -> None:
    """Let go of the pins of queries that have ended, at most once a second: it takes calls of the JVM."""
    global _forgot_at
    if time.monotonic() - _forgot_at < _FORGET_SECONDS:
        return
    _forgot_at = time.monotonic()

    def runs(query_id: str) -> bool:
        if query_id == asking:
            return True
        # Of all the sessions of this driver.
        spark: Any = context.spark
        running = spark._jsparkSession.sharedState().activeStreamingQueries()
        return bool(running.containsKey(java_class(spark, "java.util.UUID").fromString(query_id)))

    forget_ended(runs)


def _row(*values: int) -> pa.Table:
    kind = pa.struct([(name, pa.int64()) for name in _MEMBERS])
    return pa.table({PIN_COLUMN: pa.array([dict(zip(_MEMBERS, values, strict=True))], kind)})
