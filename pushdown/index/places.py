"""Evaluation of a predicate from the answers to its comparisons: the blocks in which a row may match."""

from __future__ import annotations

from collections.abc import Callable

from pyroaring import BitMap

from lockgate.pushdown.predicates import AlwaysFalse, And, Comparison, Or, Predicate

PlacesOf = Callable[[Comparison], "BitMap | None"]
"""Returns the places where a comparison may be true, None where nothing is known."""


def places_of(predicate: Predicate, ask: PlacesOf) -> BitMap | None:
    """Return the places where a row may match, None if any may; none that has a match is left out.

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


def _every(children: tuple[Predicate, ...], ask: PlacesOf) -> BitMap | None:
    found: BitMap | None = None
    for child in children:
        answer = places_of(child, ask)
        if answer is not None:
            found = answer if found is None else found & answer
        if found is not None and not found:
            break
    return found


def _any(children: tuple[Predicate, ...], ask: PlacesOf) -> BitMap | None:
    found = BitMap()
    for child in children:
        answer = places_of(child, ask)
        if answer is None:
            return None
        found |= answer
    return found
