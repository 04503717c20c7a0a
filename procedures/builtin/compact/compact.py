"""`compact`: fewer, larger files; in tables with a primary key, one run of sorted files without deletions."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from lockgate.errors import InputError, nearest
from lockgate.framework.options import CLUSTERING_INCREMENTAL
from lockgate.framework.store import Table, check_writable
from lockgate.framework.store.maintenance import CompactRequest, RowOrder, compact
from lockgate.procedures.arguments import (
    OPTIONS,
    PARTITIONS,
    WHERE,
    parse_options,
    parse_selection,
    with_options,
)
from lockgate.procedures.builtin.compact.order_engine import spark_order
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_STRATEGIES = ("full", "minor")
# Options that may differ for one call: how files are written, not what is in them.
_OPTIONS = ("target-file-size", "file.compression", "orc.compress", "metadata.stats-mode")


class Compact(Procedure):
    """Rewrites the files of a table in a COMPACT snapshot; see `store.maintenance.compact`."""

    name = "compact"
    description = "Rewrite small or overlapping files of a table into fewer, sorted ones."
    parameters = (
        Parameter("table", "STRING", doc="the table, 'database.table'"),
        Parameter("partitions", "STRING", None, PARTITIONS),
        Parameter(
            "compact_strategy",
            "STRING",
            None,
            "'full': every file that can be improved; 'minor': only buckets with five or more small files "
            "or runs, and in an order only files that no compaction has written (default: 'full', or 'minor' "
            "with the option clustering.incremental)",
        ),
        Parameter(
            "order_strategy",
            "STRING",
            None,
            "order of rows in append tables: 'order' by columns, 'zorder' or 'hilbert' along a curve through "
            "them; 'none': as they were written (default: as the options clustering.* say)",
        ),
        Parameter("order_by", "STRING", None, "the columns of the order, comma-separated"),
        Parameter("options", "STRING", None, OPTIONS),
        Parameter(
            "dry_run", "BOOLEAN", False, "only count what would be rewritten; counts of new files are NULL"
        ),
        Parameter("where", "STRING", None, WHERE),
        Parameter(
            "partition_idle_time",
            "STRING",
            None,
            "only partitions whose newest files are older: '1 h' (default: all); not with an order",
        ),
        Parameter(
            "order_engine",
            "STRING",
            "auto",
            "where rows are ordered: 'python': in the process that is called; 'spark': by Spark's tasks; "
            "'auto': by these in a Spark session, for buckets of more than four million rows",
        ),
    )
    result = (
        ("buckets", "INT"),
        ("files_rewritten", "BIGINT"),
        ("files_written", "BIGINT"),
        ("files_before", "BIGINT"),
        ("files_after", "BIGINT"),
        ("bytes_before", "BIGINT"),
        ("bytes_after", "BIGINT"),
        ("rows_before", "BIGINT"),
        ("rows_after", "BIGINT"),
        ("snapshot_id", "BIGINT"),
        ("pruned_share_before", "DOUBLE"),
        ("pruned_share_after", "DOUBLE"),
        ("pruned_share_bound", "DOUBLE"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Compact; results ending in `_before` and `_after` count the chosen partitions as a whole."""
        table = context.table(arguments["table"])
        order = RowOrder.of(table, arguments["order_strategy"], arguments["order_by"])
        if order is not None and order.is_given and arguments["partition_idle_time"]:
            raise InputError("partition_idle_time cannot be used with order_strategy")
        full = _is_full(table, arguments["compact_strategy"], order)
        table = with_options(table, parse_options(arguments["options"]), _OPTIONS)
        check_writable(table.schema)
        request = CompactRequest(
            chosen=parse_selection(arguments["partitions"], arguments["where"], table.schema),
            full=full,
            order=order,
            partition_idle_time=arguments["partition_idle_time"],
            order_engine=spark_order(context, order, arguments["order_engine"]),
            dry_run=arguments["dry_run"],
            report=context.report,
        )
        return [astuple(compact(table, request))]


def _is_full(table: Table, text: str | None, order: RowOrder | None) -> bool:
    if text is None:
        is_new_only = order is not None and table.schema.table_options.get_option(CLUSTERING_INCREMENTAL)
        return not is_new_only
    if text.lower() not in _STRATEGIES:
        raise InputError(f"compact_strategy cannot be {text!r}{nearest(text, _STRATEGIES)}")
    return text.lower() == "full"
