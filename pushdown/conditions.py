"""Predicates that skip files, from conditions that only Spark can evaluate.

Spark offers a source only conditions that it can translate completely. The connector sends the others as JSON
(see `json_codec`). In it, a part that Spark cannot translate is an unknown operator, and the patterns of
LIKE, RLIKE and MATCH have Spark's syntax.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from lockgate.errors import InputError
from lockgate.pushdown.json_codec import from_json, pattern_from_json
from lockgate.pushdown.negation import negate, normalize
from lockgate.pushdown.predicates import (
    PATTERNS,
    UNARY,
    AlwaysTrue,
    And,
    Comparison,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
)
from lockgate.pushdown.texts.patterns import agreed_words, words_of
from lockgate.pushdown.texts.required_literals import required_in_lower_case, required_literals


def necessary_condition(node: Mapping[str, Any], evaluated: Collection[str] = ()) -> Predicate:
    """Return a predicate that is true for every row for which a condition of Spark is true.

    Scans skip files by it; it must not filter rows. `evaluated` are columns on whose values the predicate may
    be evaluated, such as partition columns. For these it has no comparison that ignores case, because engines
    differ in lower case.
    """
    return _without_patterns(normalize(_necessary(node, is_negated=False)), evaluated)


def _necessary(node: Mapping[str, Any], *, is_negated: bool) -> Predicate:
    """Return a predicate that is true where the node is true, or with `is_negated` where it is false."""
    op, arguments = node.get("op"), node.get("args") or []
    if op in ("AND", "OR") and arguments:
        join = all_of if (op == "AND") is not is_negated else any_of
        return join(*(_necessary(child, is_negated=is_negated) for child in arguments))
    if op == "NOT" and len(arguments) == 1:
        return _necessary(arguments[0], is_negated=not is_negated)
    return _leaf_condition(node, is_negated=is_negated)


def _leaf_condition(node: Mapping[str, Any], *, is_negated: bool) -> Predicate:
    inner = _without_lower(node)
    predicate = from_json(inner)
    predicate = pattern_from_json(inner) if predicate is None else predicate
    if predicate is None:
        return AlwaysTrue()
    is_lower = inner is not node
    if (
        not isinstance(predicate, Comparison)
        or predicate.op in UNARY
        or not (is_lower or predicate.op in PATTERNS)
    ):
        return negate(predicate) if is_negated else predicate
    if is_negated or not all(item.is_valid for item in predicate.literals):
        # A comparison with null is neither true nor false, except by <=>.
        return (
            AlwaysTrue() if predicate.op is Op.EQ_NULL_SAFE else Comparison(Op.IS_NOT_NULL, predicate.field)
        )
    return _required(predicate, is_lower=is_lower)


def _required(comparison: Comparison, *, is_lower: bool) -> Predicate:
    if comparison.op is Op.MATCH and not is_lower:
        return _required_words(comparison)
    try:
        return required_in_lower_case(comparison) if is_lower else required_literals(comparison)
    except InputError:  # Spark reports the wrong pattern when it evaluates it on a row
        return AlwaysTrue()


def _required_words(comparison: Comparison) -> Predicate:
    """Return MATCH of the words that Python and the JVM split alike, and the required texts of the others."""
    terms = comparison.literals[0].as_py()
    agreed = agreed_words(terms)
    if len(agreed) == len(words_of(terms)):
        return comparison
    return all_of(
        Comparison(Op.MATCH, comparison.field, (pa.scalar(" ".join(agreed)),)), required_literals(comparison)
    )


def _without_lower(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the comparison with LOWER(column) replaced by column; other comparisons are unchanged."""
    first, *others = node.get("args") or [None]
    if isinstance(first, Mapping) and first.get("op") == "LOWER" and len(first.get("args") or ()) == 1:
        return {**node, "args": [first["args"][0], *others]}
    return node


def _without_patterns(predicate: Predicate, evaluated: Collection[str]) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_without_patterns(child, evaluated) for child in children))
        case Or(children):
            return any_of(*(_without_patterns(child, evaluated) for child in children))
        case Comparison(op=op, field=field) if op in PATTERNS and field[0] in evaluated:
            return Comparison(Op.IS_NOT_NULL, field)
    return predicate
