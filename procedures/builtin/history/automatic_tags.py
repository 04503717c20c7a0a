"""`trigger_tag_automatic_creation`: a tag for the end of each hour, day or other period.

Source: Paimon's `TagAutoCreation` and `TagPeriodHandler`, whose names and choices of snapshots these are.
"""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from lockgate.errors import InputError, OptionError
from lockgate.framework import options as tag_options
from lockgate.framework.options import TableOptions
from lockgate.framework.store import Snapshot, Table, Tag
from lockgate.framework.store.history import create_tag, delete_tags, new_tag
from lockgate.framework.store.metadata.tag_periods import TagPeriods
from lockgate.framework.store.system.texts import wall_clock
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import TableName, TypedProcedure


@dataclass
class _Plan:
    """Tags to create and to delete, oldest first."""

    created: list[tuple[str, Snapshot]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)


def _plan(options: TableOptions, snapshots: Sequence[Snapshot], tags: Iterable[Tag]) -> _Plan:
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
    found, following = _Plan(), None
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


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    dry_run: Annotated[bool, "only say what would be done"] = False


@dataclass(frozen=True)
class _Row:
    created_tags_count: Annotated[int, "tags"]
    created_tags: Annotated[str, "their names, separated by commas, oldest first"]
    deleted_tags_count: Annotated[int, "tags beyond the number that stays"]
    deleted_tags: Annotated[str, "their names, separated by commas"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]


class TriggerTagAutomaticCreation(TypedProcedure[_Arguments, _Row]):
    """Create the tags of the days, hours or other periods that are over.

    What is due follows from the snapshots that are there and from the options `tag.*`, so that it can be
    called at any time and again after it was killed. Tags that somebody named otherwise are left alone.
    """

    name = "trigger_tag_automatic_creation"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Create and delete; InputError if the table's options do not ask for tags by time."""
        table = context.table(arguments.table)
        _check_asked(table)
        options = table.schema.table_options
        plan = _plan(options, table.snapshots(), table.tags())
        dry_run, created = arguments.dry_run, [name for name, _ in plan.created]
        if not dry_run:
            for name, snapshot in plan.created:
                retained = options.get_option(tag_options.TAG_TIME_RETAINED)
                create_tag(table, new_tag(table, name, snapshot.id, retained))
        # A dry run has not created those that would go again at once.
        gone = [name for name in plan.deleted if not (dry_run and name in created)]
        released = delete_tags(table, gone, dry_run=dry_run)
        counts = (released.data_files, released.manifests, released.bytes)
        return [_Row(len(created), ",".join(created), len(plan.deleted), ",".join(plan.deleted), *counts)]


def _check_asked(table: Table) -> None:
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
