"""Selection of the row groups of a stripe that may match: by statistics, Bloom filters, dictionaries."""

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
# Of these versions of the C++ writer the hashes are wrong (ORC-1024), and of those that do not say theirs.
_WRONG_HASHES = frozenset({*(f"1.6.{number}" for number in range(12)), "1.7.0"})

Leaf = Callable[[int, Predicate, Comparison], bool]


class RowGroupSelection:
    """The row groups, out of `count`, of `stripe` in which a filter may be true.

    `column_of` gives the row groups of a column by its number; unless `indexed`, there is no index to rely
    on, and the stripe is one row group. A masked column is judged by its mask.
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
        """Return their numbers, rising."""
        kept = list(range(self._count))
        if self._indexed:
            kept = [group for group in kept if self._may(group, self._by_statistics)]
            kept = self._without_bloom_misses(kept)
        if kept:
            left = self._without_dictionary_misses(kept)
            if not left and self._counter is not None:
                self._counter.add(dictionary_skips=1)
            kept = left
        return kept

    def _may(self, group: int, leaf: Leaf, predicate: Predicate | None = None) -> bool:
        asked = self._predicate if predicate is None else predicate
        return may_be_true(asked, lambda whole, node: leaf(group, whole, node))

    def _without_bloom_misses(self, kept: list[int]) -> list[int]:
        if not kept or not any(self._bloom_hashes(node) is not None for _, node in leaves(self._predicate)):
            return kept
        left = [group for group in kept if self._may(group, self._by_bloom)]
        if self._counter is not None:
            self._counter.add(bloom_skips=len(kept) - len(left))
        return left

    def _without_dictionary_misses(self, kept: list[int]) -> list[int]:
        reduced = self._dictionaries.reduce(self._predicate)
        if reduced == self._predicate:
            return kept
        leaf = self._by_bloom if self._indexed else _unknown
        return [group for group in kept if self._may(group, leaf, reduced)]

    def _by_statistics(self, group: int, whole: Predicate, node: Comparison) -> bool:
        bounds = self._group_bounds(node, group)
        if bounds is None:
            return True
        stride = self._tail.footer.row_index_stride or self._stripe.rows
        rows = min(stride, self._stripe.rows - group * stride)
        return may_match(whole, {node.field: bounds}, rows)

    def _by_bloom(self, group: int, whole: Predicate, node: Comparison) -> bool:
        if not self._by_statistics(group, whole, node):
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
        found = column_statistics(self._tail.types.types[number], entries[group].statistics, rows)
        return self._rows.bounds(name, found)

    def _bloom_hashes(self, node: Comparison) -> list[int] | None:
        """Return what to look up in Bloom filters for `node`; None if they cannot answer it, or there are
        none.
        """
        if id(node) not in self._hashes:
            self._hashes[id(node)] = self._find_hashes(node)
        return self._hashes[id(node)]

    def _find_hashes(self, node: Comparison) -> list[int] | None:
        if not self._right_hashes or not self._is_flat(node):
            return None
        column = self._column(node)
        if not self._is_right_filter(column):
            return None
        hashes = bloom.hashes_of(
            node,
            column.kind,
            self._type(node),
            column.streams.encoding,
            self._stripe.footer.writer_timezone,
        )
        return None if hashes is None or column.bloom_filters is None else hashes

    def _is_right_filter(self, column: ColumnGroups) -> bool:
        if self._tail.footer.writer == _CPP:
            # The C++ writer (2.3.0 as well) hashes a TINYINT after it has overwritten it.
            return column.kind is not TypeKind.BYTE
        # Under masks the Java writer (2.3.0 as well) puts the filters of the true values.
        return not column.streams.is_mask

    @cached_property
    def _right_hashes(self) -> bool:
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
        """Return whether the comparison is one of a flat column, not of a part of one or of a nested one."""
        return len(node.field) == 1 and not pa.types.is_nested(self._type(node))

    def _column(self, node: Comparison) -> ColumnGroups:
        return self._column_of(self._tail.types.top_level(node.field[0]))

    def _type(self, node: Comparison) -> pa.DataType:
        return self._rows.schema.field(node.field[0]).type


def _unknown(group: int, whole: Predicate, node: Comparison) -> bool:
    return True
