"""Texts that predicates require, as weaker predicates that indexes and bounds can answer."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from lockgate.pushdown.negation import normalize
from lockgate.pushdown.predicates import (
    PATTERNS,
    TEXT,
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
from lockgate.pushdown.texts.patterns import ANY, ESCAPE, ONE, parts_of, quoted, words_of
from lockgate.pushdown.texts.regular_expressions import Every, Required, Text, required_of


def required_literals(predicate: Predicate) -> Predicate:
    """Return a predicate without patterns that is true wherever `predicate` is.

    LIKE becomes STARTS_WITH, ENDS_WITH and CONTAINS; RLIKE becomes the texts that it requires. An ILIKE or
    RLIKE that ignores case stays if it has only one text, which `folded_text` returns. A negated comparison
    of texts becomes IS NOT NULL.
    """
    return _of(normalize(predicate))


def with_literals(predicate: Predicate) -> Predicate:
    """Return an equal predicate without NOT that joins each pattern by AND with the texts it requires.

    NOT remains around operators of texts.
    """
    return _joined(normalize(predicate))


def _joined(predicate: Predicate) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_joined(child) for child in children))
        case Or(children):
            return any_of(*(_joined(child) for child in children))
        case Comparison(op=op) if op in PATTERNS:
            weaker = _of(predicate)
            return predicate if weaker == predicate else all_of(predicate, weaker)
    return predicate


def _of(predicate: Predicate) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_of(child) for child in children))
        case Or(children):
            return any_of(*(_of(child) for child in children))
        case Comparison(op=op, literals=(literal,)) if op in PATTERNS:
            return _required(predicate, literal) if literal.is_valid else predicate
        case Not(Comparison(op=op, field=field)) if op in PATTERNS or op in TEXT:
            return Comparison(Op.IS_NOT_NULL, field)
    return predicate


def _required(node: Comparison, literal: pa.Scalar) -> Predicate:
    match node.op:
        case Op.LIKE:
            return _of_like(node, literal)
        case Op.ILIKE:
            texts = [piece for piece in pieces_of(literal.as_py()) if piece]
            return _valued(node, all_of(*(_ilike(node, each) for each in texts)))
        case Op.MATCH:
            return _valued(node, all_of(*(_ilike(node, each) for each in words_of(literal.as_py()))))
    return _valued(node, _of_regex(node, required_of(literal.as_py())))


def _valued(node: Comparison, found: Predicate) -> Predicate:
    return Comparison(Op.IS_NOT_NULL, node.field) if isinstance(found, AlwaysTrue) else found


def _of_like(node: Comparison, literal: pa.Scalar) -> Predicate:
    pieces = pieces_of(literal.as_py())
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return Comparison(Op.EQ, node.field, (pa.scalar(first, literal.type),))
    asked = [(Op.STARTS_WITH, first), *((Op.CONTAINS, piece) for piece in pieces[1:-1]), (Op.ENDS_WITH, last)]
    return _valued(
        node,
        all_of(*(Comparison(op, node.field, (pa.scalar(text, literal.type),)) for op, text in asked if text)),
    )


@lru_cache(1024)
def pieces_of(pattern: str) -> tuple[str, ...]:
    """Return the texts between the wildcards of a pattern of LIKE, the first and the last maybe empty."""
    pieces = [""]
    for char, is_wild in parts_of(pattern):
        if is_wild:
            pieces.append("")
        else:
            pieces[-1] += char
    return tuple(pieces)


def required_in_lower_case(node: Comparison) -> Predicate:
    """Return a predicate of a column that is true wherever a comparison of LOWER(column) is.

    Engines differ in what lower case is beyond ASCII, so its ILIKEs are for indexes, not for evaluation.
    """
    if not node.literals or not all(
        item.is_valid and pa.types.is_string(item.type) for item in node.literals
    ):
        return AlwaysTrue()
    texts = [item.as_py() for item in node.literals]
    match node.op:
        case Op.EQ | Op.EQ_NULL_SAFE | Op.IN | Op.CONTAINS | Op.STARTS_WITH | Op.ENDS_WITH:
            return any_of(*(_ilike(node, text) if text else AlwaysTrue() for text in texts))
        case Op.LIKE:
            return all_of(*(_ilike(node, piece) for piece in pieces_of(texts[0]) if piece))
        case Op.RLIKE:
            return _of_regex(node, _folded(required_of(texts[0])))
    return AlwaysTrue()


def _folded(required: Required) -> Required:
    if isinstance(required, Text):
        return Text(required.text, folded=True)
    return type(required)(tuple(_folded(part) for part in required.parts))


def _ilike(node: Comparison, text: str) -> Comparison:
    escaped = "".join(ESCAPE + char if char in (ANY, ONE, ESCAPE) else char for char in text)
    return Comparison(Op.ILIKE, node.field, (pa.scalar(f"{ANY}{escaped}{ANY}"),))


def _of_regex(node: Comparison, required: Required) -> Predicate:
    if isinstance(required, Text):
        if required.folded:
            return Comparison(Op.RLIKE, node.field, (pa.scalar(f"(?i){quoted(required.text)}"),))
        return Comparison(Op.CONTAINS, node.field, (pa.scalar(required.text),))
    parts = [_of_regex(node, part) for part in required.parts]
    return all_of(*parts) if isinstance(required, Every) else any_of(*parts)


def folded_text(node: Comparison) -> str | None:
    """Return the only text of an ILIKE or RLIKE that ignores case; None for any other comparison."""
    if not (node.literals and node.literals[0].is_valid):
        return None
    text = node.literals[0].as_py()
    if node.op is Op.ILIKE:
        pieces = [piece for piece in pieces_of(text) if piece]
        return pieces[0] if len(pieces) == 1 else None
    found = required_of(text) if node.op is Op.RLIKE else None
    return found.text if isinstance(found, Text) and found.folded else None
