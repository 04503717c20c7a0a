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
from lockgate.framework.store.tables.table import Table
from lockgate.framework.testing.source_suite import PushDownConformance
from lockgate.pushdown import (
    Aggregate,
    AggregatePushDown,
    FieldPath,
    FilterPushDown,
    Function,
    Predicate,
    RemainingAggregate,
    SortKey,
    SupportsAggregatePushDown,
    SupportsFilterPushDown,
    SupportsLimitPushDown,
    SupportsProjectionPushDown,
    SupportsTopNPushDown,
    TopNPushDown,
    col,
    count,
)

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

    def answers(self, source: TableScan) -> pa.Table:
        return source.aggregates().rows

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


class _First(PushDownConformance):
    """A source that knows an order and nothing else; it stops after `limit` rows, or sorts before that."""

    class Source:
        def __init__(self, *, sorts: bool) -> None:
            self.rows, self.sorts = ROWS, sorts

        def apply_top_n(self, order: Sequence[SortKey], limit: int) -> TopNPushDown:
            if self.sorts:
                name = order[0].field[0]
                values = ROWS[name].to_pylist()
                places = [place for place, value in enumerate(values) if value is not None]
                places.sort(key=values.__getitem__, reverse=order[0].descending)
                nulls = [place for place, value in enumerate(values) if value is None]
                self.rows = ROWS.take(nulls + places if order[0].nulls_first else places + nulls)
            self.rows = self.rows.slice(0, limit)
            return TopNPushDown(True)

    sorts = True

    def source(self) -> Any:
        return self.Source(sorts=self.sorts)

    def read(self, source: Any) -> pa.Table:
        return source.rows

    def filters(self) -> list[Predicate]:
        return [col("v") > 5]


class TestFirst(_First):
    """The suite holds of a source whose only ability is an order."""


def test_the_suite_finds_a_source_that_loses_one_of_the_first_rows() -> None:
    class Unsorted(_First):
        sorts = False

    with pytest.raises(AssertionError, match="SortKey"):
        Unsorted().test_no_row_among_the_first_of_an_order_is_lost()


class _Counts(PushDownConformance):
    """A source that answers COUNT and nothing else, with `more` rows too many."""

    more = 0

    class Source:
        def apply_aggregates(
            self, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath] = ()
        ) -> AggregatePushDown:
            self.asked = aggregates
            own = [each for each in aggregates if each == count() and not group_by]
            others = [RemainingAggregate(str(each), "not kept") for each in aggregates if each not in own]
            return AggregatePushDown(tuple(own), tuple(others))

    def source(self) -> Any:
        return self.Source()

    def read(self, source: Any) -> pa.Table:
        return ROWS

    def answers(self, source: Any) -> pa.Table:
        return pa.table({str(each): [ROWS.num_rows + self.more] for each in source.asked})

    def filters(self) -> list[Predicate]:
        return [col("v") > 5]


class TestCounts(_Counts):
    """The suite holds of a source whose only ability is an aggregate."""


def test_the_suite_finds_a_source_that_counts_wrongly() -> None:
    class Wrong(_Counts):
        more = 1

    with pytest.raises(AssertionError, match="COUNT"):
        Wrong().test_aggregates_are_those_of_the_rows()


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
