"""A table with an index database: rows of one file each, what plans keep, and full scans to compare with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.framework.index.database.index_segments import entries_of
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Predicate, to_arrow_expression

COLUMNS = [("id", pa.int64()), ("host", pa.string()), ("size", pa.float64()), ("day", pa.int32())]
OPTIONS = {"index.values.columns": "host,size,id"}
HOSTS = ["a", "m", "z"]


def make(catalog: Catalog, options: dict[str, str] | None = None, **more: Any) -> Table:
    schema = Schema.from_arrow(pa.schema(COLUMNS), options=OPTIONS if options is None else options, **more)
    return catalog.create_table("db.t", schema)


def rows(number: int, count: int = 30) -> pa.Table:
    """Rows with a host of their own, between those that all files have."""
    numbers = range(number * count, (number + 1) * count)
    hosts = [*HOSTS, f"host-{number}"]
    return pa.table(
        {
            "id": pa.array([n * 7919 % 1009 for n in numbers], pa.int64()),
            "host": [None if n % 7 == 6 else hosts[n % 4] for n in numbers],
            "size": [float(n % 5) if n % 6 else float("nan") for n in numbers],
            "day": pa.array([number % 3 for _ in numbers], pa.int32()),
        }
    )


def fill(table: Table, files: int = 5) -> None:
    for number in range(files):
        table.append(rows(number))


def plan(table: Table, predicate: Predicate, **more: Any) -> ScanPlan:
    return plan_scan(table, ReadRequest(predicate=predicate, **more))


def kept(table: Table, predicate: Predicate, **more: Any) -> int:
    return sum(len(split.files) for split in plan(table, predicate, **more).splits)


def segments(table: Table) -> list[Any]:
    return entries_of(table, table.latest_snapshot())


def found(table: Table, predicate: Predicate | None = None, **more: Any) -> list[str]:
    return sorted(map(repr, table.read(predicate=predicate, **more).to_pylist()))


def call(procedure: Any, catalog: Catalog, **arguments: Any) -> tuple[Any, ...]:
    given = {each.name: each.default for each in procedure.parameters} | {"table": "db.t"} | arguments
    (row,) = procedure.call(ProcedureContext(catalog), **given)
    return row


def check(table: Table, predicate: Predicate, **more: Any) -> None:
    """The rows of an indexed scan are those of a full scan and a filter."""
    every = table.read(**more)
    wanted = every.filter(to_arrow_expression(predicate, every.schema))
    assert found(table, predicate, **more) == sorted(map(repr, wanted.to_pylist()))
