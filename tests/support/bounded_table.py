"""A table with bounds of its manifests: rows that follow the order of writes, and what plans open."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.pushdown import Predicate, to_arrow_expression

OPTIONS = {"index.bounds.columns": "at,size,name", "manifest.merge-min-count": "100"}
COLUMNS = pa.schema(
    [("at", pa.timestamp("us")), ("size", pa.int32()), ("name", pa.string()), ("day", pa.int32())]
)
START = datetime.datetime(2026, 1, 1)


def rows(number: int, count: int = 5) -> pa.Table:
    numbers = [number * count + each for each in range(count)]
    return pa.table(
        {
            "at": [START + datetime.timedelta(hours=each) for each in numbers],
            "size": pa.array([None if each % 4 == 3 else each for each in numbers], pa.int32()),
            "name": [f"name-{each:04}" for each in numbers],
            "day": pa.array([number % 3] * count, pa.int32()),
        },
        schema=COLUMNS,
    )


def make(catalog: Catalog, options: dict[str, str] | None = None, **more: Any) -> Table:
    given = OPTIONS if options is None else options
    return catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=given, **more))


def fill(table: Table, commits: int) -> None:
    for number in range(commits):
        table.append(rows(number))


def plan(table: Table, predicate: Predicate, **more: Any) -> ScanPlan:
    return plan_scan(table, ReadRequest(predicate=predicate, **more))


def opened(table: Table, predicate: Predicate, **more: Any) -> int:
    """The manifests that a plan opens, as its report says."""
    report = plan(table, predicate, **more).report
    if report.steps[0].name != "manifests":
        return report.manifests
    return int(report.steps[0].by.rpartition("(")[2].split()[0])


def check(table: Table, predicate: Predicate) -> None:
    every = table.read()
    wanted = every.filter(to_arrow_expression(predicate, every.schema))
    found = table.read(predicate=predicate)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
