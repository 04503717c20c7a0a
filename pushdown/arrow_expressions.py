"""Predicates as `pyarrow.compute` expressions with Spark's semantics.

Arrow's own comparisons differ in three ways, which this module corrects: Arrow casts a literal to the
column's type with loss, NaN compares as false with everything, and `is_in` never returns null.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import ColumnNotFoundError, UnsupportedTypeError, nearest
from lockgate.pushdown.predicates import (
    PATTERNS,
    TEXT,
    Comparison,
    FieldPath,
    Op,
    Predicate,
    PredicateVisitor,
)
from lockgate.pushdown.texts.regexes import regexes_of
from lockgate.pushdown.value_order import Family, Rank, comparable, family_of, is_nan, plain, rank_of

Expression = Any  # a pyarrow.compute.Expression; pyarrow ships no types


def field_type(schema: pa.Schema, path: FieldPath) -> pa.DataType:
    """Return the type at a path; raises ColumnNotFoundError with the nearest names."""
    fields = {field.name: field for field in schema}
    for depth, name in enumerate(path):
        if name not in fields:
            where = f" in {'.'.join(path[:depth])}" if depth else ""
            raise ColumnNotFoundError(f"no column {name!r}{where}{nearest(name, fields)}")
        data_type = fields[name].type
        inside = (
            [data_type.field(i) for i in range(data_type.num_fields)] if pa.types.is_struct(data_type) else []
        )
        fields = {field.name: field for field in inside}
    return data_type


def unsupported_reason(predicate: Predicate, schema: pa.Schema) -> str | None:
    """Return the reason why a predicate cannot be evaluated on a schema, None if it can."""
    try:
        to_arrow_expression(predicate, schema)
    except (ColumnNotFoundError, UnsupportedTypeError) as error:
        return str(error)
    return None


def to_arrow_expression(predicate: Predicate, schema: pa.Schema) -> Expression:
    """Return a predicate as an Arrow expression over tables with this schema.

    The expression is true, false or null as the predicate is true, false or unknown. Raises
    ColumnNotFoundError and UnsupportedTypeError if the predicate does not fit the schema.
    """
    return _ToArrow(schema).visit(predicate)


@checked_arguments
def filter_table(table: pa.Table, predicate: Predicate) -> pa.Table:
    """Return the rows of a table for which `predicate` is true."""
    return table.filter(to_arrow_expression(predicate, table.schema))


class _ToArrow(PredicateVisitor[Expression]):
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def comparison(self, node: Comparison) -> Expression:
        kind = field_type(self._schema, node.field)
        return _Leaf(pc.field(*node.field), kind).expression(node)

    def conjunction(self, children: list[Expression]) -> Expression:
        return reduce(lambda left, right: left & right, children) if children else pc.scalar(True)

    def disjunction(self, children: list[Expression]) -> Expression:
        return reduce(lambda left, right: left | right, children) if children else pc.scalar(False)

    def negation(self, child: Expression) -> Expression:
        return ~child

    def constant(self, value: bool) -> Expression:
        return pc.scalar(value)


class _Leaf:
    """Comparisons of one field."""

    def __init__(self, field: Expression, data_type: pa.DataType) -> None:
        self._field = field
        self._kind = data_type
        self._is_floating = pa.types.is_floating(data_type)

    def expression(self, node: Comparison) -> Expression:
        for kind in node.literal_types:
            if not comparable(kind, self._kind):
                name = ".".join(node.field)
                raise UnsupportedTypeError(
                    f"column {name} is a {self._kind}, which cannot be compared with a {kind}"
                )
        if node.op is Op.IS_NULL:
            return self._field.is_null()
        if node.op is Op.IS_NOT_NULL:
            return self._field.is_valid()
        if node.op is Op.IN:
            return self._in(node)
        item = node.literals[0]
        if node.op is Op.EQ_NULL_SAFE:
            if not item.is_valid:
                return self._field.is_null()
            return self._field.is_valid() & self._compare_literal(Op.EQ, item)
        if not item.is_valid:
            return _null()
        if node.op in TEXT:
            return self._text(node.op, item)
        if node.op in PATTERNS:
            return self._pattern(node.op, item)
        return self._compare_literal(node.op, item)

    def _constant_if_valid(self, value: bool) -> Expression:
        """Return an expression that is `value` where the field is not null, else null."""
        return pc.if_else(self._field.is_valid(), pc.scalar(value), _null())

    def _compare_literal(self, op: Op, item: pa.Scalar) -> Expression:
        if self._is_floating and is_nan(plain(item)):
            return self._compare_nan(op)
        ranked = rank_of(item, self._kind)
        if ranked.rank is Rank.AT:
            return self._compare_value(op, ranked.value)
        if op in (Op.EQ, Op.NE):
            return self._constant_if_valid(op is Op.NE)
        less = op in (Op.LT, Op.LE)
        if ranked.rank is Rank.BETWEEN:
            return self._compare_value(Op.LE if less else Op.GT, ranked.value)
        return self._constant_if_valid(less is (ranked.rank is Rank.ABOVE))

    def _compare_value(self, op: Op, value: pa.Scalar) -> Expression:
        field = self._field
        match op:
            case Op.EQ:
                return field == value
            case Op.NE:
                return field != value
            case Op.LT:
                return field < value
            case Op.LE:
                return field <= value
        greater = field > value if op is Op.GT else field >= value
        return greater | pc.is_nan(field) if self._is_floating else greater

    def _compare_nan(self, op: Op) -> Expression:
        nan = pc.is_nan(self._field)
        if op in (Op.EQ, Op.GE):
            return nan
        if op in (Op.NE, Op.LT):
            return ~nan
        return self._constant_if_valid(op is Op.LE)

    def _in(self, node: Comparison) -> Expression:
        if not node.literals:
            return pc.scalar(False)
        valid = [item for item in node.literals if item.is_valid]
        matches = self._is_any_of(valid, are_exact=node.literal_types == (self._kind,))
        if len(valid) == len(node.literals):
            return matches
        return matches | _null()  # x IN (1, NULL) is unknown where it is not true

    def _is_any_of(self, literals: list[pa.Scalar], *, are_exact: bool) -> Expression:
        if self._is_floating:  # is_in() does not treat -0.0 and 0.0 as equal
            comparisons = [self._compare_literal(Op.EQ, item) for item in literals]
            return (
                reduce(lambda left, right: left | right, comparisons)
                if comparisons
                else self._constant_if_valid(False)
            )
        ranked = [] if are_exact else [rank_of(item, self._kind) for item in literals]
        values = literals if are_exact else [item.value for item in ranked if item.rank is Rank.AT]
        is_in = self._field.isin(pa.array(values, self._kind))
        return pc.if_else(self._field.is_valid(), is_in, _null())

    def _text(self, op: Op, item: pa.Scalar) -> Expression:
        if family_of(self._kind) not in (Family.STRING, Family.BINARY):
            raise UnsupportedTypeError(f"{op.value} needs a string column, not a {self._kind}")
        pattern = plain(item)
        match op:
            case Op.STARTS_WITH:
                return pc.starts_with(self._field, pattern)
            case Op.ENDS_WITH:
                return pc.ends_with(self._field, pattern)
        return pc.match_substring(self._field, pattern)

    def _pattern(self, op: Op, item: pa.Scalar) -> Expression:
        if family_of(self._kind) is not Family.STRING:
            raise UnsupportedTypeError(f"{op.value} needs a string column, not a {self._kind}")
        regexes, lowers = regexes_of(op, str(item.as_py()))
        field = pc.utf8_lower(self._field) if lowers else self._field
        matches = [pc.match_substring_regex(field, regex) for regex in regexes]
        return reduce(lambda left, right: left & right, matches) if matches else self._constant_if_valid(True)


def _null() -> Expression:
    return pc.scalar(pa.scalar(None, pa.bool_()))
