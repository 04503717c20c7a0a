"""Column edges that lineage has of queries: asked for by the reasons that they ran for."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from lineage_edges import spread

from lockgate.framework.lineage.model.edge_kinds import kind_names
from lockgate.framework.lineage.pending_statements import wait_for_records
from lockgate.framework.lineage.warehouse_lineage import lineage_of

if TYPE_CHECKING:
    from lockgate import Lake

Edges = dict[str, set[str]]
REASON = "spark.lockgate.lineage.reason"


def asked(lake: Lake, statements: list[str]) -> list[Edges]:
    """Run queries; return for each what every column comes from: `table.column kind`, and rows as `*`."""
    tag = str(random.random())
    try:
        for number, sql in enumerate(statements):
            lake.spark.conf.set(REASON, f"{tag} {number}")
            lake.sql(sql).collect()
    finally:
        lake.spark.conf.unset(REASON)
    wait_for_records(lake.spark)
    with lineage_of(lake.catalog).reading() as index:
        spread(index)
        return [_edges(index, f"{tag} {number}") for number in range(len(statements))]


def _edges(index: Any, reason: str) -> Edges:
    found: Edges = {}
    rows = (
        index.execute(_COLUMN_EDGES, {"reason": reason}).fetchall()
        + index.execute(_ROW_EDGES, {"reason": reason}).fetchall()
    )
    for target, table, source, kinds in rows:
        for kind in kind_names(kinds):
            found.setdefault(target, set()).add(f"{table.rpartition('.')[2]}.{source} {kind}")
    return found


_OF = "p.id IN (SELECT process FROM run WHERE json_extract(run, '$.why.reason') = :reason)"
_COLUMN_EDGES = (
    "SELECT t.name, d.name, s.name, e.kinds FROM back e JOIN process p ON p.id = e.process "
    "JOIN field t ON t.id = e.target JOIN field s ON s.id = e.source JOIN dataset d ON d.id = s.dataset "
    f"WHERE {_OF}"
)
_ROW_EDGES = (
    "SELECT '*', d.name, s.name, e.kinds FROM row_edge e JOIN process p ON p.id = e.process "
    f"JOIN field s ON s.id = e.source JOIN dataset d ON d.id = s.dataset WHERE {_OF}"
)
