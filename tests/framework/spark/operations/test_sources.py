"""Operations on scans know a source by its abilities alone: one of another make serves them as well."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from messages import declared, request

from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.store import Catalog
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.scan.metadata_aggregates import AggregateAnswer
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.table import Table
from lockgate.framework.testing.source_suite import PushDownConformance
from lockgate.pushdown import (
    Accepted,
    Aggregate,
    AggregatePushDown,
    FieldPath,
    FilterPushDown,
    Function,
    LimitPushDown,
    Predicate,
    ProjectionPushDown,
    Remaining,
    RemainingAggregate,
    ScanReport,
    SortKey,
    TopNPushDown,
    all_of,
    col,
    to_json,
)

ROWS = pa.table({"day": ["a", "b", "b", "c"], "id": [1, 2, 3, 4], "v": [7, None, 9, 1]})


class FirstFilterOnly:
    """A source that skips files by the first filter alone, stops at no limit, and counts by reading rows."""

    def __init__(self, table: TableHandle, request: ReadRequest) -> None:
        self.table, self.request = table, request
        self.offered: list[str] = []
        self.answer: AggregateAnswer | None = None

    def apply_filters(self, filters: Sequence[Predicate | None]) -> FilterPushDown:
        used = [each for each in filters[:1] if each is not None]
        self.request = replace(self.request, predicate=all_of(*used))
        accepted = tuple(Accepted(0, each, False) for each in used)
        remaining = [Remaining(at, each, "another source") for at, each in enumerate(filters)]
        return FilterPushDown(accepted, tuple(remaining))

    def runtime_filter_columns(self) -> list[str]:
        return ["v"]

    def apply_runtime_filters(self, filters: Sequence[Predicate]) -> None:
        self.offered += ["run time" for _ in filters]

    @property
    def supports_nested_projection(self) -> bool:
        return False

    def apply_projection(self, paths: Sequence[FieldPath]) -> ProjectionPushDown:
        for path in paths:
            self.table.schema.field(path[0])
        self.request = replace(self.request, columns=tuple(path[0] for path in paths))
        return ProjectionPushDown(tuple(paths))

    def apply_limit(self, limit: int) -> LimitPushDown:
        self.offered.append(f"limit {limit}")
        return LimitPushDown(applied=False, guaranteed=False, reason="another source")

    def apply_top_n(self, order: Sequence[SortKey], limit: int) -> TopNPushDown:
        self.offered.append(f"first {limit}")
        return TopNPushDown(False, "another source")

    def apply_aggregates(
        self, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath] = ()
    ) -> AggregatePushDown:
        self.offered += [str(each) for each in aggregates]
        own = [each for each in aggregates if each.function is Function.COUNT and not group_by]
        others = [each for each in aggregates if each not in own]
        remaining = tuple(RemainingAggregate(str(each), "another source") for each in others)
        found = AggregatePushDown(tuple(own), remaining)
        counts = None if others else pa.table({str(each): [self._count(each.field)] for each in own})
        self.answer = AggregateAnswer(found, counts, ScanReport("db.t", 1, all_columns=("id",)))
        return found

    def _count(self, field: FieldPath | None) -> int:
        assert isinstance(self.table, Table)
        rows = self.table.read(plan_scan(self.table, replace(self.request, columns=None)))
        return int(rows.num_rows - (rows[field[0]].null_count if field else 0))

    def aggregates(self) -> AggregateAnswer:
        assert self.answer is not None
        return self.answer

    def plan(self) -> ScanPlan:
        return plan_scan(self.table, self.request)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    """A table with a file a day."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema, partition_keys=["day"]))
        made.append(ROWS)
        yield made


class TestConformance(PushDownConformance):
    """The suite for authors of sources holds of this one."""

    @pytest.fixture(autouse=True)
    def _table(self, table: Table) -> None:
        self.table = table

    def source(self) -> FirstFilterOnly:
        return FirstFilterOnly(self.table, ReadRequest())

    def read(self, source: FirstFilterOnly) -> pa.Table:
        return self.table.read(source.plan())

    def answers(self, source: FirstFilterOnly) -> pa.Table:
        return source.aggregates().rows

    def filters(self) -> list[Predicate]:
        return [col("day") == "b", col("v") > 5]


class Asked:
    """A dispatcher whose scans are of the other make, and the scans that it began."""

    def __init__(self, table: Table) -> None:
        self.begun: list[FirstFilterOnly] = []
        self.dispatcher = Dispatcher(self._source)
        warehouse = str(Path(table.location).parents[1])
        opened: Any = self.dispatcher.answer(
            "catalog.open", request("catalog.open", {"catalog": "lake", "options": {"warehouse": warehouse}})
        )
        self.about = {"catalog": opened["handle"], "catalog_name": "lake", "namespace": ["db"], "name": "t"}

    def _source(self, table: TableHandle, request: ReadRequest) -> FirstFilterOnly:
        self.begun.append(FirstFilterOnly(table, request))
        return self.begun[-1]

    def __call__(self, operation: str, **given: Any) -> Any:
        scan = {**self.about, "scan_id": "s", "snapshot_id": 1, **given}
        return self.dispatcher.answer(operation, declared(operation, scan))


@pytest.fixture
def ask(table: Table) -> Asked:
    """Ask operations of a dispatcher whose scans are of the other make."""
    return Asked(table)


DAY, VALUE = to_json(col("day") == "b"), to_json(col("v") > 5)


def test_filters_are_answered_by_the_source(ask: Asked) -> None:
    answer = ask(
        "scan.filters", filters=[VALUE, DAY, {"op": "?", "text": "rand()"}], texts=["", "", "rand()"]
    )
    # Lockgate's own scan would guarantee the filter of the partition.
    assert answer == {"accepted": [0], "remaining": [0, 1, 2]}


@pytest.mark.parametrize(("filters", "days"), [([DAY], {"b"}), ([VALUE, DAY], {"a", "b"}), ([], {*"abc"})])
def test_files_are_those_of_the_source(ask: Asked, filters: list[Any], days: set[str]) -> None:
    planned = ask("scan.plan", filters=filters, columns=["id"], limit=1)
    assert {split["partition"]["day"] for split in planned["splits"]} == days
    assert ask.begun[-1].offered == ["limit 1"]


def test_orders_and_late_filters_are_offered_to_the_source(ask: Asked) -> None:
    key = {"text": "v", "expression": {"col": ["v"]}, "descending": False, "nulls_first": True}
    ask("scan.plan", columns=["id"], limit=2, order=[key], runtime_filters=[DAY], changes_rows=True)
    assert ask.begun[-1].offered == ["run time", "first 2"]
    assert ask("scan.selective", columns=["id", "v"]) == ["v"]


def test_aggregates_are_those_of_the_source(ask: Asked) -> None:
    count = {"op": "COUNT", "args": [{"col": ["v"]}]}
    found = ask("scan.aggregates", aggregates=[count])["found"]
    assert found["rows"] == [[3]]
    assert ask.begun[-1].offered == ["COUNT(v)"]
