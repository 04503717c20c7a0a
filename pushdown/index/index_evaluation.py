"""Evaluation of a predicate by the indexes of a file: which rows may match.

An answer never leaves out a matching row, but the rows that it keeps are still to be filtered. Answers are
combined as Paimon's `FileIndexPredicate` does, except that rows without a value match no comparison.
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
    """A column of a file with its indexes, by kind; None for an empty one: the column has no value.

    `kind` and `type` are those that the column was written with.
    """

    kind: ValueKind
    type: pa.DataType
    indexes: Mapping[str, bytes | None]

    @cached_property
    def readers(self) -> Sequence[BloomFilter | BitmapIndex | RangeBitmap]:
        """The indexes of known kinds that can hold such values."""
        return [
            INDEX_KINDS[name].read(self.kind, data)
            for name, data in self.indexes.items()
            if data is not None and name in INDEX_KINDS and self.kind in INDEX_KINDS[name].values
        ]

    @property
    def is_empty(self) -> bool:
        """Say whether an empty index says that there is no value."""
        return any(name in INDEX_KINDS and data is None for name, data in self.indexes.items())


def matching_rows(
    predicate: Predicate, columns: Mapping[FieldPath, IndexedColumn], rows: int | None = None
) -> Answer:
    """Return which rows may match, by the indexes of `columns`, by current path; True: any may, False: none.

    `rows` is how many rows the file has, if that is known. Raises ValueError, or struct's error, for damaged
    indexes, and for those of another number of rows.
    """
    for column in columns.values():
        _check_rows(column, rows)
    return _rows_of(with_literals(predicate), columns)


def keys_equal_to(node: Comparison, kind: ValueKind, column: pa.DataType) -> list[Key] | None:
    """Return the keys of values that are equal to a literal of a comparison; None if that cannot be told."""
    literals = [literal for literal in node.literals if literal.is_valid]
    if kind.is_bytes and all(literal.type == column for literal in literals):
        # Long lists of texts, at once: they are their own keys.
        keys = kind.keys(pa.array([literal.as_py() for literal in literals], column))
        return [bytes(key.as_py()) for key in keys]
    question = _Question.of(node, IndexedColumn(kind, column, {}))
    return None if question is None else question.equal_keys


def _check_rows(column: IndexedColumn, rows: int | None) -> None:
    for reader in column.readers:
        if rows is not None and not isinstance(reader, BloomFilter) and reader.rows != rows:
            raise ValueError(f"an index is of {reader.rows} rows, not of {rows}")


def _rows_of(predicate: Predicate, columns: Mapping[FieldPath, IndexedColumn]) -> Answer:
    match predicate:
        case And(children):
            return _every(_rows_of(child, columns) for child in children)
        case Or(children):
            return _any(_rows_of(child, columns) for child in children)
        case AlwaysFalse():
            return False
        case Comparison(field=field) if field in columns:
            return _of_column(predicate, columns[field])
    return True


def _every(answers: Iterable[Answer]) -> Answer:
    found: Answer = True
    for answer in answers:
        found = answer if found is True else found if answer is True else _both(found, answer)
        if not found:
            return False
    return found


def _both(one: Answer, other: Answer) -> Answer:
    return one & other if isinstance(one, BitMap) and isinstance(other, BitMap) else False


def _any(answers: Iterable[Answer]) -> Answer:
    found = BitMap()
    for answer in answers:
        if answer is True:
            return True
        if isinstance(answer, BitMap):
            found |= answer
    return found or False


def _of_column(node: Comparison, column: IndexedColumn) -> Answer:
    asks_null = node.op is Op.IS_NULL or (node.op is Op.EQ_NULL_SAFE and not node.literals[0].is_valid)
    if column.is_empty:
        return asks_null
    if asks_null:
        return _every(reader.nulls() for reader in column.readers if not isinstance(reader, BloomFilter))
    if node.op is Op.IS_NOT_NULL:
        return _every(_valued(reader) for reader in column.readers if not isinstance(reader, BloomFilter))
    question = _Question.of(node, column)
    return True if question is None else _every(question.rows(reader) for reader in column.readers)


def _valued(reader: BitmapIndex | RangeBitmap) -> BitMap:
    return reader.nulls().flip(0, reader.rows)


@dataclass(frozen=True)
class _Question:
    """A comparison with the keys of its literals, each with where the literal lies among the values."""

    op: Op
    kind: ValueKind
    places: tuple[tuple[Rank, Key | None], ...]

    @classmethod
    def of(cls, node: Comparison, column: IndexedColumn) -> _Question | None:
        """Return the question of a comparison; None if no index answers it."""
        try:
            ranked = [rank_of(literal, column.type) for literal in node.literals if literal.is_valid]
        except UnsupportedTypeError:
            return None
        places = [
            (each.rank, None if each.value is None else key_of(column.kind, each.value)) for each in ranked
        ]
        return cls(node.op, column.kind, tuple(places))

    def rows(self, reader: BloomFilter | BitmapIndex | RangeBitmap) -> Answer:
        """Return the rows that one index leaves."""
        if not self.places:
            return False  # null literals only: the comparison is never true
        if self.op in (Op.EQ, Op.EQ_NULL_SAFE, Op.IN):
            return self._equal(reader)
        if isinstance(reader, BloomFilter):
            return True
        if self.op is Op.NE:
            return _valued(reader) if self.kind.is_coarse else _valued(reader) - reader.among(self.equal_keys)
        return self._ordered(reader) if isinstance(reader, RangeBitmap) else True

    @cached_property
    def equal_keys(self) -> list[Key]:
        """The keys of values that are equal to a literal."""
        exact = (Rank.AT, Rank.BETWEEN) if self.kind.is_coarse else (Rank.AT,)
        keys = [key for where, key in self.places if where in exact and key is not None]
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
        ((where, key),) = self.places
        if self.op is Op.STARTS_WITH:
            return _starting(reader, key) if isinstance(key, bytes) else True
        below = self.op in (Op.LT, Op.LE)
        if self.op not in (Op.LT, Op.LE, Op.GT, Op.GE):
            return True
        if key is None:
            # Beyond all values, on one side or the other.
            return _valued(reader) if below is (where is Rank.ABOVE) else False
        # A literal between two values has the key of the lower one.
        with_key = below if where is Rank.BETWEEN else self.op in (Op.LE, Op.GE)
        if self.kind.is_coarse:
            with_key = True
        if self.kind in _FLOATS and key in (_ZERO, _NEGATIVE_ZERO):
            key = _ZERO if below is with_key else _NEGATIVE_ZERO
        if below:
            return reader.at_most(key) if with_key else reader.less(key)
        return reader.at_least(key) if with_key else reader.greater(key)


def _starting(reader: RangeBitmap, prefix: bytes) -> Answer:
    """Return the rows whose texts begin so: from the prefix on, up to the next text that is as long."""
    found = reader.at_least(prefix)
    cut = prefix.rstrip(b"\xff")
    return found & reader.less(cut[:-1] + bytes([cut[-1] + 1])) if cut else found
