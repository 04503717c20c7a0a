"""The rows of a file that may match a predicate, by the file's indexes.

A result contains all matching rows; the reader must still filter its rows. Results are combined as in
Paimon's `FileIndexPredicate`, except that rows with null match no comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyroaring import BitMap

from lockgate.errors import UnsupportedTypeError
from lockgate.pushdown.index.bitmap_index import BitmapIndex
from lockgate.pushdown.index.bloom_filter import BloomFilter
from lockgate.pushdown.index.index_kinds import INDEX_KINDS, Answer, keys_of_list
from lockgate.pushdown.index.range_bitmap import RangeBitmap
from lockgate.pushdown.index.value_kinds import Key, ValueKind, key_of
from lockgate.pushdown.predicates import (
    AlwaysFalse,
    And,
    Comparison,
    FieldPath,
    Op,
    Or,
    Predicate,
)
from lockgate.pushdown.texts.required_literals import with_literals
from lockgate.pushdown.value_order import Rank, rank_of

_NEGATIVE_ZERO, _ZERO = -1, 0
_FLOATS = (ValueKind.FLOAT, ValueKind.DOUBLE)


@dataclass(frozen=True)
class IndexedColumn:
    """A column of a file with its indexes by kind; None is an empty index, of a column with only nulls.

    `kind` and `type` are those with which the column was written.
    """

    kind: ValueKind
    type: pa.DataType
    indexes: Mapping[str, bytes | None]

    @cached_property
    def readers(self) -> Sequence[BloomFilter | BitmapIndex | RangeBitmap]:
        """Readers of the column's indexes whose kind is supported for its values."""
        return [
            INDEX_KINDS[name].read(self.kind, data)
            for name, data in self.indexes.items()
            if data is not None and name in INDEX_KINDS and self.kind in INDEX_KINDS[name].values
        ]

    @property
    def is_empty(self) -> bool:
        """Return whether an empty index shows that the column has only nulls."""
        return any(name in INDEX_KINDS and data is None for name, data in self.indexes.items())


def matching_rows(
    predicate: Predicate, columns: Mapping[FieldPath, IndexedColumn], rows: int | None = None
) -> Answer:
    """Return the rows that may match, by the indexes of `columns`; True: any row may, False: none.

    `columns` are by their current path. `rows` is the file's row count, if the caller knows it. Raises
    ValueError or struct.error for damaged indexes, and for indexes of another number of rows.
    """
    for column in columns.values():
        _check_rows(column, rows)
    return _rows_of(with_literals(predicate), columns)


def keys_equal_to(node: Comparison, kind: ValueKind, column: pa.DataType) -> list[Key] | None:
    """Return the keys of values that equal a literal of a comparison; None if their types do not compare."""
    literals = [literal for literal in node.literals if literal.is_valid]
    if kind.is_bytes and all(literal.type == column for literal in literals):
        # Texts are their own keys; convert long lists in one call.
        keys = kind.keys(pa.array([literal.as_py() for literal in literals], column))
        return [bytes(key.as_py()) for key in keys]
    lookup = _IndexLookup.of(node, IndexedColumn(kind, column, {}))
    return None if lookup is None else lookup.equal_keys


def _check_rows(column: IndexedColumn, rows: int | None) -> None:
    for reader in column.readers:
        if rows is not None and not isinstance(reader, BloomFilter) and reader.rows != rows:
            raise ValueError(f"an index is of {reader.rows} rows, not of {rows}")


def _rows_of(predicate: Predicate, columns: Mapping[FieldPath, IndexedColumn]) -> Answer:
    match predicate:
        case And(children):
            return _intersection(_rows_of(child, columns) for child in children)
        case Or(children):
            return _union(_rows_of(child, columns) for child in children)
        case AlwaysFalse():
            return False
        case Comparison(field=field) if field in columns:
            return _column_rows(predicate, columns[field])
    return True


def _intersection(answers: Iterable[Answer]) -> Answer:
    rows: Answer = True
    for answer in answers:
        rows = answer if rows is True else rows if answer is True else _intersect_two(rows, answer)
        if not rows:
            return False
    return rows


def _intersect_two(one: Answer, other: Answer) -> Answer:
    return one & other if isinstance(one, BitMap) and isinstance(other, BitMap) else False


def _union(answers: Iterable[Answer]) -> Answer:
    rows = BitMap()
    for answer in answers:
        if answer is True:
            return True
        if isinstance(answer, BitMap):
            rows |= answer
    return rows or False


