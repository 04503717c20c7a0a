"""`compact`: fewer, larger files; in tables with a primary key, one run of sorted files without deletions."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Annotated

from lockgate.errors import InputError, nearest
from lockgate.framework.options import CLUSTERING_INCREMENTAL
from lockgate.framework.store import Table, check_writable
from lockgate.framework.store.maintenance import CompactRequest, RowOrder, compact
from lockgate.procedures.arguments import (
    Partitions,
    Where,
    parse_options,
    parse_selection,
    with_options,
)
from lockgate.procedures.builtin.compact.order_engine import spark_order
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import Int, TableName, TypedProcedure

_STRATEGIES = ("full", "minor")
# Options that may differ for one call: how files are written, not what is in them.
_OPTIONS = ("target-file-size", "file.compression", "orc.compress", "metadata.stats-mode")


@dataclass(frozen=True)
class CompactArguments:
    """What to compact, and how."""

    table: TableName
    partitions: Partitions = None
    compact_strategy: Annotated[
        str | None,
        "`full`: every file that can be improved; `minor`: only buckets with five or more small files or "
        "runs, and in an order only files that no compaction has written (default: `full`, or `minor` with "
        "`clustering.incremental`)",
    ] = None
    order_strategy: Annotated[
        str | None,
        "order of rows in append tables: `order` sorts by columns, `zorder` and `hilbert` along a curve "
        "through them, `none` leaves them as they were written (default: as `clustering.*` say)",
    ] = None
    order_by: Annotated[str | None, "the columns of the order, comma-separated"] = None
    options: Annotated[
        str | None,
        "`key=value,...` for this call: `target-file-size`, `file.compression`, `orc.compress`, "
        "`metadata.stats-mode`",
    ] = None
    dry_run: Annotated[bool, "only count; counts not known in advance are NULL"] = False
    where: Where = None
    partition_idle_time: Annotated[
        str | None,
        "only partitions whose newest files are older: `1 h`; not together with `order_strategy` (default: "
        "all)",
    ] = None
    order_engine: Annotated[
        str,
        "where rows are ordered: `python`: in the process that is called; `spark`: by Spark's tasks; "
        "`auto`: by these in a Spark session, for buckets of more than four million rows",
    ] = "auto"


@dataclass(frozen=True)
class _Row:
    buckets: Annotated[Int, "buckets with files to rewrite"]
    files_rewritten: Annotated[int, "files removed and added"]
    files_written: int | None
    files_before: Annotated[int, "files of the chosen partitions"]
    files_after: int | None
    bytes_before: Annotated[int, "their size"]
    bytes_after: int | None
    rows_before: Annotated[
        int, "their rows, not merged: overwritten and deleted rows count until they are removed"
    ]
    rows_after: int | None
    snapshot_id: Annotated[int | None, "the new snapshot; NULL if there was nothing to do"]
    pruned_share_before: Annotated[
        float | None,
        "share of files that the bounds of a value leave out, on average over the columns of the order; "
        "NULL without an order",
    ]
    pruned_share_after: float | None
    pruned_share_bound: Annotated[
        float | None, "the same for a perfect curve: 1 - N^(-1/d) for N files and d columns"
    ]


class Compact(TypedProcedure[CompactArguments, _Row]):
    """Rewrite small or overlapping files of a table into fewer, sorted ones."""

    name = "compact"

    def run(self, context: ProcedureContext, arguments: CompactArguments) -> list[_Row]:
        """Compact; results ending in `_before` and `_after` count the chosen partitions as a whole."""
        table = context.table(arguments.table)
        order = RowOrder.of(table, arguments.order_strategy, arguments.order_by)
        if order is not None and order.is_given and arguments.partition_idle_time:
            raise InputError("partition_idle_time cannot be used with order_strategy")
        full = _is_full(table, arguments.compact_strategy, order)
        table = with_options(table, parse_options(arguments.options), _OPTIONS)
        check_writable(table.schema)
        request = CompactRequest(
            chosen=parse_selection(arguments.partitions, arguments.where, table.schema),
            full=full,
            order=order,
            partition_idle_time=arguments.partition_idle_time,
            order_engine=spark_order(context, order, arguments.order_engine),
            dry_run=arguments.dry_run,
            report=context.report,
        )
        return [_Row(*astuple(compact(table, request)))]


def _is_full(table: Table, text: str | None, order: RowOrder | None) -> bool:
    if text is None:
        is_new_only = order is not None and table.schema.table_options.get_option(CLUSTERING_INCREMENTAL)
        return not is_new_only
    if text.lower() not in _STRATEGIES:
        raise InputError(f"compact_strategy cannot be {text!r}{nearest(text, _STRATEGIES)}")
    return text.lower() == "full"
