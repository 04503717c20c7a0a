"""Selection of a stripe's row groups that may match, by statistics, Bloom filters and dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import pyarrow as pa

from lockgate.framework.orc.format import bloom
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.orc_statistics import column_statistics
from lockgate.framework.orc.format.stripe import Stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.read.column_groups import ColumnGroups
from lockgate.framework.orc.read.dictionaries import Dictionaries, dictionary_of
from lockgate.framework.orc.read.predicate import RowFilter, leaves, may_be_true
from lockgate.framework.orc.read.read_report import ReadCounter
from lockgate.pushdown import ColumnStatistics as Bounds
from lockgate.pushdown import Comparison, Predicate, may_match

_CPP = 1
# These versions of the C++ writer wrote wrong hashes (ORC-1024), as did those that state no version.
_WRONG_HASHES = frozenset({*(f"1.6.{number}" for number in range(12)), "1.7.0"})

Leaf = Callable[[int, Predicate, Comparison], bool]


class RowGroupSelection:
    """Selects the row groups, out of `count`, in which a filter may be true.

    `column_of` returns the row groups of a column by its number. Without `indexed`, there is no reliable
    index, and the stripe is one row group. For a masked column, the mask is compared.
    """

    def __init__(
        self,
        tail: Tail,
        stripe: Stripe,
        rows: RowFilter,
        column_of: Callable[[int], ColumnGroups],
        count: int,
        *,
        indexed: bool,
        counter: ReadCounter | None,
    ) -> None:
        assert rows.predicate is not None
        self._tail = tail
        self._stripe = stripe
        self._rows = rows
        self._predicate = rows.predicate
        self._column_of = column_of
        self._count = count
        self._indexed = indexed
        self._counter = counter
        self._bounds: dict[tuple[str, int], Bounds | None] = {}
        self._hashes: dict[int, list[int] | None] = {}

    def row_groups(self) -> list[int]:
        """Return the numbers of the selected row groups, ascending."""
        groups = list(range(self._count))
        if self._indexed:
            groups = [group for group in groups if self._may_match(group, self._matches_statistics)]
            groups = self._without_bloom_misses(groups)
        if groups:
            remaining = self._without_dictionary_misses(groups)
            if not remaining and self._counter is not None:
                self._counter.add(dictionary_skips=1)
            groups = remaining
        return groups

    def _may_match(self, group: int, leaf: Leaf, predicate: Predicate | None = None) -> bool:
        predicate = self._predicate if predicate is None else predicate
        return may_be_true(predicate, lambda whole, node: leaf(group, whole, node))

    def _without_bloom_misses(self, groups: list[int]) -> list[int]:
        if not groups or not any(self._bloom_hashes(node) is not None for _, node in leaves(self._predicate)):
            return groups
        remaining = [group for group in groups if self._may_match(group, self._matches_bloom)]
        if self._counter is not None:
            self._counter.add(bloom_skips=len(groups) - len(remaining))
        return remaining

    def _without_dictionary_misses(self, groups: list[int]) -> list[int]:
        reduced = self._dictionaries.reduce(self._predicate)
        if reduced == self._predicate:
            return groups
        leaf = self._matches_bloom if self._indexed else _always_may_match
        return [group for group in groups if self._may_match(group, leaf, reduced)]

    def _matches_statistics(self, group: int, whole: Predicate, node: Comparison) -> bool:
        bounds = self._group_bounds(node, group)
        if bounds is None:
            return True
        stride = self._tail.footer.row_index_stride or self._stripe.rows
        rows = min(stride, self._stripe.rows - group * stride)
        return may_match(whole, {node.field: bounds}, rows)

    def _matches_bloom(self, group: int, whole: Predicate, node: Comparison) -> bool:
        if not self._matches_statistics(group, whole, node):
            return False
        hashes = self._bloom_hashes(node) if whole is node else None
        if hashes is None:
            return True
        filters = self._column(node).bloom_filters
        return filters is None or bloom.may_hold(filters[group], hashes)

    def _group_bounds(self, node: Comparison, group: int) -> Bounds | None:
        if not self._is_flat(node):
            return None
        name = node.field[0]
        if (name, group) not in self._bounds:
            self._bounds[name, group] = self._read_bounds(name, group)
        return self._bounds[name, group]

    def _read_bounds(self, name: str, group: int) -> Bounds | None:
        number = self._tail.types.top_level(name)
        entries = self._column_of(number).entries
        if entries is None or not entries[group].statistics.HasField("number_of_values"):
            return None
        stride = self._tail.footer.row_index_stride
        rows = min(stride, self._stripe.rows - group * stride)
        group_statistics = column_statistics(self._tail.types.types[number], entries[group].statistics, rows)
        return self._rows.bounds(name, group_statistics)

    def _bloom_hashes(self, node: Comparison) -> list[int] | None:
        """Return the hashes to look up in Bloom filters for `node`; None if these cannot help or do not
        exist.
        """
        if id(node) not in self._hashes:
            self._hashes[id(node)] = self._find_hashes(node)
        return self._hashes[id(node)]

    def _find_hashes(self, node: Comparison) -> list[int] | None:
        if not self._has_right_hashes or not self._is_flat(node):
            return None
        column = self._column(node)
        if not self._has_right_filter(column):
            return None
        hashes = bloom.hashes_of(
            node,
            column.kind,
            self._type(node),
            column.streams.encoding,
            self._stripe.footer.writer_timezone,
        )
        return None if hashes is None or column.bloom_filters is None else hashes

    def _has_right_filter(self, column: ColumnGroups) -> bool:
        if self._tail.footer.writer == _CPP:
            # The C++ writer (2.3.0 too) hashes a TINYINT after overwriting it.
            return column.kind is not TypeKind.BYTE
        # The Java writer (2.3.0 too) writes the filters of the true values for masks.
        return not column.streams.is_mask

    @cached_property
    def _has_right_hashes(self) -> bool:
        if self._tail.footer.writer != _CPP:
            return True
        version = self._tail.footer.software_version.split("-")[0]
        return bool(version) and version not in _WRONG_HASHES

    @cached_property
    def _dictionaries(self) -> Dictionaries:
        def read(name: str) -> pa.Array | None:
            type_ = self._rows.schema.field(name).type
            return dictionary_of(self._column_of(self._tail.types.top_level(name)).streams, type_)

        return Dictionaries(read)

    def _is_flat(self, node: Comparison) -> bool:
        """Return whether a comparison is of a flat top-level column."""
        return len(node.field) == 1 and not pa.types.is_nested(self._type(node))

    def _column(self, node: Comparison) -> ColumnGroups:
        return self._column_of(self._tail.types.top_level(node.field[0]))

    def _type(self, node: Comparison) -> pa.DataType:
        return self._rows.schema.field(node.field[0]).type


def _always_may_match(group: int, whole: Predicate, node: Comparison) -> bool:
    return True
