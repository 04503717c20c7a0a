"""Tags by time: `create_tag_from_timestamp`, `create_tag_from_watermark` and `expire_tags`."""

from __future__ import annotations

import datetime
from abc import abstractmethod
from typing import Any, ClassVar

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store import Snapshot, Table, Tag
from lockgate.framework.store.history import delete_tags
from lockgate.framework.store.metadata.tag_files import load_tags
from lockgate.framework.store.system.texts import wall_clock
from lockgate.framework.types import micros_of
from lockgate.procedures.builtin.history.tag_procedures import CreateTag
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE, _TAG, _, _RETAINED, _DRY_RUN = CreateTag.parameters


class _CreateTagFrom(Procedure):
    """A tag of the first snapshot whose `measure` is what the argument of that name says, or later."""

    measure: ClassVar[str]
    result = CreateTag.result

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Create the tag; SnapshotNotFoundError if no snapshot has come so far."""
        wanted = arguments.pop(self.measure)
        table = context.table(arguments["table"])
        found = next((each.id for each in _snapshots(table) if self._has_reached(each, wanted)), None)
        if found is None:
            raise SnapshotNotFoundError(
                f"table {table.identifier} has no snapshot with {self.measure} {wanted} or a later one"
            )
        return CreateTag().call(context, **arguments, snapshot=found)

    @abstractmethod
    def _has_reached(self, snapshot: Snapshot, wanted: int) -> bool:
        """Say whether a snapshot is as late as wanted."""


class CreateTagFromTimestamp(_CreateTagFrom):
    """Names the first snapshot of a time or later, and keeps its files after it expires."""

    name = "create_tag_from_timestamp"
    measure = "timestamp"
    description = "Name the first snapshot of a time or later, and keep its files after it expires."
    parameters = (
        _TABLE,
        _TAG,
        Parameter("timestamp", "BIGINT", doc="the time, in milliseconds since 1970"),
        _RETAINED,
        _DRY_RUN,
    )

    def _has_reached(self, snapshot: Snapshot, wanted: int) -> bool:
        return snapshot.time_millis >= wanted


class CreateTagFromWatermark(_CreateTagFrom):
    """Names the first snapshot with a watermark or a later one, and keeps its files after it expires."""

    name = "create_tag_from_watermark"
    measure = "watermark"
    description = "Name the first snapshot with a watermark or a later one, and keep its files."
    parameters = (
        _TABLE,
        _TAG,
        Parameter("watermark", "BIGINT", doc="the watermark, in milliseconds since 1970"),
        _RETAINED,
        _DRY_RUN,
    )

    def _has_reached(self, snapshot: Snapshot, wanted: int) -> bool:
        return snapshot.watermark is not None and snapshot.watermark >= wanted


def _snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots that there are, those that only tags hold included, oldest first."""
    held = {tag.snapshot.id: tag.snapshot for tag in load_tags(table)}
    snapshots = {**held, **{each.id: each for each in table.snapshots()}}
    return [snapshots[number] for number in sorted(snapshots)]


class ExpireTags(Procedure):
    """Deletes tags whose time has come, and the files that only they held.

    A tag without `time_retained` is for good and stays. Source: Paimon's `TagTimeExpire`.
    """

    name = "expire_tags"
    description = "Delete tags of a table whose time has come, and the files that only they held."
    parameters = (
        _TABLE,
        Parameter("older_than", "TIMESTAMP", None, "also delete tags created before this, before their time"),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be deleted"),
    )
    result = (
        ("deleted_tags_count", "BIGINT"),
        ("deleted_data_files_count", "BIGINT"),
        ("deleted_manifests_count", "BIGINT"),
        ("deleted_bytes", "BIGINT"),
        ("expired_tags", "STRING"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Expire; a tag's time is that of the clocks where it was created."""
        table = context.table(arguments["table"])
        older = arguments["older_than"]
        bound = None if older is None else wall_clock(micros_of(older) // 1000)
        names = [tag.name for tag in load_tags(table) if _has_expired(tag, bound)]
        released = delete_tags(table, names, dry_run=arguments["dry_run"])
        counts = (released.data_files, released.manifests, released.bytes)
        return [(len(names), *counts, ",".join(names))]


def _has_expired(tag: Tag, bound: datetime.datetime | None) -> bool:
    if tag.created is None or tag.retained is None:
        return False
    # Not the time at which it ends, which may be after the year 9999.
    age = datetime.datetime.now() - tag.created
    return age > tag.retained or (bound is not None and tag.created < bound)
