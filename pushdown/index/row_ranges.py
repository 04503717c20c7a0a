"""The row ranges that may have matches of a predicate, from the row ranges of its comparisons."""

from __future__ import annotations

from collections.abc import Callable

from pyroaring import BitMap

from lockgate.pushdown.predicates import AlwaysFalse, And, Comparison, Or, Predicate

RangesOf = Callable[[Comparison], "BitMap | None"]
"""Returns the numbers of the row ranges in which a comparison may be true, None if unknown."""


def matching_ranges(predicate: Predicate, ranges_of: RangesOf) -> BitMap | None:
    """Return the row ranges that may have a match, None if unknown; the result has all ranges with a match.

    `predicate` comes from `with_literals`; a NOT in it may match in any range.
    """
    match predicate:
        case And(children):
            return _intersection(children, ranges_of)
        case Or(children):
            return _union(children, ranges_of)
        case AlwaysFalse():
            return BitMap()
        case Comparison():
            return ranges_of(predicate)
    return None


def _intersection(children: tuple[Predicate, ...], ranges_of: RangesOf) -> BitMap | None:
    ranges: BitMap | None = None
    for child in children:
        child_ranges = matching_ranges(child, ranges_of)
        if child_ranges is not None:
            ranges = child_ranges if ranges is None else ranges & child_ranges
        if ranges is not None and not ranges:
            break
    return ranges


def _union(children: tuple[Predicate, ...], ranges_of: RangesOf) -> BitMap | None:
    ranges = BitMap()
    for child in children:
        child_ranges = matching_ranges(child, ranges_of)
        if child_ranges is None:
            return None
        ranges |= child_ranges
    return ranges
