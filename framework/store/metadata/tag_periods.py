"""Periods whose ends are tagged by time, and the names of these tags.

Source: Paimon's `TagPeriodHandler`.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from lockgate.framework import options as tag_options
from lockgate.framework.options import TableOptions
from lockgate.framework.types import date_pattern

_NAMED_PERIODS = {
    "daily": datetime.timedelta(days=1),
    "hourly": datetime.timedelta(hours=1),
    "two-hours": datetime.timedelta(hours=2),
}
_DAYS = {"with_dashes": "yyyy-MM-dd", "without_dashes": "yyyyMMdd", "without_dashes_and_spaces": "yyyyMMdd"}
_HOURS = {
    "with_dashes": "yyyy-MM-dd HH",
    "without_dashes": "yyyyMMdd HH",
    "without_dashes_and_spaces": "yyyyMMddHH",
}
_MINUTES = "yyyyMMddHHmm"
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class TagPeriods:
    """Periods of one length, counted from 1970, and the names of the tags that end them."""

    length: datetime.timedelta
    form: str

    @classmethod
    def of(cls, options: TableOptions) -> TagPeriods:
        """Return the periods that a table's options say."""
        any_length = options.get_option(tag_options.CREATION_PERIOD_DURATION)
        if any_length is not None:
            return cls(any_length, _MINUTES)
        period = options.get_option(tag_options.CREATION_PERIOD)
        formatter = options.get_option(tag_options.PERIOD_FORMATTER)
        if period == "two-hours":
            formatter = "with_dashes"  # as in Paimon, whatever the option says
        return cls(_NAMED_PERIODS[period], (_DAYS if period == "daily" else _HOURS)[formatter])

    def before(self, time: datetime.datetime) -> datetime.datetime:
        """Return the start of the last period that is over at a time."""
        return _EPOCH + ((time - _EPOCH) // self.length - 1) * self.length

    def name(self, start: datetime.datetime) -> str:
        """Return the name of the tag that ends a period."""
        return date_pattern(self.form).format(start)

    def start(self, name: str) -> datetime.datetime | None:
        """Return the start of the period of a tag; None for a tag that somebody named otherwise."""
        # Paimon reads the day of an hour's name, after the period became daily.
        text = name.split(" ")[0] if self.form in _DAYS.values() else name
        return date_pattern(self.form).parse(text)
