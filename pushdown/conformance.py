"""A suite for authors of sources: subclass it in your tests, and pytest runs it against your source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.errors import ColumnNotFoundError
from lockgate.pushdown.abilities import (
    SupportsFilterPushDown,
    SupportsLimitPushDown,
    SupportsProjectionPushDown,
    SupportsRuntimeFilterPushDown,
)
from lockgate.pushdown.arrow import to_arrow_expression
from lockgate.pushdown.predicates import Predicate, all_of


class PushDownConformance:
    """Tests for sources that take over filters, also those of run time, columns or a limit.

    Implement `source`, `read` and `filters`. A test for an ability that the source lacks passes without
    asking anything; at least one ability is required.
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

    def test_the_source_has_an_ability(self) -> None:
        """A source without any ability takes over nothing."""
        abilities = (
            SupportsFilterPushDown,
            SupportsProjectionPushDown,
            SupportsLimitPushDown,
            SupportsRuntimeFilterPushDown,
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


def _matching(rows: pa.Table, predicate: Predicate) -> int:
    return int(rows.filter(to_arrow_expression(predicate, rows.schema)).num_rows)
