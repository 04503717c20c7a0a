"""A scan takes over filters, columns, limits, orders and aggregates as `lockgate.pushdown` says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog
from lockgate.framework.store.scan.table_scan import TableScan
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.table import Table
from lockgate.pushdown import (
    Aggregate,
    FilterPushDown,
    Function,
    Predicate,
    SortKey,
    SupportsAggregatePushDown,
    SupportsFilterPushDown,
    SupportsLimitPushDown,
    SupportsProjectionPushDown,
    SupportsTopNPushDown,
    col,
)
from lockgate.pushdown.conformance import PushDownConformance

ROWS = pa.table({"day": ["a", "b", "b", "c"], "id": [1, 2, 3, 4], "v": [7, None, 9, 1]})


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    """A table with partitions and a primary key."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_namespace("db")
        layout = {"primary_keys": ["day", "id"], "partition_keys": ["day"], "options": {"bucket": "1"}}
        made = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema, **layout))  # type: ignore[arg-type]  # keywords of several types
        for place in range(4):
            made.append(ROWS.slice(place, 1))
        yield made


class TestConformance(PushDownConformance):
    """The suite for authors of sources, on a table's own scan."""

    @pytest.fixture(autouse=True)
    def _table(self, table: Table) -> None:
        self.table = table

    def source(self) -> TableScan:
        return TableScan(self.table)

    def read(self, source: TableScan) -> pa.Table:
        return self.table.read(source.plan())

    def filters(self) -> list[Predicate]:
        return [col("day") == "b", col("v") > 5, col("v").is_null(), ~(col("id") == 2)]


class _Broken(PushDownConformance):
    """A source that guarantees what it does not do."""

    rows = ROWS

    class Source:
        def apply_filters(self, filters: Sequence[Predicate | None]) -> FilterPushDown:
            from lockgate.pushdown import split_filters

            return split_filters(
                filters, ROWS.schema, guaranteed=lambda each: True, why_remaining=lambda each: ""
            )

    def source(self) -> Any:
        return self.Source()

    def read(self, source: Any) -> pa.Table:
        return ROWS

    def filters(self) -> list[Predicate]:
        return [col("v") > 5]


def test_the_suite_finds_a_source_that_promises_too_much() -> None:
    with pytest.raises(AssertionError):
        _Broken().test_no_guaranteed_filter_is_broken_and_no_matching_row_is_lost()


def test_a_scan_has_every_ability(table: Table) -> None:
    for ability in (
        SupportsFilterPushDown,
        SupportsProjectionPushDown,
        SupportsLimitPushDown,
        SupportsTopNPushDown,
        SupportsAggregatePushDown,
    ):
        assert isinstance(TableScan(table), ability)


def test_abilities_add_up(table: Table) -> None:
    scan = TableScan(table)
    assert [item.guaranteed for item in scan.apply_filters([col("day") == "b"]).accepted] == [True]
    scan.apply_projection([("id",)])
    assert scan.apply_top_n([SortKey(("id",), descending=True)], 1).applied
    plan = scan.plan()
    assert [split.partition for split in plan.splits] == [{"day": "b"}]
    assert table.read(plan).column_names == ["id"]


def test_aggregates_say_what_metadata_answers(table: Table) -> None:
    scan = TableScan(table)
    answer = scan.apply_aggregates([Aggregate(Function.MAX, ("day",)), Aggregate(Function.MIN, ("v",))])
    assert {item.text for item in answer.remaining} == {"MAX(day)", "MIN(v)"}
    assert all(item.reason for item in answer.remaining)
    nested = TableScan(table).apply_top_n([SortKey(("a", "b"))], 1)
    assert not nested.applied
    assert nested.reason
