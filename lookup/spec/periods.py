"""Periods during which a lookup is not refreshed."""

from __future__ import annotations

from datetime import datetime

from lockgate.framework.types import date_pattern

_PATTERN = "yyyy-MM-dd HH:mm"

Periods = tuple[tuple[datetime, datetime], ...]
NO_PERIODS: Periods = ()


def parse_periods(text: str) -> Periods:
    """Return the periods of `start->end,start->end`, each written `yyyy-MM-dd HH:mm`, in local time.

    Raises ValueError for another spelling, and for a period that ends before it starts.
    """
    periods = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        start, _, end = (piece.strip() for piece in part.partition("->"))
        first, last = date_pattern(_PATTERN).parse(start), date_pattern(_PATTERN).parse(end)
        if first is None or last is None:
            raise ValueError("expected periods such as '2026-01-31 22:00->2026-02-01 02:00', with commas")
        if last <= first:
            raise ValueError(f"the period {part} ends before it starts")
        periods.append((first, last))
    return tuple(periods)


def covers(periods: Periods, now: datetime) -> bool:
    """Say whether `now` (local, without a zone) is in one of the periods; ends are outside."""
    return any(start <= now < end for start, end in periods)
