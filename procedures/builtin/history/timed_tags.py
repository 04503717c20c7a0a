"""Tags by time: `create_tag_from_timestamp`, `create_tag_from_watermark` and `expire_tags`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store import Snapshot, Table, Tag
from lockgate.framework.store.history import delete_tags
from lockgate.framework.types import micros_of, wall_clock
from lockgate.procedures.builtin.history.tag_procedures import (
    CreateTag,
    CreateTagArguments,
    CreateTagRow,
    TimeRetained,
)
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure

_DryRun = Annotated[bool, "only count what the tag would hold"]


@dataclass(frozen=True)
class _TimestampArguments:
    table: TableName
    tag: Annotated[str, "the name"]
    timestamp: Annotated[int, "the time, in milliseconds since 1970"]
    time_retained: TimeRetained = None
    dry_run: _DryRun = False


class CreateTagFromTimestamp(TypedProcedure[_TimestampArguments, CreateTagRow]):
    """Name the first snapshot of a time or later, and keep its files after it expires."""

    name = "create_tag_from_timestamp"

    def run(self, context: ProcedureContext, arguments: _TimestampArguments) -> list[CreateTagRow]:
        """Create the tag; SnapshotNotFoundError if no snapshot has come so far."""
        limit = arguments.timestamp
        return _create(context, arguments, f"timestamp {limit}", lambda each: each.time_millis >= limit)


@dataclass(frozen=True)
class _WatermarkArguments:
    table: TableName
    tag: Annotated[str, "the name"]
    watermark: Annotated[int, "the watermark, in milliseconds since 1970"]
    time_retained: TimeRetained = None
    dry_run: _DryRun = False


class CreateTagFromWatermark(TypedProcedure[_WatermarkArguments, CreateTagRow]):
    """Name the first snapshot with a watermark or a later one, and keep its files."""

    name = "create_tag_from_watermark"

    def run(self, context: ProcedureContext, arguments: _WatermarkArguments) -> list[CreateTagRow]:
        """Create the tag; SnapshotNotFoundError if no snapshot has come so far."""
        limit = arguments.watermark
        return _create(
            context,
            arguments,
            f"watermark {limit}",
            lambda each: each.watermark is not None and each.watermark >= limit,
        )


def _create(
    context: ProcedureContext,
    arguments: _TimestampArguments | _WatermarkArguments,
    limit: str,
    has_reached: Callable[[Snapshot], bool],
) -> list[CreateTagRow]:
    table = context.table(arguments.table)
    first = next((each.id for each in _snapshots(table) if has_reached(each)), None)
    if first is None:
        raise SnapshotNotFoundError(f"table {table.identifier} has no snapshot with {limit} or a later one")
    return CreateTag().run(
        context,
        CreateTagArguments(arguments.table, arguments.tag, first, arguments.time_retained, arguments.dry_run),
    )


def _snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots that there are, those that only tags hold included, oldest first."""
    held = {tag.snapshot.id: tag.snapshot for tag in table.tags()}
    snapshots = {**held, **{each.id: each for each in table.snapshots()}}
    return [snapshots[number] for number in sorted(snapshots)]


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    older_than: Annotated[
        datetime.datetime | None, "also delete tags with a `time_retained` that were created before this"
    ] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _Row:
    deleted_tags_count: Annotated[int, "tags"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]
    expired_tags: Annotated[str, "their names, separated by commas"]


class ExpireTags(TypedProcedure[_Arguments, _Row]):
    """Delete tags of a table whose time has come, and the files that only they held.

    A tag without `time_retained` is for good and stays. Source: Paimon's `TagTimeExpire`.
    """

    name = "expire_tags"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Expire; a tag's time is that of the clocks where it was created."""
        table = context.table(arguments.table)
        older = arguments.older_than
        bound = None if older is None else wall_clock(micros_of(older) // 1000)
        names = [tag.name for tag in table.tags() if _has_expired(tag, bound)]
        released = delete_tags(table, names, dry_run=arguments.dry_run)
        counts = (released.data_files, released.manifests, released.bytes)
        return [_Row(len(names), *counts, ",".join(names))]


def _has_expired(tag: Tag, bound: datetime.datetime | None) -> bool:
    if tag.created is None or tag.retained is None:
        return False
    # Not the time at which it ends, which may be after the year 9999.
    age = datetime.datetime.now() - tag.created
    return age > tag.retained or (bound is not None and tag.created < bound)
