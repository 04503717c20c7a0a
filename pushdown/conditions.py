"""Conditions that Spark evaluates itself: what they require of columns, as predicates that skip files.

Spark offers a source only conditions that it can translate whole. The connector sends the others as JSON (see
`json_codec`), in which a part without translation is an unknown operator, and LIKE, RLIKE and MATCH have
Spark's patterns.
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
    """Return a predicate that is true wherever a condition of Spark is.

    Scans skip files by it; it must not decide about rows. `evaluated` are columns on whose values it may be
    evaluated, such as those of partitions: of them it requires no text in whatever case, because engines
    differ in that.
    """
    return _sound(normalize(_necessary(node, is_negated=False)), evaluated)


def _necessary(node: Mapping[str, Any], *, is_negated: bool) -> Predicate:
    """Return what is true wherever the node is true, or with `is_negated` wherever it is false."""
    op, arguments = node.get("op"), node.get("args") or []
    if op in ("AND", "OR") and arguments:
        join = all_of if (op == "AND") is not is_negated else any_of
        return join(*(_necessary(child, is_negated=is_negated) for child in arguments))
    if op == "NOT" and len(arguments) == 1:
        return _necessary(arguments[0], is_negated=not is_negated)
    return _of_leaf(node, is_negated=is_negated)


def _of_leaf(node: Mapping[str, Any], *, is_negated: bool) -> Predicate:
    inner = _without_lower(node)
    found = from_json(inner)
    found = pattern_from_json(inner) if found is None else found
    if found is None:
        return AlwaysTrue()
    is_lower = inner is not node
    if not isinstance(found, Comparison) or found.op in UNARY or not (is_lower or found.op in PATTERNS):
        return negate(found) if is_negated else found
    if is_negated or not all(item.is_valid for item in found.literals):
        # A comparison of null is neither true nor false, unless it takes null for a value.
        return AlwaysTrue() if found.op is Op.EQ_NULL_SAFE else Comparison(Op.IS_NOT_NULL, found.field)
    return _required(found, is_lower=is_lower)


def _required(found: Comparison, *, is_lower: bool) -> Predicate:
    if found.op is Op.MATCH and not is_lower:
        return _required_words(found)
    try:
        return required_in_lower_case(found) if is_lower else required_literals(found)
    except InputError:  # Spark says what is wrong with the pattern when it comes to a row
        return AlwaysTrue()


def _required_words(found: Comparison) -> Predicate:
    """Return `match` of the words on which the JVM's Unicode and ours agree, joined with texts of others."""
    terms = found.literals[0].as_py()
    agreed = agreed_words(terms)
    if len(agreed) == len(words_of(terms)):
        return found
    return all_of(Comparison(Op.MATCH, found.field, (pa.scalar(" ".join(agreed)),)), required_literals(found))


def _without_lower(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a comparison of LOWER(column) as one of the column, any other as it is."""
    first, *others = node.get("args") or [None]
    if isinstance(first, Mapping) and first.get("op") == "LOWER" and len(first.get("args") or ()) == 1:
        return {**node, "args": [first["args"][0], *others]}
    return node


def _sound(predicate: Predicate, evaluated: Collection[str]) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_sound(child, evaluated) for child in children))
        case Or(children):
            return any_of(*(_sound(child, evaluated) for child in children))
        case Comparison(op=op, field=field) if op in PATTERNS and field[0] in evaluated:
            return Comparison(Op.IS_NOT_NULL, field)
    return predicate
