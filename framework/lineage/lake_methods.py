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
    """Return what `db.table` or `db.table.column` comes from (`back`), or what is made of it (`forward`).

    `direction` may be `both`; `depth` counts edges; `kinds` is `direct`, `plain`, `all` or a list of kinds;
    `db.table@7.column` asks for a snapshot. Statements that have ended by now are in it, tables that you
    may not read are not. Raises InputError, NotFoundError and AccessDeniedError.
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
    """Return counts of executions: seen, recorded, dropped, failed, cut, opaque, and those of this lake.

    `elsewhere` counts statements that touched no warehouse of Lockgate, `waiting_to_be_written` shapes that
    are not in the warehouse yet, `lost` records that could not be written for too long; `sent` and `unsent`
    count records for sinks, where a plugin has any.
    """
    found: dict[str, Any] = json.loads(
        java_class(lake.spark, "io.lockgate.spark.lineage.LineageListener").status()
    )
    journal = lineage_of(lake.catalog).journal
    sinks = process_sinks()
    handed = {} if sinks is None else {"sent": sinks.delivered, "unsent": sinks.dropped}
    own = {"lost": journal.lost, "waiting_to_be_written": journal.waiting(), "elsewhere": counts.elsewhere}
    return {**found, **own, **handed}
