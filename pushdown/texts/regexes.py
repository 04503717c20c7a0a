"""Operators of patterns as regular expressions that Arrow evaluates."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.pushdown.predicates import Op
from lockgate.pushdown.texts.patterns import checked, like_regex, lower, word_regexes


def regexes_of(op: Op, pattern: str) -> tuple[Sequence[str], bool]:
    """Return regular expressions of which each is found in a text that matches, and whether in lower case.

    Raises InputError for a pattern that is none.
    """
    match op:
        case Op.LIKE:
            return (like_regex(pattern),), False
        case Op.ILIKE:
            return (like_regex(lower(pattern)),), True
        case Op.MATCH:
            return word_regexes(pattern), True
    return (checked(pattern),), False
