"""Start of a stream: the position from which a new query follows a table.

Source: Paimon's `DataTableStreamScan` and its starting scanners. Unlike there, a start that has expired is an
error, since to begin with the oldest remaining snapshot would lose rows without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import InputError, OptionError, SnapshotNotFoundError
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.scan.snapshot_selection import text_millis
from lockgate.framework.store.streams.passed_snapshots import oldest_change
from lockgate.framework.store.streams.position import StreamPlace
from lockgate.framework.store.streams.stream_options import (
    SCAN_MODE,
    SNAPSHOT_ID,
    TIMESTAMP,
    TIMESTAMP_MILLIS,
    StreamOptions,
)

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_TIMES = (TIMESTAMP, TIMESTAMP_MILLIS)


def start_of(table: TableHandle, options: StreamOptions, zone: str = "UTC") -> StreamPlace:
    """Return where a new query starts; `zone` is that of times written as text.

    Raises OptionError for options that contradict each other, InputError for a snapshot that is yet to come,
    and SnapshotNotFoundError for one that has expired.
    """
    mode = _mode(options)
    latest = table.latest_snapshot()
    if mode in ("from-snapshot", "from-snapshot-full"):
        return _from_snapshot(table, options.get(SNAPSHOT_ID), latest, full=mode.endswith("full"))
    if mode == "from-timestamp":
        return _from_time(table, options, zone)
    if latest is None:
        return _changes_from(table, 1)
    if mode == "latest":
        return _changes_from(table, latest.id + 1, latest)
    return _state_of(table, _compacted(table, latest) if mode == "compacted-full" else latest)


def resumed(table: TableHandle, next_snapshot: int) -> StreamPlace:
    """Return where a consumer goes on that needs `next_snapshot`; SnapshotNotFoundError if that has
    expired.
    """
    return _from_snapshot(table, next_snapshot, table.latest_snapshot(), full=False)


def _mode(options: StreamOptions) -> str:
    mode: str = options.get(SCAN_MODE)
    named = [each.key for each in (SNAPSHOT_ID, *_TIMES) if each in options]
    if len(named) > 1:
        raise OptionError(f"options {' and '.join(map(repr, named))} contradict each other: give one of them")
    if mode == "default":
        if not named:
            return "latest-full"
        return "from-snapshot" if named == [SNAPSHOT_ID.key] else "from-timestamp"
    if mode == "full":
        mode = "latest-full"
    wanted = {"from-timestamp": _TIMES, "from-snapshot": (SNAPSHOT_ID,), "from-snapshot-full": (SNAPSHOT_ID,)}
    needed = [each.key for each in wanted.get(mode, ())]
    if needed and not set(named) & set(needed):
        raise OptionError(
            f"option {SCAN_MODE.key!r} = {mode!r} needs option {' or '.join(map(repr, needed))}"
        )
    if set(named) - set(needed):
        raise OptionError(f"options {SCAN_MODE.key!r} = {mode!r} and {named[0]!r} contradict each other")
    return mode


def _changes_from(table: TableHandle, number: int, before: Snapshot | None = None) -> StreamPlace:
    return StreamPlace(number, 0, False, table.table_id, "" if before is None else before.commit_id)


def _state_of(table: TableHandle, snapshot: Snapshot) -> StreamPlace:
    return StreamPlace(snapshot.id, 0, True, table.table_id, snapshot.commit_id)


def _from_snapshot(table: TableHandle, number: int, latest: Snapshot | None, *, full: bool) -> StreamPlace:
    number = max(number, 1)
    newest = 0 if latest is None else latest.id
    if number > newest + 1 or (full and number > newest):
        raise InputError(
            f"table {table.identifier} cannot be followed from snapshot {number}: its newest one is {newest}"
        )
    if full:
        return _state_of(table, table.snapshot(number))
    if number == newest + 1:
        return _changes_from(table, number, latest)
    oldest = oldest_change(table)
    if oldest is None or number < oldest:
        raise SnapshotNotFoundError(
            f"table {table.identifier} cannot be followed from snapshot {number}: the changes before "
            f"snapshot {oldest} have expired. Start there, or with {SCAN_MODE.key!r} = 'latest-full'"
        )
    return _changes_from(table, number)


def _from_time(table: TableHandle, options: StreamOptions, zone: str) -> StreamPlace:
    if TIMESTAMP in options:
        millis = text_millis(TIMESTAMP.key, options.get(TIMESTAMP), zone)
    else:
        millis = options.get(TIMESTAMP_MILLIS)
    before = None
    for snapshot in table.snapshots():
        if snapshot.time_millis < millis:
            before = snapshot
    if before is not None:
        return _changes_from(table, before.id + 1, before)
    ids = table.snapshot_files.ids()
    if ids and ids[0] > 1:
        raise SnapshotNotFoundError(
            f"table {table.identifier} cannot be followed from that time: snapshots from after it have "
            f"expired; the oldest remaining one is {ids[0]}"
        )
    return _changes_from(table, 1)


def _compacted(table: TableHandle, latest: Snapshot) -> Snapshot:
    """Return the newest snapshot of a compaction; the newest of all if there was none."""
    found = (each for each in reversed(table.snapshots()) if each.commit_kind is CommitKind.COMPACT)
    return next(found, latest)
