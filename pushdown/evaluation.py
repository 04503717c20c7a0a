"""Evaluation of predicates on the values of one row or one partition."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.pushdown.negation import normalize
from lockgate.pushdown.predicates import (
    PATTERNS,
    TEXT,
    AlwaysFalse,
    AlwaysTrue,
    And,
    Comparison,
    FieldPath,
    Not,
    Op,
    Or,
    Predicate,
    PredicateVisitor,
    all_of,
    any_of,
)
from lockgate.pushdown.texts.regexes import regexes_of
from lockgate.pushdown.value_order import Plain, between, comparable, compare, plain

Truth = bool | None
"""True, False, or None for unknown."""


class _Evaluate(PredicateVisitor[Truth]):
    def __init__(self, row: Mapping[FieldPath, pa.Scalar]) -> None:
        self._row = row

    def comparison(self, node: Comparison) -> Truth:
        return compare_scalar(node, self._row[node.field])

    def conjunction(self, children: list[Truth]) -> Truth:
        if False in children:
            return False
        return None if None in children else True

    def disjunction(self, children: list[Truth]) -> Truth:
        if True in children:
            return True
        return None if None in children else False

    def negation(self, child: Truth) -> Truth:
        return None if child is None else not child

    def constant(self, value: bool) -> Truth:
        return value


def evaluate(predicate: Predicate, row: Mapping[FieldPath, pa.Scalar]) -> Truth:
    """Evaluate a predicate on one row, as scalars by field path; None means unknown.

    Raises KeyError for a field that `row` lacks, UnsupportedTypeError for values that cannot be compared.
    """
    return _Evaluate(row).visit(predicate)


def compare_scalar(node: Comparison, value: pa.Scalar) -> Truth:
    """Evaluate one comparison on the value of its field."""
    op, literals = node.op, node.literals
    if op is Op.IS_NULL or op is Op.IS_NOT_NULL:
        return value.is_valid is (op is Op.IS_NOT_NULL)
    for kind in node.literal_types:
        if not comparable(value.type, kind):
            raise UnsupportedTypeError(f"a {kind} cannot be compared with a {value.type}")
    if op is Op.EQ_NULL_SAFE and not (value.is_valid and literals[0].is_valid):
        return value.is_valid is literals[0].is_valid
    if op is Op.IN:
        return _in(value, node)
    if not (value.is_valid and literals[0].is_valid):
        return None
    left, right = plain(value), plain(literals[0])
    if op in PATTERNS:
        return _pattern(op, left, right)
    return _text(op, left, right) if op in TEXT else ordered(op, left, right)


def ordered(op: Op, left: Plain, right: Plain) -> bool:
    """Return whether two plain values compare as true by one of = <> < <= > >= <=>."""
    sign = compare(left, right)
    match op:
        case Op.EQ | Op.EQ_NULL_SAFE:
            return sign == 0
        case Op.NE:
            return sign != 0
        case Op.LT:
            return sign < 0
        case Op.LE:
            return sign <= 0
        case Op.GT:
            return sign > 0
        case Op.GE:
            return sign >= 0
    raise InputError(f"{op.value} does not compare by order")


def _in(value: pa.Scalar, node: Comparison) -> Truth:
    if not node.literals:
        return False
    if not value.is_valid:
        return None
    left = plain(value)
    if between(node.ascending, left, left):
        return True
    return False if len(node.ascending) == len(node.literals) else None


def _text(op: Op, left: Plain, right: Plain) -> bool:
    if not (isinstance(left, bytes) and isinstance(right, bytes)):
        raise UnsupportedTypeError(f"{op.value} needs strings")
    if op is Op.STARTS_WITH:
        return left.startswith(right)
    return left.endswith(right) if op is Op.ENDS_WITH else right in left


def _pattern(op: Op, left: Plain, right: Plain) -> bool:
    if not (isinstance(left, bytes) and isinstance(right, bytes)):
        raise UnsupportedTypeError(f"{op.value} needs strings")
    regexes, lowers = regexes_of(op, right.decode())
    text = pa.scalar(left.decode())
    text = pc.utf8_lower(text) if lowers else text
    return all(pc.match_substring_regex(text, regex).as_py() for regex in regexes)


def residual(predicate: Predicate, values: Mapping[FieldPath, pa.Scalar]) -> Predicate:
    """Return the predicate that remains to evaluate on rows with these values, such as rows of a partition.

    It keeps the same rows as `predicate`: unknown counts as false, AlwaysFalse keeps none, AlwaysTrue all.
    """
    return _residual(normalize(predicate), values)


def _residual(predicate: Predicate, values: Mapping[FieldPath, pa.Scalar]) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_residual(child, values) for child in children))
        case Or(children):
            return any_of(*(_residual(child, values) for child in children))
        case Comparison(field=field) | Not(Comparison(field=field)) if field in values:
            # `normalize` left no NOT above, so unknown may become false.
            return AlwaysTrue() if evaluate(predicate, values) else AlwaysFalse()
    return predicate
