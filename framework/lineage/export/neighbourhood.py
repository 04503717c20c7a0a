"""The neighbourhood of a table, which the first picture of a page shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Candidate numbers of hops, the preferred number of tables, and the largest number. page.html has the same.
_HOPS = (3, 2, 1)
_PREFERRED = 25
_MOST = 150


@dataclass(frozen=True)
class Neighbourhood:
    """Tables within `hops` of the first table, which comes first; `beyond` counts omitted tables."""

    tables: tuple[int, ...]
    hops: int
    beyond: int


def near(edges: Iterable[Sequence[int]], count: int) -> Neighbourhood:
    """Return the tables around table 0 of `count` tables, within as many hops as a picture can show.

    The first element of an edge is the source's table, the third is the target's.
    """
    back: dict[int, list[int]] = {}
    forward: dict[int, list[int]] = {}
    for edge in edges:
        back.setdefault(edge[2], []).append(edge[0])
        forward.setdefault(edge[0], []).append(edge[2])
    if not count:
        return Neighbourhood((), _HOPS[0], 0)
    for hops in _HOPS:
        found = tuple(dict.fromkeys((*_reached(back, hops), *_reached(forward, hops))))
        if len(found) <= _PREFERRED:
            break
    return Neighbourhood(found[:_MOST], hops, max(0, len(found) - _MOST))


def _reached(following: Mapping[int, Sequence[int]], hops: int) -> list[int]:
    found, front = {0: None}, [0]
    for _ in range(hops):
        front = [
            each
            for each in dict.fromkeys(y for x in front for y in following.get(x, ()))
            if each not in found
        ]
        found |= dict.fromkeys(front)
    return list(found)
