"""Globs: patterns of `*` and `?`, matched whole, or against the beginning of a longer text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_STARS = re.compile(r"\*+")


@lru_cache(maxsize=100_000)
def glob(pattern: str, ignore_case: bool) -> Callable[[str], object]:
    """Return what says whether a whole text matches a glob."""
    first, *rest = ("".join(map(_letter, part)) for part in _STARS.split(pattern))
    # The first place where a part between stars fits is as good as any: nothing is tried again.
    text = (
        first + "".join(f"(?>.*?{part})" for part in rest[:-1]) + "".join(f".*{part}" for part in rest[-1:])
    )
    return re.compile(text, re.DOTALL | (re.IGNORECASE if ignore_case else 0)).fullmatch


def _letter(letter: str) -> str:
    return "." if letter == "?" else re.escape(letter)


def same(one: str, other: str, ignore_case: bool) -> bool:
    """Return whether two texts are equal."""
    return one.lower() == other.lower() if ignore_case else one == other


def may_begin(pattern: str, text: str, ignore_case: bool, wild: bool) -> bool:
    """Return whether `text`, continued somehow, can match a pattern, whose `*` and `?` count
    only if `wild`.
    """
    if ignore_case:
        pattern, text = pattern.lower(), text.lower()
    states = {0}
    for letter in text:
        states = _after(pattern, states, letter, wild)
        if not states:
            return False
    return True


def _after(pattern: str, states: set[int], letter: str, wild: bool) -> set[int]:
    """Return the places in the pattern that one more letter leads to."""
    found = set()
    for state in _past_stars(pattern, states, wild):
        here = pattern[state] if state < len(pattern) else None
        if wild and here == "*":
            found.add(state)
        elif here == letter or (wild and here == "?"):
            found.add(state + 1)
    return found


def _past_stars(pattern: str, states: set[int], wild: bool) -> set[int]:
    found = set()
    for start in states:
        state = start
        while wild and state < len(pattern) and pattern[state] == "*":
            found.add(state)
            state += 1
        found.add(state)
    return found
