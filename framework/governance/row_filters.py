"""Row filters of policies as predicates for scans in Python, as far as `pushdown.sql_reader` reads SQL."""

from __future__ import annotations

from lockgate.errors import InputError, PolicyError
from lockgate.pushdown import Predicate, parse_condition


def parsed(text: str) -> Predicate:
    """Return the predicate of a row filter; raises PolicyError, without the text, if it is not understood."""
    try:
        return parse_condition(text)
    except InputError as error:
        raise PolicyError(f"cannot parse a row filter: {error}") from None
