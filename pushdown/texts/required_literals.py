"""Weaker predicates from the texts that patterns require; indexes and bounds can evaluate them."""

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
    """Return a predicate without patterns that is true for all rows for which `predicate` is true.

    LIKE becomes STARTS_WITH, ENDS_WITH and CONTAINS; RLIKE becomes the texts that it requires. An ILIKE, or
    an RLIKE that ignores case, stays if it requires a single text, which `folded_text` returns. A negated
    text comparison becomes IS NOT NULL.
    """
    return _weaken(normalize(predicate))


def with_literals(predicate: Predicate) -> Predicate:
    """Return an equivalent predicate without NOT, with each pattern ANDed with the texts it requires.

    NOT remains around text operators.
    """
    return _add_literals(normalize(predicate))


def _add_literals(predicate: Predicate) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_add_literals(child) for child in children))
        case Or(children):
            return any_of(*(_add_literals(child) for child in children))
        case Comparison(op=op) if op in PATTERNS:
            weaker = _weaken(predicate)
            return predicate if weaker == predicate else all_of(predicate, weaker)
    return predicate


def _weaken(predicate: Predicate) -> Predicate:
    match predicate:
        case And(children):
            return all_of(*(_weaken(child) for child in children))
        case Or(children):
            return any_of(*(_weaken(child) for child in children))
        case Comparison(op=op, literals=(literal,)) if op in PATTERNS:
            return _required_by_pattern(predicate, literal) if literal.is_valid else predicate
        case Not(Comparison(op=op, field=field)) if op in PATTERNS or op in TEXT:
            return Comparison(Op.IS_NOT_NULL, field)
    return predicate


def _required_by_pattern(node: Comparison, literal: pa.Scalar) -> Predicate:
    match node.op:
        case Op.LIKE:
            return _required_by_like(node, literal)
        case Op.ILIKE:
            pieces = [piece for piece in pieces_of(literal.as_py()) if piece]
            return _or_not_null(node, all_of(*(_ilike(node, piece) for piece in pieces)))
        case Op.MATCH:
            return _or_not_null(node, all_of(*(_ilike(node, text) for text in words_of(literal.as_py()))))
    return _or_not_null(node, _required_by_regex(node, required_of(literal.as_py())))


def _or_not_null(node: Comparison, predicate: Predicate) -> Predicate:
    return Comparison(Op.IS_NOT_NULL, node.field) if isinstance(predicate, AlwaysTrue) else predicate


def _required_by_like(node: Comparison, literal: pa.Scalar) -> Predicate:
    pieces = pieces_of(literal.as_py())
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return Comparison(Op.EQ, node.field, (pa.scalar(first, literal.type),))
    required = [
        (Op.STARTS_WITH, first),
        *((Op.CONTAINS, piece) for piece in pieces[1:-1]),
        (Op.ENDS_WITH, last),
    ]
    return _or_not_null(
        node,
        all_of(
            *(Comparison(op, node.field, (pa.scalar(text, literal.type),)) for op, text in required if text)
        ),
    )


@lru_cache(1024)
def pieces_of(pattern: str) -> tuple[str, ...]:
    """Return the texts between the wildcards of a LIKE pattern; the first and the last may be empty."""
    pieces = [""]
    for char, is_wild in parts_of(pattern):
        if is_wild:
            pieces.append("")
        else:
            pieces[-1] += char
    return tuple(pieces)


def required_in_lower_case(node: Comparison) -> Predicate:
    """Return a predicate on a column that is true for all rows for which a comparison of LOWER(column) is.

    Engines differ in lower case beyond ASCII, so use its ILIKEs for indexes only, not to filter rows.
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
            return _required_by_regex(node, _folded(required_of(texts[0])))
    return AlwaysTrue()


def _folded(required: Required) -> Required:
    if isinstance(required, Text):
        return Text(required.text, folded=True)
    return type(required)(tuple(_folded(part) for part in required.parts))


def _ilike(node: Comparison, text: str) -> Comparison:
    escaped = "".join(ESCAPE + char if char in (ANY, ONE, ESCAPE) else char for char in text)
    return Comparison(Op.ILIKE, node.field, (pa.scalar(f"{ANY}{escaped}{ANY}"),))


def _required_by_regex(node: Comparison, required: Required) -> Predicate:
    if isinstance(required, Text):
        if required.folded:
            return Comparison(Op.RLIKE, node.field, (pa.scalar(f"(?i){quoted(required.text)}"),))
        return Comparison(Op.CONTAINS, node.field, (pa.scalar(required.text),))
    parts = [_required_by_regex(node, part) for part in required.parts]
    return all_of(*parts) if isinstance(required, Every) else any_of(*parts)


def folded_text(node: Comparison) -> str | None:
    """Return the single text that an ILIKE, or an RLIKE that ignores case, requires; None for others."""
    if not (node.literals and node.literals[0].is_valid):
        return None
    text = node.literals[0].as_py()
    if node.op is Op.ILIKE:
        pieces = [piece for piece in pieces_of(text) if piece]
        return pieces[0] if len(pieces) == 1 else None
    required = required_of(text) if node.op is Op.RLIKE else None
    return required.text if isinstance(required, Text) and required.folded else None
