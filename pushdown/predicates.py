"""Predicates on rows, as immutable values.

A predicate is true, false or unknown (null) for a row, as in SQL; a filter keeps the rows for which it is
true. The neighbouring modules evaluate, describe and translate predicates by visitors.

>>> from lockgate.pushdown import col, describe
>>> describe((col("price") < 111.321) & col("address", "zip").is_not_null())
'price < 111.321 AND address.zip IS NOT NULL'
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import pyarrow as pa

from lockgate.errors import InputError
from lockgate.pushdown.value_order import Plain, is_nan, plain

FieldPath = tuple[str, ...]
"""A column, or a field inside struct columns: `("address", "zip")`."""

T = TypeVar("T")


class Op(enum.Enum):
    """Comparison operators; the values are the names of Spark's V2 predicates."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ_NULL_SAFE = "<=>"
    IN = "IN"
    IS_NULL = "IS_NULL"
    IS_NOT_NULL = "IS_NOT_NULL"
    STARTS_WITH = "STARTS_WITH"
    ENDS_WITH = "ENDS_WITH"
    CONTAINS = "CONTAINS"
    LIKE = "LIKE"
    ILIKE = "ILIKE"
    RLIKE = "RLIKE"
    MATCH = "MATCH"


UNARY = frozenset({Op.IS_NULL, Op.IS_NOT_NULL})
TEXT = frozenset({Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS})
PATTERNS = frozenset({Op.LIKE, Op.ILIKE, Op.RLIKE, Op.MATCH})


