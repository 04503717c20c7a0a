"""`create_tag`, `replace_tag`, `rename_tag`, `delete_tag`: names for snapshots that outlive their expiry."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import AlreadyExistsError, InputError, TagNotFoundError
from lockgate.framework.options import parse_duration
from lockgate.framework.store import Snapshot, Table, Tag
from lockgate.framework.store.history import create_tag, delete_tags, new_tag, rename_tag, replace_tag
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure

TimeRetained = Annotated[
    str | None,
    "recorded for engines that delete tags by age, and for `expire_tags`: `30 d` (default: for good)",
]


@dataclass(frozen=True)
class CreateTagArguments:
    """The name of a tag, and the snapshot that it names."""

    table: TableName
    tag: Annotated[str, 'the name; without `/ \\ : * ? " < > |` and commas']
    snapshot: Annotated[
        int | None,
        "the snapshot; an expired one can be named while another tag holds it (default: the newest)",
    ] = None
    time_retained: TimeRetained = None
    dry_run: Annotated[bool, "only count what the tag would hold"] = False


@dataclass(frozen=True)
class CreateTagRow:
    """The snapshot of a tag, and what it holds."""

    snapshot_id: Annotated[int, "the snapshot"]
    files: Annotated[int, "its data files, their size and their rows, not merged"]
    bytes: int
    rows: int


class CreateTag(TypedProcedure[CreateTagArguments, CreateTagRow]):
    """Name a snapshot of a table, and keep its files after it expires."""

    name = "create_tag"

    def run(self, context: ProcedureContext, arguments: CreateTagArguments) -> list[CreateTagRow]:
        """Create the tag; `files`, `bytes` and `rows` (not merged) are those of its snapshot."""
        table = context.table(arguments.table)
        tag = _new_tag(table, arguments)
        if not arguments.dry_run:
            create_tag(table, tag)
        elif _exists(table, tag.name):
            raise AlreadyExistsError(f"{table.identifier} has a tag {tag.name!r} already")
        return [CreateTagRow(tag.snapshot.id, *_held(table, tag.snapshot))]


@dataclass(frozen=True)
class _ReplaceTagArguments:
    table: TableName
    tag: Annotated[str, "the name of an existing tag"]
    snapshot: Annotated[int | None, "the snapshot it names from now on (default: the newest)"] = None
    time_retained: TimeRetained = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _ReplaceTagRow:
    previous_snapshot_id: Annotated[int, "the snapshots before and after"]
    snapshot_id: int
    files: Annotated[int, "data files of the new snapshot, their size and their rows, not merged"]
    bytes: int
    rows: int
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]


class ReplaceTag(TypedProcedure[_ReplaceTagArguments, _ReplaceTagRow]):
    """Point a tag to another snapshot, and delete the files that only the old one needed."""

    name = "replace_tag"

    def run(self, context: ProcedureContext, arguments: _ReplaceTagArguments) -> list[_ReplaceTagRow]:
        """Replace the tag; TagNotFoundError if there is none of that name."""
        table = context.table(arguments.table)
        previous = table.tag(arguments.tag).snapshot
        tag = _new_tag(table, arguments)
        held = _held(table, tag.snapshot)
        released = replace_tag(table, tag, dry_run=arguments.dry_run)
        deleted = (released.data_files, released.manifests, released.bytes)
        return [_ReplaceTagRow(previous.id, tag.snapshot.id, *held, *deleted)]


@dataclass(frozen=True)
class _RenameTagArguments:
    table: TableName
    tag: Annotated[str, "the name"]
    target_tag: Annotated[str, "the new name, which must not be taken"]
    dry_run: Annotated[bool, "only check the names"] = False


@dataclass(frozen=True)
class _RenameTagRow:
    renamed_tags_count: Annotated[int, "1"]
    snapshot_id: Annotated[int, "the snapshot that the tag names"]


class RenameTag(TypedProcedure[_RenameTagArguments, _RenameTagRow]):
    """Rename a tag of a table."""

    name = "rename_tag"
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _RenameTagArguments) -> list[_RenameTagRow]:
        """Rename the tag; TagNotFoundError or AlreadyExistsError if the names do not allow it."""
        table = context.table(arguments.table)
        tag = rename_tag(table, arguments.tag, arguments.target_tag, dry_run=arguments.dry_run)
        return [_RenameTagRow(1, tag.snapshot.id)]


@dataclass(frozen=True)
class _DeleteTagArguments:
    table: TableName
    tag: Annotated[str, "the name, or several separated by commas"]
    dry_run: DryRun = False


@dataclass(frozen=True)
class _DeleteTagRow:
    deleted_tags_count: Annotated[int, "tags"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]


class DeleteTag(TypedProcedure[_DeleteTagArguments, _DeleteTagRow]):
    """Delete tags of a table and the files that only they held.

    Data is only deleted, never read, so no key is needed. If killed halfway, it leaves files that
    `remove_orphan_files` finds.
    """

    name = "delete_tag"

    def run(self, context: ProcedureContext, arguments: _DeleteTagArguments) -> list[_DeleteTagRow]:
        """Delete the tags; TagNotFoundError, with nothing deleted, if one of them does not exist."""
        table = context.table(arguments.table)
        names = _names(table, arguments.tag)
        released = delete_tags(table, names, dry_run=arguments.dry_run)
        return [_DeleteTagRow(len(names), released.data_files, released.manifests, released.bytes)]


def _names(table: Table, text: str) -> list[str]:
    # Tags of other engines may have a comma in their name.
    if "," in text and _exists(table, text):
        return [text]
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("delete_tag needs the name of a tag")
    return list(dict.fromkeys(names))


def _new_tag(table: Table, arguments: CreateTagArguments | _ReplaceTagArguments) -> Tag:
    return new_tag(table, arguments.tag, arguments.snapshot, _retained(arguments.time_retained))


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
