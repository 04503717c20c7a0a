"""Calls of procedures as lineage processes, from the events of ended calls."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from lockgate.framework.lineage.model.lineage_records import Dataset, Record, Run, Shape
from lockgate.framework.lineage.model.names import joined
from lockgate.framework.lineage.model.run_reasons import why_of
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.plugins import ProcedureCalled
    from lockgate.framework.store import Catalog

# Procedures that query or maintain lineage.
_LINEAGE_PROCEDURES = frozenset({"lineage", "impact", "plaintext", "compact_lineage"})


def note_call(event: ProcedureCalled, catalog: Catalog) -> None:
    """Record a call in its warehouse; a dry run is marked as one."""
    if event.procedure in _LINEAGE_PROCEDURES or event.confs.get("spark.lockgate.lineage") == "off":
        return
    keep_literals = event.confs.get("spark.lockgate.lineage.literals") == "keep"
    reasons = why_of(
        event.description, event.confs.get("spark.lockgate.lineage.reason"), keep_literals=keep_literals
    )
    target = None if event.table is None else _table(catalog, event.table)
    ended = int(event.at.timestamp() * 1000)
    run = Run(
        started=ended - int(event.seconds * 1000),
        ended=ended,
        failed=int(event.error is not None),
        dry=event.dry_run,
        how=f"CALL sys.{event.procedure}({', '.join(event.arguments)})",
        error=event.error,
        where={"host": socket.gethostname()},
        who={"user": event.user or ""},
        which={"lockgate": VERSION},
        why=reasons,
    )
    lineage_of(catalog).add(Record(Shape("CALL", target, name=event.procedure), run))


def _table(catalog: Catalog, name: str) -> Dataset:
    parts = [part.strip("`") for part in name.split(".")][-2:]
    table_name = ".".join(parts)
    exists = len(parts) == 2 and catalog.table_exists(table_name)
    return Dataset(joined(parts), id=str(catalog.load_table(table_name).table_id) if exists else "")