class Predicate:
    """The base of all predicates; `&`, `|` and `~` combine them."""

    def __and__(self, other: Predicate) -> Predicate:
        return all_of(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        return any_of(self, other)

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> bool:
        raise InputError("a predicate has no truth value of its own: combine predicates with &, | and ~")


@dataclass(frozen=True)
class AlwaysTrue(Predicate):
    """True for every row."""


@dataclass(frozen=True)
class AlwaysFalse(Predicate):
    """False for every row."""


@dataclass(frozen=True)
class Comparison(Predicate):
    """A field compared with literals: none for IS [NOT] NULL, any number for IN, else one."""

    op: Op
    field: FieldPath
    literals: tuple[pa.Scalar, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.op, Op):
            raise InputError(f"a comparison takes an operator, such as Op.EQ, not {type(self.op).__name__}")
        names = self.field if isinstance(self.field, Collection) else ()
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InputError(f"a field is a path of names, not {self.field!r}")
        if any(not isinstance(literal, pa.Scalar) for literal in self.literals):
            raise InputError(f"the literals of {self.op.value} must be pyarrow scalars")
        if self.op is not Op.IN and len(self.literals) != (0 if self.op in UNARY else 1):
            raise InputError(
                f"{self.op.value} has {0 if self.op in UNARY else 1} literals, not {len(self.literals)}"
            )

    @cached_property
    def ascending(self) -> tuple[Plain, ...]:
        """The non-null literals as plain values in Spark's order; sorted once, because a scan searches a long
        list again for every file.
        """
        values = [plain(item) for item in self.literals if item.is_valid]
        if not any(map(is_nan, values)):
            return tuple(sorted(values))
        return tuple(sorted(values, key=lambda value: (is_nan(value), 0 if is_nan(value) else value)))

    @cached_property
    def literal_types(self) -> tuple[pa.DataType, ...]:
        """The distinct types of the literals."""
        return tuple(dict.fromkeys(item.type for item in self.literals))


@dataclass(frozen=True)
class And(Predicate):
    """True if every child is; false if one is false."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or(Predicate):
    """True if one child is; false if every child is false."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not(Predicate):
    """False where the child is true, true where it is false, unknown where it is unknown."""

    child: Predicate


def all_of(*predicates: Predicate) -> Predicate:
    """Join predicates by AND; nested ANDs become one. Without predicates, return AlwaysTrue."""
    flat = list(_flat(And, predicates))
    if any(isinstance(child, AlwaysFalse) for child in flat):
        return AlwaysFalse()
    children = tuple(child for child in flat if not isinstance(child, AlwaysTrue))
    return children[0] if len(children) == 1 else And(children) if children else AlwaysTrue()


def any_of(*predicates: Predicate) -> Predicate:
    """Join predicates by OR; nested ORs become one. Without predicates, return AlwaysFalse."""
    flat = list(_flat(Or, predicates))
    if any(isinstance(child, AlwaysTrue) for child in flat):
        return AlwaysTrue()
    children = tuple(child for child in flat if not isinstance(child, AlwaysFalse))
    return children[0] if len(children) == 1 else Or(children) if children else AlwaysFalse()


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the predicates that AND joins at the top level; none for AlwaysTrue."""
    if isinstance(predicate, And):
        return tuple(part for child in predicate.children for part in conjuncts(child))
    return () if isinstance(predicate, AlwaysTrue) else (predicate,)


def _flat(kind: type[And] | type[Or], predicates: Iterable[Predicate]) -> Iterator[Predicate]:
    for predicate in predicates:
        if isinstance(predicate, kind):
            yield from _flat(kind, predicate.children)
        else:
            yield predicate


class PredicateVisitor(ABC, Generic[T]):
    """Computes one result from a predicate, bottom up; a subclass has a method for each kind of node."""

    def visit(self, predicate: Predicate) -> T:
        """Return the result for `predicate`."""
        match predicate:
            case Comparison():
                return self.comparison(predicate)
            case And(children):
                return self.conjunction([self.visit(child) for child in children])
            case Or(children):
                return self.disjunction([self.visit(child) for child in children])
            case Not(child):
                return self.negation(self.visit(child))
            case AlwaysTrue():
                return self.constant(True)
            case AlwaysFalse():
                return self.constant(False)
        raise InputError(f"not a predicate: {predicate!r}")

    @abstractmethod
    def comparison(self, node: Comparison) -> T:
        """Return the result for a comparison."""

    @abstractmethod
    def conjunction(self, children: list[T]) -> T:
        """Return the result for an AND, from the results of its children."""

    @abstractmethod
    def disjunction(self, children: list[T]) -> T:
        """Return the result for an OR, from the results of its children."""

    @abstractmethod
    def negation(self, child: T) -> T:
        """Return the result for a NOT, from the result of its child."""

    @abstractmethod
    def constant(self, value: bool) -> T:
        """Return the result for AlwaysTrue and AlwaysFalse."""


class _Columns(PredicateVisitor[frozenset[FieldPath]]):
    def comparison(self, node: Comparison) -> frozenset[FieldPath]:
        return frozenset({node.field})

    def conjunction(self, children: list[frozenset[FieldPath]]) -> frozenset[FieldPath]:
        return frozenset().union(*children)

    disjunction = conjunction

    def negation(self, child: frozenset[FieldPath]) -> frozenset[FieldPath]:
        return child

    def constant(self, value: bool) -> frozenset[FieldPath]:
        return frozenset()


def columns_of(predicate: Predicate) -> frozenset[FieldPath]:
    """Return the fields that a predicate reads."""
    return _Columns().visit(predicate)


class _Renamed(PredicateVisitor[Predicate]):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def comparison(self, node: Comparison) -> Predicate:
        first, *rest = node.field
        return replace(node, field=(self._names[first], *rest))

    def conjunction(self, children: list[Predicate]) -> Predicate:
        return And(tuple(children))

    def disjunction(self, children: list[Predicate]) -> Predicate:
        return Or(tuple(children))

    def negation(self, child: Predicate) -> Predicate:
        return Not(child)

    def constant(self, value: bool) -> Predicate:
        return AlwaysTrue() if value else AlwaysFalse()


def with_columns(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    """Return a predicate with its top-level columns renamed; `names` maps old names to new ones."""
    return _Renamed(names).visit(predicate)


def operators_of(predicate: Predicate) -> frozenset[tuple[FieldPath, Op]]:
    """Return the pairs of field and operator of all comparisons in a predicate."""
    match predicate:
        case Comparison():
            return frozenset({(predicate.field, predicate.op)})
        case And(children) | Or(children):
            return frozenset().union(*map(operators_of, children))
        case Not(child):
            return operators_of(child)
    return frozenset()


class Column:
    """A field whose operators return predicates: `col("price") < 10`, `col("name").starts_with("A")`.

    A literal is a Python value or a `pyarrow.Scalar`; None compares as null in SQL: never true.
    """

    # Comparing returns a predicate instead of a bool, unlike `object.__eq__`.
    __hash__ = None  # type: ignore[assignment]  # so columns have no hash

    def __init__(self, *path: str) -> None:
        self._path = path

    def _compare(self, op: Op, *values: object) -> Comparison:
        return Comparison(op, self._path, tuple(literal(value) for value in values))

    def __eq__(self, value: object) -> Comparison:  # type: ignore[override]  # no bool, see above
        return self._compare(Op.EQ, value)

    def __ne__(self, value: object) -> Comparison:  # type: ignore[override]  # no bool, see above
        return self._compare(Op.NE, value)

    def __lt__(self, value: object) -> Comparison:
        return self._compare(Op.LT, value)

    def __le__(self, value: object) -> Comparison:
        return self._compare(Op.LE, value)

    def __gt__(self, value: object) -> Comparison:
        return self._compare(Op.GT, value)

    def __ge__(self, value: object) -> Comparison:
        return self._compare(Op.GE, value)

    def eq_null_safe(self, value: object) -> Comparison:
        """Compare so that null equals null; the result is never unknown."""
        return self._compare(Op.EQ_NULL_SAFE, value)

    def isin(self, values: Iterable[object]) -> Comparison:
        """Test whether the field is one of `values`."""
        return self._compare(Op.IN, *values)

    def is_null(self) -> Comparison:
        """Test for null."""
        return self._compare(Op.IS_NULL)

    def is_not_null(self) -> Comparison:
        """Test for anything but null."""
        return self._compare(Op.IS_NOT_NULL)

    def starts_with(self, text: object) -> Comparison:
        """Test whether a string begins with `text`."""
        return self._compare(Op.STARTS_WITH, text)

    def ends_with(self, text: object) -> Comparison:
        """Test whether a string ends with `text`."""
        return self._compare(Op.ENDS_WITH, text)

    def contains(self, text: object) -> Comparison:
        """Test whether a string contains `text`."""
        return self._compare(Op.CONTAINS, text)

    def like(self, pattern: object) -> Comparison:
        r"""Test whether a string matches a pattern: `%` is any text, `_` one character, `\` escapes both."""
        return self._compare(Op.LIKE, pattern)

    def ilike(self, pattern: object) -> Comparison:
        """Test as `like` does, ignoring case: both sides are converted to lower case letter by letter."""
        return self._compare(Op.ILIKE, pattern)

    def rlike(self, regex: object) -> Comparison:
        """Test whether a string contains a match of a regular expression in RE2's syntax."""
        return self._compare(Op.RLIKE, regex)

    def match(self, terms: object) -> Comparison:
        """Test whether each word of `terms` is a word of a string, without regard to case and order.

        Words consist of letters, their marks, and digits. A word in a script without blanks between words,
        such as Chinese, may be anywhere in the string.
        """
        return self._compare(Op.MATCH, terms)


def col(*path: str) -> Column:
    """Return a column, or a field inside struct columns: `col("address", "zip")`."""
    return Column(*path)


def literal(value: object) -> pa.Scalar:
    """Return a Python value as an Arrow scalar; scalars are unchanged.

    Raises InputError for a value of a type that Arrow does not have.
    """
    if isinstance(value, pa.Scalar):
        return value
    try:
        return pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InputError(f"{value!r} cannot be a literal of a predicate: {error}") from error
