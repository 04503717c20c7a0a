"""Evaluation of a predicate from the answers to its comparisons: the row ranges with possible matches."""

from __future__ import annotations

from collections.abc import Callable

from pyroaring import BitMap

from lockgate.pushdown.predicates import AlwaysFalse, And, Comparison, Or, Predicate

RangesOf = Callable[[Comparison], "BitMap | None"]
"""Returns the numbers of the row ranges where a comparison may be true, None if any may be."""


def matching_ranges(predicate: Predicate, ask: RangesOf) -> BitMap | None:
    """Return the row ranges where a row may match, None if any may; none that has a match is left out.

    Of NOT nothing is known: `predicate` is what `with_literals` returned.
    """
    match predicate:
        case And(children):
            return _every(children, ask)
        case Or(children):
            return _any(children, ask)
        case AlwaysFalse():
            return BitMap()
        case Comparison():
            return ask(predicate)
    return None


def _every(children: tuple[Predicate, ...], ask: RangesOf) -> BitMap | None:
    found: BitMap | None = None
    for child in children:
        answer = matching_ranges(child, ask)
        if answer is not None:
            found = answer if found is None else found & answer
        if found is not None and not found:
            break
    return found


def _any(children: tuple[Predicate, ...], ask: RangesOf) -> BitMap | None:
    found = BitMap()
    for child in children:
        answer = matching_ranges(child, ask)
        if answer is None:
            return None
        found |= answer
    return found
