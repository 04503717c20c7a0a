"""`rollback` and its variants: restore an earlier state of a table."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from lockgate.errors import InputError, SnapshotNotFoundError
from lockgate.framework.store import Snapshot, Table, check_writable, number_called
from lockgate.framework.store.history import restore, rollback, snapshot_at, target_of
from lockgate.framework.types import micros_of
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

_TABLE = Parameter("table", "STRING", doc="the table, 'database.table'")
_TARGET = (
    _TABLE,
    Parameter("version", "STRING", None, "the number of a snapshot, or the name of a tag"),
    Parameter("snapshot", "BIGINT", None, "the number of a snapshot"),
    Parameter("tag", "STRING", None, "the name of a tag"),
)
_DRY_RUN = Parameter("dry_run", "BOOLEAN", False, "only count what would be removed")
_RESULT = (
    ("previous_snapshot_id", "BIGINT"),
    ("current_snapshot_id", "BIGINT"),
    ("deleted_snapshots_count", "BIGINT"),
    ("deleted_tags_count", "BIGINT"),
    ("reset_consumers_count", "BIGINT"),
    ("deleted_data_files_count", "BIGINT"),
    ("deleted_manifests_count", "BIGINT"),
    ("deleted_bytes", "BIGINT"),
)


class _RollbackTo(Procedure):
    """Removes all snapshots and tags after a target, and the files that only they needed."""

    result = _RESULT

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Roll back; CommitConflictError, with nothing changed, if another commit lands first."""
        table = context.table(arguments["table"])
        return [_row(table, self.target(table, arguments), arguments["dry_run"])]

    @abstractmethod
    def target(self, table: Table, arguments: dict[str, Any]) -> Snapshot:
        """Return the snapshot that stays the newest; SnapshotNotFoundError if there is none."""


class Rollback(_RollbackTo):
    """Removes all snapshots and tags after one, and the files that only they needed.

    Data is only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "rollback"
    description = "Restore a table to a snapshot or tag, and remove everything later."
    parameters = (*_TARGET, _DRY_RUN)

    def target(self, table: Table, arguments: dict[str, Any]) -> Snapshot:
        """Return the snapshot that the arguments name."""
        return _target(table, self.name, arguments)


class RollbackToAsLatest(Procedure):
    """Commits an earlier state of a table as its newest snapshot; all snapshots and tags stay.

    Readers, consumers and streams are not disturbed. Data files of that state which are gone by now come
    back under new names, as hard links where there are some; no row is read, so no key is needed. If killed
    halfway, it leaves files for `remove_orphan_files`, and the table as it was.
    """

    name = "rollback_to_as_latest"
    description = "Commit an earlier state of a table as its newest snapshot, and remove nothing."
    parameters = (*_TARGET, Parameter("dry_run", "BOOLEAN", False, "only count what would change"))
    result = (
        ("previous_snapshot_id", "BIGINT"),
        ("snapshot_id", "BIGINT"),
        ("removed_files_count", "BIGINT"),
        ("restored_files_count", "BIGINT"),
        ("restored_bytes", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Restore; CommitConflictError, with nothing changed, if another commit lands first."""
        table = context.table(arguments["table"])
        check_writable(table.schema)
        done = restore(table, _target(table, self.name, arguments), dry_run=arguments["dry_run"])
        files = (done.removed_files, done.restored_files, done.restored_bytes)
        return [(done.previous_snapshot, done.snapshot, *files)]


def _target(table: Table, procedure: str, arguments: dict[str, Any]) -> Snapshot:
    given = {name: arguments[name] for name in ("version", "snapshot", "tag")}
    given = {name: value for name, value in given.items() if value is not None}
    if len(given) != 1:
        raise InputError(f"{procedure} needs exactly one of version, snapshot and tag")
    version = given.get("version", "").strip()
    if "version" in given:
        if not version:
            raise InputError(
                f"{procedure}: version is empty: give the number of a snapshot or the name of a tag"
            )
        number = number_called(table, version)
        ids = {str(each.id) for each in table.snapshots()}
        if version in ids and number != int(version):
            # What is removed cannot be brought back.
            raise InputError(
                f"{procedure}: {version!r} is the number of one snapshot and the name of a tag on snapshot "
                f"{number}: give snapshot => {version} or tag => '{version}'"
            )
        given = {"tag": version} if version in {tag.name for tag in table.tags()} else {"snapshot": number}
    return target_of(table, given.get("snapshot"), given.get("tag"))


class RollbackToTimestamp(_RollbackTo):
    """Removes all snapshots and tags after the newest snapshot that is not younger than a time."""

    name = "rollback_to_timestamp"
    description = "Restore a table to a time, and remove everything later."
    parameters = (
        _TABLE,
        Parameter("timestamp", "TIMESTAMP", doc="the time: the newest snapshot that is not younger stays"),
        _DRY_RUN,
    )

    def target(self, table: Table, arguments: dict[str, Any]) -> Snapshot:
        """Return the newest snapshot at a time; SnapshotNotFoundError if all snapshots are younger."""
        return snapshot_at(table, micros_of(arguments["timestamp"]) // 1000)


class RollbackToWatermark(_RollbackTo):
    """Removes all snapshots and tags after the newest snapshot whose watermark is not later than one."""

    name = "rollback_to_watermark"
    description = "Restore a table to a watermark, and remove everything later."
    parameters = (
        _TABLE,
        Parameter("watermark", "BIGINT", doc="the watermark, in milliseconds since 1970"),
        _DRY_RUN,
    )

    def target(self, table: Table, arguments: dict[str, Any]) -> Snapshot:
        """Return the newest snapshot up to a watermark; SnapshotNotFoundError if there is none."""
        wanted = arguments["watermark"]
        for snapshot in reversed(table.snapshots()):
            if snapshot.watermark is not None and snapshot.watermark <= wanted:
                return snapshot
        raise SnapshotNotFoundError(
            f"table {table.identifier} has no snapshot with watermark {wanted} or an earlier one"
        )


def _row(table: Table, target: Snapshot, dry_run: bool) -> tuple[Any, ...]:
    done = rollback(table, target, dry_run=dry_run)
    return (
        done.previous_snapshot,
        done.snapshot,
        done.snapshots,
        len(done.tags),
        len(done.consumers),
        done.data_files,
        done.manifests,
        done.bytes,
    )
