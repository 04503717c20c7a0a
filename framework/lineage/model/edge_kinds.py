"""Kinds of edges between columns: how a value, or the choice of rows, depends on a source column."""

from __future__ import annotations

from enum import IntFlag

from lockgate.errors import InputError, nearest


class EdgeKind(IntFlag):
    """A set of kinds, which the connector sends as a number; `tests/fixtures/lineage_kinds.json` lists the
    numbers.

    A value depends directly on a column (identity, transformation, aggregation) or indirectly (all others).
    A masked kind is a direct one that no longer shows the value, such as a hash or a count.
    """

    IDENTITY = 1
    TRANSFORMATION = 2
    AGGREGATION = 4
    MASKED_IDENTITY = 8
    MASKED_TRANSFORMATION = 16
    MASKED_AGGREGATION = 32
    CONDITIONAL = 64
    WINDOW = 128
    FILTER = 256
    JOIN = 512
    GROUP_BY = 1024
    SORT = 2048
    OPAQUE = 4096


PLAIN = EdgeKind.IDENTITY | EdgeKind.TRANSFORMATION | EdgeKind.AGGREGATION
MASKED = EdgeKind.MASKED_IDENTITY | EdgeKind.MASKED_TRANSFORMATION | EdgeKind.MASKED_AGGREGATION
DIRECT = PLAIN | MASKED
OF_ROWS = EdgeKind.FILTER | EdgeKind.JOIN | EdgeKind.GROUP_BY | EdgeKind.SORT
INDIRECT = OF_ROWS | EdgeKind.CONDITIONAL | EdgeKind.WINDOW
EVERY = DIRECT | INDIRECT | EdgeKind.OPAQUE

_GROUPS = {"direct": DIRECT, "plain": PLAIN, "masked": MASKED, "indirect": INDIRECT, "all": EVERY}


def parse_kinds(text: str) -> EdgeKind:
    """Return the kinds that a comma-separated list names: groups (`direct`, `all`) or single kinds.

    Raises InputError, with the nearest names, for an unknown one.
    """
    names = {**_GROUPS, **{each.name.lower(): each for each in EdgeKind if each.name}}
    found = EdgeKind(0)
    for name in (part.strip().lower() for part in text.split(",")):
        if name not in names:
            raise InputError(f"there is no kind of edge {name!r}{nearest(name, names)}")
        found |= names[name]
    return found


def kind_names(kinds: int) -> list[str]:
    """Return the names of the kinds in a set, in lower case."""
    return [each.name.lower() for each in EdgeKind if each & kinds and each.name]
