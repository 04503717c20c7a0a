"""A suite for authors of sources: subclass it in your tests, and pytest runs it against your source."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import ColumnNotFoundError
from lockgate.pushdown import (
    Aggregate,
    Function,
    Predicate,
    SortKey,
    SupportsAggregatePushDown,
    SupportsFilterPushDown,
    SupportsLimitPushDown,
    SupportsProjectionPushDown,
    SupportsRuntimeFilterPushDown,
    SupportsTopNPushDown,
    all_of,
    count,
    largest,
    smallest,
    to_arrow_expression,
)


class PushDownConformance:
    """Tests for sources that take over filters, also those of run time, columns, a limit, an order or
    aggregates.

    Implement `source`, `read` and `filters`, and `answers` if the source takes over aggregates. A test for an
    ability that the source lacks passes without asking anything; at least one ability is required.
    """

    def source(self) -> Any:
        """Return a fresh source, over the same rows each time."""
        raise NotImplementedError

    def read(self, source: Any) -> pa.Table:
        """Return the rows that an engine would get of the source, with what it has taken over applied."""
        raise NotImplementedError

    def filters(self) -> list[Predicate]:
        """Return some filters that fit the rows, none of which keeps all of them."""
        raise NotImplementedError

    def answers(self, source: Any) -> pa.Table:
        """Return what the source answers to the aggregates that it has taken over.

        The columns are those of the grouping, then one for each aggregate; without a grouping it is one row.
        """
        raise NotImplementedError

    def test_the_source_has_an_ability(self) -> None:
        """A source without any ability takes over nothing."""
        abilities = (
            SupportsFilterPushDown,
            SupportsProjectionPushDown,
            SupportsLimitPushDown,
            SupportsRuntimeFilterPushDown,
            SupportsTopNPushDown,
            SupportsAggregatePushDown,
        )
        assert isinstance(self.source(), abilities)

    def test_every_filter_is_answered(self) -> None:
        """Each filter is accepted or remains, also one that could not be expressed."""
        source = self.source()
        if isinstance(source, SupportsFilterPushDown):
            asked = [*self.filters(), None]
            answer = source.apply_filters(asked)
            remaining = {item.index for item in answer.remaining}
            assert {item.index for item in answer.accepted} | remaining == set(range(len(asked)))
            assert len(asked) - 1 in remaining, "None cannot be accepted"
            assert all(item.reason for item in answer.remaining), "each remaining filter has a reason"

    def test_no_guaranteed_filter_is_broken_and_no_matching_row_is_lost(self) -> None:
        """Alone and together, filters leave what they must and take away only what they may."""
        every = self.read(self.source())
        for filters in ([], *([each] for each in self.filters()), self.filters()):
            source = self.source()
            if not isinstance(source, SupportsFilterPushDown):
                return
            answer = source.apply_filters(filters)
            found = self.read(source)
            assert _matching(found, answer.guaranteed) == found.num_rows, filters
            wanted = all_of(*filters)
            assert _matching(found, wanted) == _matching(every, wanted), filters

    def test_filters_of_run_time_lose_no_row_that_passes(self) -> None:
        """Filters that come late only leave out rows that fail them."""
        wanted = all_of(*self.filters())
        every = self.read(self.source())
        source = self.source()
        if isinstance(source, SupportsRuntimeFilterPushDown):
            assert set(source.runtime_filter_columns()) <= set(every.column_names)
            source.apply_runtime_filters(self.filters())
            assert _matching(self.read(source), wanted) == _matching(every, wanted)

    def test_the_columns_that_were_promised_come(self) -> None:
        """A projection returns the columns it names, and refuses unknown ones."""
        source = self.source()
        if isinstance(source, SupportsProjectionPushDown):
            name = self.read(self.source()).column_names[-1]
            assert source.apply_projection([(name,)]).columns == ((name,),)
            assert self.read(source).column_names == [name]
            try:
                self.source().apply_projection([("no such column",)])
            except ColumnNotFoundError:
                return
            raise AssertionError("an unknown column must raise ColumnNotFoundError")

    def test_a_limit_is_kept_and_loses_nothing_else(self) -> None:
        """A guaranteed limit is never exceeded; any limit leaves as many rows as there are to return."""
        count = self.read(self.source()).num_rows
        for limit in (0, 1, count, count + 1):
            source = self.source()
            if not isinstance(source, SupportsLimitPushDown):
                return
            answer = source.apply_limit(limit)
            found = self.read(source).num_rows
            assert found >= min(limit, count)
            assert not answer.guaranteed or found <= limit

    def test_no_row_among_the_first_of_an_order_is_lost(self) -> None:
        """Sorted again, the rows that come begin as all rows do, in each direction and with nulls at each
        end.
        """
        every = self.read(self.source())
        for name in _sortable(every):
            for descending, nulls_first in product((False, True), repeat=2):
                key = SortKey((name,), descending, nulls_first)
                for limit in (1, 2, every.num_rows + 1):
                    source = self.source()
                    if not isinstance(source, SupportsTopNPushDown):
                        return
                    source.apply_top_n([key], limit)
                    assert _first(self.read(source), key, limit) == _first(every, key, limit), (key, limit)

    def test_aggregates_are_those_of_the_rows(self) -> None:
        """Aggregates that the source takes over equal those of the rows it returns otherwise."""
        every = self.read(self.source())
        names = _sortable(every)
        asked = [count(), *(make(name) for name in names for make in (count, smallest, largest))]
        offers = [([each], group) for each in asked for group in ((), *((name,) for name in names))]
        for aggregates, group in [*offers, (asked, ())]:
            source = self.source()
            if not isinstance(source, SupportsAggregatePushDown):
                return
            answer = source.apply_aggregates(aggregates, [(name,) for name in group])
            assert set(answer.accepted) <= set(aggregates)
            assert len(answer.accepted) + len(answer.remaining) == len(aggregates), "each is answered once"
            assert all(item.reason for item in answer.remaining), "each remaining aggregate has a reason"
            if answer.applied:
                found = [tuple(row.values()) for row in self.answers(source).to_pylist()]
                assert Counter(found) == _aggregated(every, aggregates, group), (aggregates, group)


def _sortable(rows: pa.Table) -> list[str]:
    """Return the columns whose values have one order everywhere: NaN, lists and maps have none."""
    kinds = pa.types
    return [
        field.name
        for field in rows.schema
        if not (
            kinds.is_nested(field.type)
            or (kinds.is_floating(field.type) and pc.any(pc.is_nan(rows[field.name])).as_py())
        )
    ]


def _first(rows: pa.Table, key: SortKey, limit: int) -> list[Any]:
    """Return the values of a sort key in the first rows; rows that are equal in it have no order."""
    values = rows[key.field[0]].to_pylist()
    nulls = [value for value in values if value is None]
    others = sorted((value for value in values if value is not None), reverse=key.descending)
    return (nulls + others if key.nulls_first else others + nulls)[:limit]


def _aggregated(rows: pa.Table, aggregates: list[Aggregate], group: tuple[str, ...]) -> Counter[Any]:
    """Return the rows of a grouping and its aggregates; without a grouping there is one row."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {} if group else {(): []}
    for row in rows.to_pylist():
        groups.setdefault(tuple(row[name] for name in group), []).append(row)
    return Counter(
        (*key, *(_aggregate(members, each) for each in aggregates)) for key, members in groups.items()
    )


def _aggregate(rows: list[dict[str, Any]], aggregate: Aggregate) -> Any:
    if aggregate.field is None:
        return len(rows)
    values = [row[aggregate.field[0]] for row in rows if row[aggregate.field[0]] is not None]
    if aggregate.function is Function.COUNT:
        return len(values)
    return (min if aggregate.function is Function.MIN else max)(values, default=None)


def _matching(rows: pa.Table, predicate: Predicate) -> int:
    return int(rows.filter(to_arrow_expression(predicate, rows.schema)).num_rows)
