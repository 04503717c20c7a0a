"""Schedules: when a policy, a tag or a condition is valid, by a period and recurrences within it.

A recurrence has a schedule like cron's (minute, hour, day of month, day of week with Sunday 1, month, year; a
list of days of either kind suffices) and an interval, for which it holds from each of these times on.
Semantics: Ranger's RangerValidityScheduleEvaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lockgate.errors import InputError

_FORMATS = ("%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d")
# Java's short names that mean a place, which the zones' own database does not have (as places).
_SHORT = {
    "PST": "America/Los_Angeles",
    "EST": "America/New_York",
    "CST": "America/Chicago",
    "IST": "Asia/Kolkata",
}
Test = Callable[[int], bool]


def zone_of(name: str | None) -> tzinfo:
    """Return a zone by Java's name for it; one that nobody knows is GMT, as in Java."""
    try:
        return ZoneInfo(_SHORT.get(name or "", name or "GMT"))
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("GMT")


def instant(text: str, zone: tzinfo) -> datetime:
    """Return the time that a text names in a zone; raises InputError."""
    for form in _FORMATS:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=zone)
        except ValueError:
            continue
    raise InputError(f"{text!r} is not a time: write it as 2026/01/31 23:59:59")


def applies(schedule: Mapping[str, Any], at: datetime, local: tzinfo | None = None) -> bool:
    """Return whether a time is within a schedule; recurrences are read in the zone `local`, GMT
    by default.
    """
    local = local or zone_of(None)
    own = zone_of(schedule["timeZone"]) if schedule.get("timeZone") else local
    if schedule.get("startTime") and at < instant(schedule["startTime"], own):
        return False
    if schedule.get("endTime") and at > instant(schedule["endTime"], own):
        return False
    recurrences = schedule.get("recurrences") or ()
    here = at.astimezone(local)
    return not recurrences or any(_recurs(each, here) for each in recurrences)


def _recurs(recurrence: Mapping[str, Any], now: datetime) -> bool:
    length = _interval(recurrence.get("interval") or {})
    if not length:
        return True
    start = _latest(recurrence.get("schedule") or {}, now, length.days + 2)
    return start is not None and now <= start + length


def _interval(document: Mapping[str, Any]) -> timedelta:
    days, hours, minutes = (int(document.get(name) or 0) for name in ("days", "hours", "minutes"))
    return timedelta(days=days, hours=hours, minutes=minutes)


def _latest(document: Mapping[str, Any], now: datetime, days_back: int) -> datetime | None:
    """Return the last time of a schedule that is not after `now`, None if none is so near."""
    tests = {name: _test(document.get(name)) for name in ("minute", "hour", "month", "year")}
    days = [_days(document, name) for name in ("dayOfMonth", "dayOfWeek") if document.get(name)]
    for day in _backwards(now.date(), days_back):
        if not tests["year"](day.year) or not tests["month"](day.month):
            continue
        if days and not any(test(day) for test in days):
            continue
        latest = now.time() if day == now.date() else time(23, 59)
        found = _time(tests["hour"], tests["minute"], latest)
        if found is not None:
            return datetime.combine(day, found, now.tzinfo)
    return None


def _backwards(day: date, count: int) -> Iterator[date]:
    for back in range(count):
        yield day - timedelta(days=back)


def _time(hours: Test, minutes: Test, latest: time) -> time | None:
    for hour in range(latest.hour, -1, -1):
        if hours(hour):
            for minute in range(latest.minute if hour == latest.hour else 59, -1, -1):
                if minutes(minute):
                    return time(hour, minute)
    return None


def _days(document: Mapping[str, Any], name: str) -> Callable[[date], bool]:
    test = _test(document[name])
    if name == "dayOfMonth":
        return lambda day: test(day.day)
    return lambda day: test(day.isoweekday() % 7 + 1)


def _test(text: str | None) -> Test:
    """Return the test of one field: numbers and ranges by commas, `*` or nothing for all."""
    ranges = []
    for part in str(text or "*").split(","):
        ends = part.strip().split("-")
        if "*" in ends:
            return lambda value: True
        try:
            ranges.append((int(ends[0]), int(ends[-1])))
        except ValueError:
            raise InputError(
                f"{part!r} in a validity schedule is neither a number nor a range of numbers"
            ) from None
    return lambda value: any(first <= value <= last for first, last in ranges)