def _column_rows(node: Comparison, column: IndexedColumn) -> Answer:
    matches_null = node.op is Op.IS_NULL or (node.op is Op.EQ_NULL_SAFE and not node.literals[0].is_valid)
    if column.is_empty:
        return matches_null
    if matches_null:
        return _intersection(
            reader.nulls() for reader in column.readers if not isinstance(reader, BloomFilter)
        )
    if node.op is Op.IS_NOT_NULL:
        return _intersection(
            _non_null_rows(reader) for reader in column.readers if not isinstance(reader, BloomFilter)
        )
    lookup = _IndexLookup.of(node, column)
    return True if lookup is None else _intersection(lookup.rows(reader) for reader in column.readers)


def _non_null_rows(reader: BitmapIndex | RangeBitmap) -> BitMap:
    return reader.nulls().flip(0, reader.rows)


@dataclass(frozen=True)
class _IndexLookup:
    """A comparison, with the key of each literal and the literal's rank among the values of the column."""

    op: Op
    kind: ValueKind
    ranked_keys: tuple[tuple[Rank, Key | None], ...]

    @classmethod
    def of(cls, node: Comparison, column: IndexedColumn) -> _IndexLookup | None:
        """Return the lookup of a comparison; None if no index can evaluate it."""
        try:
            ranked = [rank_of(literal, column.type) for literal in node.literals if literal.is_valid]
        except UnsupportedTypeError:
            return None
        ranked_keys = [
            (item.rank, None if item.value is None else key_of(column.kind, item.value)) for item in ranked
        ]
        return cls(node.op, column.kind, tuple(ranked_keys))

    def rows(self, reader: BloomFilter | BitmapIndex | RangeBitmap) -> Answer:
        """Return the rows that may match by one index."""
        if not self.ranked_keys:
            return False  # a comparison with only null literals is never true
        if self.op in (Op.EQ, Op.EQ_NULL_SAFE, Op.IN):
            return self._equal(reader)
        if isinstance(reader, BloomFilter):
            return True
        if self.op is Op.NE:
            return (
                _non_null_rows(reader)
                if self.kind.is_coarse
                else _non_null_rows(reader) - reader.among(self.equal_keys)
            )
        return self._ordered(reader) if isinstance(reader, RangeBitmap) else True

    @cached_property
    def equal_keys(self) -> list[Key]:
        """The keys of values that equal a literal."""
        equal_ranks = (Rank.AT, Rank.BETWEEN) if self.kind.is_coarse else (Rank.AT,)
        keys = [key for rank, key in self.ranked_keys if rank in equal_ranks and key is not None]
        if self.kind in _FLOATS and (_ZERO in keys or _NEGATIVE_ZERO in keys):
            keys += [_ZERO, _NEGATIVE_ZERO]
        return list(dict.fromkeys(keys))

    def _equal(self, reader: BloomFilter | BitmapIndex | RangeBitmap) -> Answer:
        if not self.equal_keys:
            return False
        if isinstance(reader, BloomFilter):
            return reader.may_hold(keys_of_list(self.kind, self.equal_keys))
        return reader.among(self.equal_keys)

    def _ordered(self, reader: RangeBitmap) -> Answer:
        ((rank, key),) = self.ranked_keys
        if self.op is Op.STARTS_WITH:
            return _rows_with_prefix(reader, key) if isinstance(key, bytes) else True
        is_upper_bound = self.op in (Op.LT, Op.LE)
        if self.op not in (Op.LT, Op.LE, Op.GT, Op.GE):
            return True
        if key is None:
            # The literal is below all values or above all.
            return _non_null_rows(reader) if is_upper_bound is (rank is Rank.ABOVE) else False
        # A literal between two values has the key of the lower value.
        includes_key = is_upper_bound if rank is Rank.BETWEEN else self.op in (Op.LE, Op.GE)
        if self.kind.is_coarse:
            includes_key = True
        if self.kind in _FLOATS and key in (_ZERO, _NEGATIVE_ZERO):
            key = _ZERO if is_upper_bound is includes_key else _NEGATIVE_ZERO
        if is_upper_bound:
            return reader.at_most(key) if includes_key else reader.less(key)
        return reader.at_least(key) if includes_key else reader.greater(key)


def _rows_with_prefix(reader: RangeBitmap, prefix: bytes) -> Answer:
    """Return the rows whose texts begin with a prefix: from it up to the next text of its length."""
    from_prefix = reader.at_least(prefix)
    incrementable = prefix.rstrip(b"\xff")
    return (
        from_prefix & reader.less(incrementable[:-1] + bytes([incrementable[-1] + 1]))
        if incrementable
        else from_prefix
    )
