"""Changes of a range of snapshots, commit by commit, for engines that read a feed of changes.

Source: Spark's `Changelog`: an engine pairs the rows before and after a commit by key, and drops those that
stayed, which have the same version before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.store.merge.merge import RowKind
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.pruning.split import Split
from lockgate.framework.store.scan.change_files import ChangeSource, change_files, change_source
from lockgate.framework.store.streams.passed_snapshots import oldest_change, passed_snapshot
from lockgate.framework.store.streams.stream import check_followed, check_written_alike
from lockgate.framework.store.streams.units import Unit, units_of_changes, units_of_states

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@dataclass(frozen=True)
class ChangedFiles:
    """The files that tell one part of what a commit changed; `kind` is that of all rows, None: their own."""

    split: Split = field(repr=False)
    kind: RowKind | None
    snapshot: Snapshot


@dataclass(frozen=True)
class ChangeRange:
    """Snapshots with after < id <= upto.

    `has_states`: of some commits only the rows before and after tell, among which are rows that stayed.
    """

    after: int
    upto: int
    has_states: bool


def range_of(
    table: TableHandle, after: int | None, upto: int | None, *, keeps_rows_that_stayed: bool = False
) -> ChangeRange:
    """Return the range of changes after a snapshot up to another; None: from the oldest, up to the newest.

    Raises InputError for a range that goes backward or beyond the newest snapshot, SnapshotNotFoundError if
    changes in it have expired, and UnsupportedError for changes that cannot be told: of tables as
    `check_followed` says, and an OVERWRITE of rows without keys unless `keeps_rows_that_stayed`.
    """
    check_followed(table.schema)
    newest = table.snapshot_files.latest_id() or 0
    oldest = oldest_change(table) or 1
    after = oldest - 1 if after is None else after
    upto = newest if upto is None else upto
    if after > upto:
        raise InputError(
            f"changes after snapshot {after} up to snapshot {upto}: the range ends before it begins"
        )
    if upto > newest:
        raise InputError(f"table {table.identifier} has no snapshot {upto} yet: its newest one is {newest}")
    has_states = False
    for number in range(after + 1, upto + 1):
        snapshot = passed_snapshot(table, number)
        check_written_alike(table, snapshot)
        source = change_source(table, snapshot)
        if source is ChangeSource.STATES and not table.schema.has_primary_key and not keeps_rows_that_stayed:
            raise UnsupportedError(
                f"snapshot {number} of table {table.identifier} replaced rows that have no key, so nothing "
                "tells rows that stayed from new ones: read the ranges before and after it, or give "
                "deduplicationMode = 'none' for all rows before and after it"
            )
        has_states = has_states or _has_state_changes(table, source)
    return ChangeRange(after, upto, has_states)


def changed_files(table: TableHandle, changes: ChangeRange) -> list[ChangedFiles]:
    """Return the files of a range, from old to new; raises as `range_of`."""
    found = []
    for number in range(changes.after + 1, changes.upto + 1):
        snapshot = passed_snapshot(table, number)
        check_written_alike(table, snapshot)
        found += [
            ChangedFiles(unit.split(table, table.schema), unit.kind, snapshot)
            for unit in _units(table, snapshot)
        ]
    return found


def _has_state_changes(table: TableHandle, source: ChangeSource) -> bool:
    # Rows that a commit adds to a table with keys say nothing of those that they replace.
    return source is ChangeSource.STATES or (source is ChangeSource.DELTA and table.schema.has_primary_key)


def _units(table: TableHandle, snapshot: Snapshot) -> list[Unit]:
    if _has_state_changes(table, change_source(table, snapshot)):
        return list(units_of_states(table.schema, change_files(table, snapshot, as_states=True)))
    return list(units_of_changes(table, table.schema, snapshot, kinds=True, overwrites=None).units)
