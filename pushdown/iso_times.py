"""Dates and times in SQL's form: `2026-01-31` and `2026-01-31 12:30:00`, no other form of ISO 8601.

Python's `fromisoformat` also accepts `20260131` and the week `2026-W05`, which SQL reads as text.
"""

from __future__ import annotations

import datetime
import re

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    _DATE.pattern + r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


def parse_iso_date(text: str) -> datetime.date:
    """Parse a date such as `2026-01-31`; ValueError for another form."""
    if _DATE.fullmatch(text) is None:
        raise ValueError(f"a date is written '2026-01-31', not {text!r}")
    return datetime.date.fromisoformat(text)


def parse_iso_datetime(text: str) -> datetime.datetime:
    """Parse a time such as `2026-01-31 12:30:00`, or a date as its midnight; ValueError for another form."""
    if _TIME.fullmatch(text) is None:
        raise ValueError(f"a time is written '2026-01-31 12:30:00', not {text!r}")
    return datetime.datetime.fromisoformat(text)
