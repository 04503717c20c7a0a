"""Tags by time: `create_tag_from_timestamp`, `create_tag_from_watermark` and `expire_tags`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store import Snapshot, Table, Tag
from lockgate.framework.store.history.tags import delete_tags
from lockgate.framework.store.metadata.tag_files import load_tags
from lockgate.framework.store.system.texts import wall_clock
from lockgate.framework.types import micros_of
from lockgate.procedures.builtin.history.tags import CreateTag
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE, _TAG, _, _RETAINED, _DRY_RUN = CreateTag.parameters


class CreateTagFromTimestamp(Procedure):
    """Names the first snapshot of a time or later, and keeps its files after it expires."""

    name = "create_tag_from_timestamp"
    description = "Name the first snapshot of a time or later, and keep its files after it expires."
    parameters = (
        _TABLE,
        _TAG,
        Parameter("timestamp", "BIGINT", doc="the time, in milliseconds since 1970"),
        _RETAINED,
        _DRY_RUN,
    )
    result = CreateTag.result

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Create the tag; SnapshotNotFoundError if all snapshots are older."""
        wanted = arguments.pop("timestamp")
        return _create(context, arguments, lambda each: each.time_millis >= wanted, f"time {wanted}")


class CreateTagFromWatermark(Procedure):
    """Names the first snapshot with a watermark or a later one, and keeps its files after it expires."""

    name = "create_tag_from_watermark"
    description = "Name the first snapshot with a watermark or a later one, and keep its files."
    parameters = (
        _TABLE,
        _TAG,
        Parameter("watermark", "BIGINT", doc="the watermark, in milliseconds since 1970"),
        _RETAINED,
        _DRY_RUN,
    )
    result = CreateTag.result

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Create the tag; SnapshotNotFoundError if no snapshot has such a watermark."""
        wanted = arguments.pop("watermark")

        def fits(snapshot: Snapshot) -> bool:
            return snapshot.watermark is not None and snapshot.watermark >= wanted

        return _create(context, arguments, fits, f"watermark {wanted}")


def _create(
    context: ProcedureContext, arguments: dict[str, Any], fits: Callable[[Snapshot], bool], what: str
) -> list[tuple[Any, ...]]:
    table = context.table(arguments["table"])
    found = next((each.id for each in _snapshots(table) if fits(each)), None)
    if found is None:
        raise SnapshotNotFoundError(f"table {table.identifier} has no snapshot with {what} or a later one")
    return CreateTag().call(context, **arguments, snapshot=found)


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
    return tag.created + tag.retained < datetime.datetime.now() or (bound is not None and tag.created < bound)
