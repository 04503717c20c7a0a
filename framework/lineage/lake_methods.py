"""Methods that lineage adds to every lake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lockgate.framework.lineage.answer import Lineage, answer
from lockgate.framework.lineage.capture import counts
from lockgate.framework.lineage.pending_statements import wait_for_records
from lockgate.framework.lineage.readable import Readable
from lockgate.framework.lineage.sinks import process_sinks
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.spark import java_class

if TYPE_CHECKING:
    from lockgate.framework.spark import Lake


def lineage(
    lake: Lake, name: str, direction: str = "back", depth: int | None = None, kinds: str = "direct"
) -> Lineage:
    """Return the sources of `db.table` or `db.table.column` (`back`), or the columns derived from it
    (`forward`).

    `direction` may be `both`; `depth` counts edges; `kinds` is `direct`, `plain`, `all` or a list of kinds;
    `db.table@7.column` selects a snapshot. The answer includes all ended statements, and omits tables that
    the user may not read. Raises InputError, NotFoundError and AccessDeniedError.
    """
    wait_for_records(lake.spark)
    with lineage_of(lake.catalog).reading() as database:
        may_read = Readable(lake.catalog)
        return answer(
            *(database, name, may_read),
            catalog=lake.name,
            direction=direction,
            depth=depth,
            kinds=kinds,
        )


def lineage_status(lake: Lake) -> dict[str, Any]:
    """Return counts of executions: seen, recorded, dropped, failed, cut, opaque, and more for this lake.

    `elsewhere` counts statements without a warehouse of Lockgate, `waiting_to_be_written` shapes that are
    not in the warehouse yet, `lost` records that were dropped after too many failed writes; `sent` and
    `unsent` count records for sinks, if a plugin has one.
    """
    listener_counts: dict[str, Any] = json.loads(
        java_class(lake.spark, "io.lockgate.spark.lineage.LineageListener").status()
    )
    journal = lineage_of(lake.catalog).journal
    sinks = process_sinks()
    sink_counts = {} if sinks is None else {"sent": sinks.delivered, "unsent": sinks.dropped}
    journal_counts = {
        "lost": journal.lost,
        "waiting_to_be_written": journal.waiting(),
        "elsewhere": counts.elsewhere,
    }
    return {**listener_counts, **journal_counts, **sink_counts}
