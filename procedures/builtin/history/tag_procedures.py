"""`create_tag`, `replace_tag`, `rename_tag`, `delete_tag`: names for snapshots that outlive their expiry."""

from __future__ import annotations

import datetime
from typing import Any

from lockgate.errors import AlreadyExistsError, InputError, TagNotFoundError
from lockgate.framework.options import parse_duration
from lockgate.framework.store import Snapshot, Table, Tag
from lockgate.framework.store.history import create_tag, delete_tags, new_tag, rename_tag, replace_tag
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE = Parameter("table", "STRING", doc="the table, 'database.table'")
_TAG = Parameter("tag", "STRING", doc="the name of the tag")
_SNAPSHOT = Parameter("snapshot", "BIGINT", None, "the snapshot it names (default: the newest)")
_RETAINED = Parameter(
    "time_retained", "STRING", None, "how long other engines should keep it: '30 d' (default: for good)"
)
_HELD = (("files", "BIGINT"), ("bytes", "BIGINT"), ("rows", "BIGINT"))
_DELETED = (
    ("deleted_data_files_count", "BIGINT"),
    ("deleted_manifests_count", "BIGINT"),
    ("deleted_bytes", "BIGINT"),
)


class CreateTag(Procedure):
    """Names a snapshot, and keeps its files after it expires; AlreadyExistsError if the name is taken."""

    name = "create_tag"
    description = "Name a snapshot of a table, and keep its files after it expires."
    parameters = (
        _TABLE,
        _TAG,
        _SNAPSHOT,
        _RETAINED,
        Parameter("dry_run", "BOOLEAN", False, "only count what the tag would hold"),
    )
    result = (("snapshot_id", "BIGINT"), *_HELD)

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Create the tag; `files`, `bytes` and `rows` (not merged) are those of its snapshot."""
        table = context.table(arguments["table"])
        tag = _new_tag(table, arguments)
        if not arguments["dry_run"]:
            create_tag(table, tag)
        elif _exists(table, tag.name):
            raise AlreadyExistsError(f"{table.identifier} has a tag {tag.name!r} already")
        return [(tag.snapshot.id, *_held(table, tag.snapshot))]


class ReplaceTag(Procedure):
    """Points a tag to another snapshot, and deletes the files that only the old one needed."""

    name = "replace_tag"
    description = "Point a tag to another snapshot, and delete the files that only the old one needed."
    parameters = (
        _TABLE,
        _TAG,
        _SNAPSHOT,
        _RETAINED,
        Parameter("dry_run", "BOOLEAN", False, "only count what would be deleted"),
    )
    result = (("previous_snapshot_id", "BIGINT"), ("snapshot_id", "BIGINT"), *_HELD, *_DELETED)

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Replace the tag; TagNotFoundError if there is none of that name."""
        table = context.table(arguments["table"])
        previous = table.tag(arguments["tag"]).snapshot
        tag = _new_tag(table, arguments)
        held = _held(table, tag.snapshot)
        released = replace_tag(table, tag, dry_run=arguments["dry_run"])
        deleted = (released.data_files, released.manifests, released.bytes)
        return [(previous.id, tag.snapshot.id, *held, *deleted)]


class RenameTag(Procedure):
    """Renames a tag; its files are held throughout."""

    name = "rename_tag"
    needs_all_rows = False
    description = "Rename a tag of a table."
    parameters = (
        _TABLE,
        _TAG,
        Parameter("target_tag", "STRING", doc="the new name"),
        Parameter("dry_run", "BOOLEAN", False, "only check the names"),
    )
    result = (("renamed_tags_count", "BIGINT"), ("snapshot_id", "BIGINT"))

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Rename the tag; TagNotFoundError or AlreadyExistsError if the names do not allow it."""
        table = context.table(arguments["table"])
        tag = rename_tag(table, arguments["tag"], arguments["target_tag"], dry_run=arguments["dry_run"])
        return [(1, tag.snapshot.id)]


class DeleteTag(Procedure):
    """Deletes tags, and the files that no snapshot, other tag or branch needs.

    Data is only deleted, never read, so no key is needed. If killed halfway, it leaves files that
    `remove_orphan_files` finds.
    """

    name = "delete_tag"
    description = "Delete tags of a table and the files that only they held."
    parameters = (
        _TABLE,
        Parameter("tag", "STRING", doc="the name of the tag, or several separated by commas"),
        Parameter("dry_run", "BOOLEAN", False, "only count what would be deleted"),
    )
    result = (("deleted_tags_count", "BIGINT"), *_DELETED)

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Delete the tags; TagNotFoundError, with nothing deleted, if one of them does not exist."""
        table = context.table(arguments["table"])
        names = _names(table, arguments["tag"])
        released = delete_tags(table, names, dry_run=arguments["dry_run"])
        return [(len(names), released.data_files, released.manifests, released.bytes)]


def _names(table: Table, text: str) -> list[str]:
    # Tags of other engines may have a comma in their name.
    if "," in text and _exists(table, text):
        return [text]
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("delete_tag needs the name of a tag")
    return list(dict.fromkeys(names))


def _new_tag(table: Table, arguments: dict[str, Any]) -> Tag:
    return new_tag(table, arguments["tag"], arguments["snapshot"], _retained(arguments["time_retained"]))


def _retained(text: str | None) -> datetime.timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(f"time_retained cannot be {text!r}: {error}") from None


def _exists(table: Table, name: str) -> bool:
    try:
        table.tag(name)
    except TagNotFoundError:
        return False
    return True


def _held(table: Table, snapshot: Snapshot) -> tuple[int, int, int]:
    files = [entry.file for entry in table.manifests.live_files(snapshot)]
    return len(files), sum(file.file_size for file in files), sum(file.row_count for file in files)
