"""Negation of predicates by SQL's three-valued logic: pushes NOT down into the comparisons."""

from __future__ import annotations

from lockgate.pushdown.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Comparison,
    Not,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
)

_OPPOSITE = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.GT: Op.LE,
    Op.LE: Op.GT,
    Op.IS_NULL: Op.IS_NOT_NULL,
    Op.IS_NOT_NULL: Op.IS_NULL,
}


def negate(predicate: Predicate) -> Predicate:
    """Return the predicate's negation: true where it is false, false where true, unknown where unknown.

    NOT remains only around STARTS_WITH, ENDS_WITH and CONTAINS, which have no opposite.
    """
    match predicate:
        case And(children):
            return any_of(*(negate(child) for child in children))
        case Or(children):
            return all_of(*(negate(child) for child in children))
        case Not(child):
            return normalize(child)
        case AlwaysTrue():
            return AlwaysFalse()
        case AlwaysFalse():
            return AlwaysTrue()
        case Comparison():
            return _opposite(predicate)
    raise TypeError(f"not a predicate: {predicate!r}")


def normalize(predicate: Predicate) -> Predicate:
    """Return an equal predicate without NOT, except around STARTS_WITH, ENDS_WITH and CONTAINS."""
    match predicate:
        case And(children):
            return all_of(*(normalize(child) for child in children))
        case Or(children):
            return any_of(*(normalize(child) for child in children))
        case Not(child):
            return negate(child)
    return predicate


def _opposite(node: Comparison) -> Predicate:
    if node.op in _OPPOSITE:
        return Comparison(_OPPOSITE[node.op], node.field, node.literals)
    if node.op is Op.IN:
        # An empty IN is false even for null; its opposite is AlwaysTrue, as all_of() without children is.
        return all_of(*(Comparison(Op.NE, node.field, (item,)) for item in node.literals))
    if node.op is Op.EQ_NULL_SAFE:
        if not node.literals[0].is_valid:
            return Comparison(Op.IS_NOT_NULL, node.field)
        return any_of(Comparison(Op.IS_NULL, node.field), Comparison(Op.NE, node.field, node.literals))
    return Not(node)
