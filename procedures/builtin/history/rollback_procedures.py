"""`rollback` and its variants: restore an earlier state of a table."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError, SnapshotNotFoundError
from lockgate.framework.store import Snapshot, Table, check_writable
from lockgate.framework.store.history import restore, rollback, snapshot_at, target_of
from lockgate.framework.types import micros_of
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, TableName, TypedProcedure


@dataclass(frozen=True)
class _RollbackArguments:
    table: TableName
    version: Annotated[str | None, "the number of a snapshot, or the name of a tag"] = None
    snapshot: Annotated[int | None, "the number of a snapshot"] = None
    tag: Annotated[
        str | None, "the name of a tag; its snapshot may have expired. Give exactly one of the three"
    ] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _RollbackRow:
    previous_snapshot_id: Annotated[int, "the newest snapshot before and after"]
    current_snapshot_id: int
    deleted_snapshots_count: Annotated[int, "removed snapshots and tags"]
    deleted_tags_count: int
    reset_consumers_count: Annotated[int, "consumers that were beyond the target"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests, manifest lists and other metadata"]
    deleted_bytes: Annotated[int, "their size on disk"]


class Rollback(TypedProcedure[_RollbackArguments, _RollbackRow]):
    """Restore a table to a snapshot or tag, and remove everything later.

    Data is only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "rollback"

    def run(self, context: ProcedureContext, arguments: _RollbackArguments) -> list[_RollbackRow]:
        """Roll back; CommitConflictError, with nothing changed, if another commit lands first."""
        table = context.table(arguments.table)
        return _roll_back(table, _target(table, self.name, arguments), arguments.dry_run)


@dataclass(frozen=True)
class _RollbackToAsLatestRow:
    previous_snapshot_id: Annotated[int, "the newest snapshot before"]
    snapshot_id: Annotated[int | None, "the new snapshot; NULL after a dry run"]
    removed_files_count: Annotated[int, "data files that the new snapshot no longer has"]
    restored_files_count: Annotated[int, "data files that it has again"]
    restored_bytes: Annotated[int, "their size"]


class RollbackToAsLatest(TypedProcedure[_RollbackArguments, _RollbackToAsLatestRow]):
    """Commit an earlier state of a table as its newest snapshot, and remove nothing.

    Readers, consumers and streams are not disturbed. Data files of that state which are gone by now come
    back under new names, as hard links where there are some; no row is read, so no key is needed. If killed
    halfway, it leaves files for `remove_orphan_files`, and the table as it was.
    """

    name = "rollback_to_as_latest"

    def run(self, context: ProcedureContext, arguments: _RollbackArguments) -> list[_RollbackToAsLatestRow]:
        """Restore; CommitConflictError, with nothing changed, if another commit lands first."""
        table = context.table(arguments.table)
        check_writable(table.schema)
        done = restore(table, _target(table, self.name, arguments), dry_run=arguments.dry_run)
        files = (done.removed_files, done.restored_files, done.restored_bytes)
        return [_RollbackToAsLatestRow(done.previous_snapshot, done.snapshot, *files)]


def _target(table: Table, procedure: str, arguments: _RollbackArguments) -> Snapshot:
    given = {name: getattr(arguments, name) for name in ("version", "snapshot", "tag")}
    given = {name: value for name, value in given.items() if value is not None}
    if len(given) != 1:
        raise InputError(f"{procedure} needs exactly one of version, snapshot and tag")
    version = given.get("version", "").strip()
    if "version" in given:
        if not version:
            raise InputError(
                f"{procedure}: version is empty: give the number of a snapshot or the name of a tag"
            )
        number = table.number_called(version)
        ids = {str(each.id) for each in table.snapshots()}
        if version in ids and number != int(version):
            # What is removed cannot be brought back.
            raise InputError(
                f"{procedure}: {version!r} is the number of one snapshot and the name of a tag on snapshot "
                f"{number}: give snapshot => {version} or tag => '{version}'"
            )
        given = {"tag": version} if version in {tag.name for tag in table.tags()} else {"snapshot": number}
    return target_of(table, given.get("snapshot"), given.get("tag"))


@dataclass(frozen=True)
class _RollbackToTimestampArguments:
    table: TableName
    timestamp: Annotated[datetime.datetime, "the time: the newest snapshot that is not younger stays"]
    dry_run: DryRun = False


class RollbackToTimestamp(TypedProcedure[_RollbackToTimestampArguments, _RollbackRow]):
    """Restore a table to a time, and remove everything later."""

    name = "rollback_to_timestamp"

    def run(self, context: ProcedureContext, arguments: _RollbackToTimestampArguments) -> list[_RollbackRow]:
        """Keep the newest snapshot at a time; SnapshotNotFoundError if all snapshots are younger."""
        table = context.table(arguments.table)
        return _roll_back(
            table, snapshot_at(table, micros_of(arguments.timestamp) // 1000), arguments.dry_run
        )


@dataclass(frozen=True)
class _RollbackToWatermarkArguments:
    table: TableName
    watermark: Annotated[int, "the watermark, in milliseconds since 1970"]
    dry_run: DryRun = False


class RollbackToWatermark(TypedProcedure[_RollbackToWatermarkArguments, _RollbackRow]):
    """Restore a table to a watermark, and remove everything later."""

    name = "rollback_to_watermark"

    def run(self, context: ProcedureContext, arguments: _RollbackToWatermarkArguments) -> list[_RollbackRow]:
        """Keep the newest snapshot with that watermark or an earlier one; SnapshotNotFoundError if none."""
        table = context.table(arguments.table)
        for snapshot in reversed(table.snapshots()):
            if snapshot.watermark is not None and snapshot.watermark <= arguments.watermark:
                return _roll_back(table, snapshot, arguments.dry_run)
        raise SnapshotNotFoundError(
            f"table {table.identifier} has no snapshot with watermark {arguments.watermark} or an earlier one"
        )


def _roll_back(table: Table, target: Snapshot, dry_run: bool) -> list[_RollbackRow]:
    done = rollback(table, target, dry_run=dry_run)
    snapshots = (done.previous_snapshot, done.snapshot, done.snapshots)
    counts = (len(done.tags), len(done.consumers), done.data_files, done.manifests, done.bytes)
    return [_RollbackRow(*snapshots, *counts)]
