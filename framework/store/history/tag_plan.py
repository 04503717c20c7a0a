"""The tags that are due at the ends of periods, and those beyond the number that stays.

Source: Paimon's `TagAutoCreation`, whose choices of snapshots these are.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import InputError, OptionError
from lockgate.framework import options as tag_options
from lockgate.framework.options import TableOptions
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.tag_files import Tag, load_tags
from lockgate.framework.store.metadata.tag_periods import TagPeriods
from lockgate.framework.types import wall_clock

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def planned_tags(table: TableHandle) -> TagPlan:
    """Return what is to be done now; InputError if the table's options do not ask for tags by time."""
    _check_asked(table)
    return _plan(table.schema.table_options, table.snapshots(), load_tags(table))


@dataclass
class TagPlan:
    """Tags to create and to delete, oldest first."""

    created: list[tuple[str, Snapshot]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)


def _plan(options: TableOptions, snapshots: Sequence[Snapshot], tags: Iterable[Tag]) -> TagPlan:
    """Return what to create, snapshot by snapshot from the newest tag made by time on."""
    periods, delay = TagPeriods.of(options), options.get_option(tag_options.CREATION_DELAY)
    if delay >= periods.length:
        raise OptionError(
            f"option {tag_options.CREATION_DELAY.key!r} is {delay}, but must be shorter than the period, "
            f"{periods.length}"
        )
    completes = options.get_option(tag_options.AUTOMATIC_COMPLETION)
    most = options.get_option(tag_options.TAGS_RETAINED_MAX)
    taken = {tag.name for tag in tags}
    made = sorted((tag.snapshot.id, tag.name) for tag in tags if periods.start(tag.name) is not None)
    held = [name for _, name in made]
    found, following = TagPlan(), None
    last = made[-1][0] if made else 0
    if made and (newest := periods.start(made[-1][1])) is not None:
        following = newest + periods.length
    for snapshot in snapshots:
        time = None if snapshot.id <= last else _time_of(snapshot, options)
        if time is None or (following is not None and time - delay < following + periods.length):
            continue
        start = following if completes and following is not None else periods.before(time)
        name = periods.name(start)
        if name not in taken:
            found.created.append((name, snapshot))
            taken.add(name)
            held.append(name)
        following = start + periods.length
        if most is not None and len(held) > most:
            found.deleted += held[:-most]
            held = held[-most:]
    return found


def _time_of(snapshot: Snapshot, options: TableOptions) -> datetime.datetime | None:
    """Return the time of a snapshot that counts, without a zone; None if it has none."""
    if options.get_option(tag_options.AUTOMATIC_CREATION) == "process-time":
        return wall_clock(snapshot.time_millis)
    if snapshot.watermark is None or snapshot.watermark < 0:
        return None
    zone = zoneinfo.ZoneInfo(options.get_option(tag_options.WATERMARK_ZONE))
    seconds = snapshot.watermark / 1000
    return datetime.datetime.fromtimestamp(seconds, zone).replace(tzinfo=None)


def _check_asked(table: TableHandle) -> None:
    key = tag_options.AUTOMATIC_CREATION.key
    chosen = table.schema.table_options.get_option(tag_options.AUTOMATIC_CREATION)
    if chosen in ("process-time", "watermark"):
        return
    why = (
        "its tags are made by Flink's batch jobs at their end"
        if chosen == "batch"
        else "it makes no tags by time"
    )
    raise InputError(
        f"table {table.identifier} has option {key!r} = {chosen!r}: {why}; set it to 'process-time' or "
        "'watermark'"
    )
