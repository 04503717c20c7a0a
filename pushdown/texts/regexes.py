"""Pattern operators as regular expressions that Arrow evaluates."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.pushdown.predicates import Op
from lockgate.pushdown.texts.patterns import checked, like_regex, lower, word_regexes


def regexes_of(op: Op, pattern: str) -> tuple[Sequence[str], bool]:
    """Return regular expressions that a matching text contains all of, and whether to lower its case first.

    Raises InputError for an invalid pattern.
    """
    match op:
        case Op.LIKE:
            return (like_regex(pattern),), False
        case Op.ILIKE:
            return (like_regex(lower(pattern)),), True
        case Op.MATCH:
            return word_regexes(pattern), True
    return (checked(pattern),), False
