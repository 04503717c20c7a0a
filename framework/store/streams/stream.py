"""A stream of a table: which files each batch reads, as decided from positions and metadata alone.

Nothing is remembered between two calls, so a query that starts again from its checkpoint reads the same
batches. Source: Paimon's `PaimonMicroBatchStream` and `DataTableStreamScan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework import options as table_options
from lockgate.framework.options import NO_CHANGELOG
from lockgate.framework.store.merge.merge import merge_plan
from lockgate.framework.store.merge.merge_plan import FIRST_ROW
from lockgate.framework.store.metadata.generations import check_generation
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.pruning.split import Split
from lockgate.framework.store.scan.readable_files import POSTPONED
from lockgate.framework.store.schema.unsupported_features import (
    check_no_fallback_branch,
    check_readable,
    check_unselected,
)
from lockgate.framework.store.streams.passed_snapshots import passed_snapshot
from lockgate.framework.store.streams.position import StreamPlace
from lockgate.framework.store.streams.start import resumed, start_of
from lockgate.framework.store.streams.stream_options import (
    CONSUMER_ID,
    IGNORE_PROGRESS,
    READ_OVERWRITE,
    STREAM_OPTIONS,
    Limits,
    StreamOptions,
)
from lockgate.framework.store.streams.units import Unit, Units, units_of_changes, units_of_state

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema

# Commits without changes, such as compactions, start no batch until there are so many.
_QUIET_COMMITS = 10

_MERGED_ONLY_BY_READERS = {
    "partial-update": "rows hold some columns only",
    "aggregation": "rows hold parts of sums",
    FIRST_ROW: "rows may be of keys that the table has already",
}


@dataclass(frozen=True)
class Batch:
    """What one batch of a stream reads.

    `splits` have for each the kind of all its rows, None where rows have their own (`kinds`). With
    `of_states` a merge drops what is deleted. `left_out` counts retracts that no row shows, as far as the
    metadata counts them, and `overwrites` commits whose rows are left out.
    """

    snapshot_id: int
    units: tuple[Unit, ...] = field(repr=False, default=())
    splits: tuple[Split, ...] = field(repr=False, default=())
    of_states: bool = False
    left_out: int = 0
    overwrites: int = 0

    @property
    def kinds(self) -> tuple[int | None, ...]:
        """The kind of each split."""
        return tuple(unit.kind for unit in self.units)


class TableStream:
    """One streaming query of a table, under the schema that it was analysed with.

    With `kinds` it gives out each row with its kind, retracts too. Raises UnsupportedError for tables whose
    changes cannot be followed, and OptionError as `StreamOptions`.
    """

    def __init__(self, table: TableHandle, options: Mapping[str, str], *, kinds: bool) -> None:
        self._table = table
        self._schema: TableSchema = table.schema
        self._kinds = kinds
        self.options = StreamOptions(table.schema, options)
        check_followed(table.schema)

    @property
    def consumer(self) -> str:
        """The consumer that the options name; empty if they name none."""
        return str(self.options.get(CONSUMER_ID)).strip()

    # --- where it starts and ends ---

    @staticmethod
    def place(text: str) -> StreamPlace:
        """Return the place that a checkpoint holds; InputError for a text that is none."""
        return StreamPlace.from_json(text)

    def start(self, zone: str = "UTC", next_snapshot: int | None = None) -> StreamPlace:
        """Return where a new query starts: as its options say, or where its consumer goes on."""
        if next_snapshot is not None and not self.options.get(IGNORE_PROGRESS):
            return resumed(self._table, next_snapshot)
        return start_of(self._table, self.options, zone)

    def newest(self) -> int:
        """Return the number of the newest snapshot, 0 if there is none."""
        return self._table.snapshot_files.latest_id() or 0

    def end_of_batch(
        self,
        start: StreamPlace,
        *,
        upto: int | None = None,
        limited: bool = True,
        waited_millis: int | None = None,
    ) -> StreamPlace:
        """Return where a batch from `start` ends; `start` itself if there is nothing to read yet.

        It reads no snapshot beyond `upto`, by default the newest, and no more than the options' limits if
        `limited`. `waited_millis` is the time since the last batch, None if it waits for no rows. Raises
        SnapshotNotFoundError if changes have expired that were not read, and InputError if the table was
        rolled back, replaced, or changed its columns.
        """
        newest = self.newest()
        self._check_identity(start, newest)
        last = newest if upto is None else min(upto, newest)
        end = _End(self.options.limits if limited else Limits(), start)
        goes_on = not start.scans_state or end.take(self._units(start.snapshot_id, scans_state=True))
        while goes_on and end.position.snapshot_id <= last:
            goes_on = end.take(self._units(end.position.snapshot_id, scans_state=False))
        if not end.counts or end.waits(waited_millis):
            return start
        return end.position

    def batch(self, start: StreamPlace, end: StreamPlace) -> Batch:
        """Return what lies between two positions; raises as `end_of_batch`."""
        self._check_identity(start, self.newest())
        if end.sort_key < start.sort_key or end.table_id not in (start.table_id, self._table.table_id):
            raise InputError(f"a stream cannot go from {start.to_json()} to {end.to_json()}")
        units: list[Unit] = []
        of_states, left_out, overwrites = False, 0, 0
        for found in self._between(start, end):
            units += found.units
            of_states = of_states or (found.of_states and bool(found.units))
            left_out += found.removed
            overwrites += 0 if self._kinds or self.options.reads_overwrites else found.overwrites
            if not self._kinds and not found.of_states:
                left_out += sum(unit.retracts for unit in found.units)
        splits = tuple(unit.split(self._table, self._schema) for unit in units)
        return Batch(end.snapshot_id, tuple(units), splits, of_states, left_out, overwrites)

    def _between(self, start: StreamPlace, end: StreamPlace) -> Iterator[Units]:
        number, index, scans_state = start.snapshot_id, start.index, start.scans_state
        while (number, not scans_state, index) < end.sort_key:
            units = self._units(number, scans_state=scans_state)
            ends_here = (end.snapshot_id, end.scans_state) == (number, scans_state)
            stop = end.index if ends_here else len(units.units)
            first = index == 0  # what no unit shows counts once, with the first of a snapshot
            yield Units(
                units.snapshot,
                units.units[index:stop],
                units.of_states,
                units.removed if first else 0,
                units.overwrites if first else 0,
            )
            if ends_here:
                return
            number, index, scans_state = number + 1, 0, False

    # --- what a snapshot holds ---

    def _units(self, number: int, *, scans_state: bool) -> Units:
        snapshot = self._snapshot(number, scans_state=scans_state)
        check_written_alike(self._table, snapshot)
        if scans_state:
            return units_of_state(self._table, self._schema, snapshot)
        overwrites = self.options.reads_overwrites
        found = units_of_changes(
            self._table, self._schema, snapshot, kinds=self._kinds, overwrites=overwrites
        )
        if found.overwrites and overwrites is None and not self._kinds:
            raise UnsupportedError(
                f"snapshot {number} of table {self._table.identifier} is an OVERWRITE (INSERT OVERWRITE, or "
                "an UPDATE, DELETE or MERGE that wrote files again): its new rows replace some that this "
                f"stream has read. Restart the query with option {READ_OVERWRITE.key!r} = 'true' to read its "
                "rows as new ones, or 'false' to leave them out, or follow $audit_log, which names the "
                "replaced rows"
            )
        return found

    def _snapshot(self, number: int, *, scans_state: bool) -> Snapshot:
        # A state needs its data files, which a changelog that outlives its snapshot does not keep.
        return self._table.snapshot(number) if scans_state else passed_snapshot(self._table, number)

    def _check_identity(self, start: StreamPlace, newest: int) -> None:
        """Raise InputError if the table is no longer the one that was read up to `start`.

        What was read is known by its commit as well, also where the id is one that an earlier version made.
        """
        inside = start.scans_state or start.index > 0
        read = start.snapshot_id if inside else start.snapshot_id - 1
        is_there = bool(start.commit_id) and self._table.snapshot_files.exists(read)
        is_same = is_there and self._table.snapshot(read).commit_id == start.commit_id
        if start.table_id != self._table.table_id and not is_same:
            raise InputError(
                f"the checkpoint is of another table than {self._table.identifier} is now, which was dropped "
                "and created again, or is not the one that the query followed: start the query with a "
                "checkpoint of its own"
            )
        if start.commit_id and (newest < read or (is_there and not is_same)):
            raise InputError(
                f"table {self._table.identifier} was rolled back behind snapshot {read}, which this stream "
                "has read: its rows may be gone from the table. Start a query with a checkpoint of its own"
            )


class _End:
    """The end of a batch that grows unit by unit."""

    def __init__(self, limits: Limits, start: StreamPlace) -> None:
        self.limits = limits
        self.position = start
        self.rows = 0
        self._files = self._bytes = self._commits = self._quiet = 0
        self._of_states: bool | None = None
        self._counted = False

    @property
    def counts(self) -> bool:
        """Say whether there is enough between start and end for a batch."""
        return self._files > 0 or self._counted or self._quiet >= _QUIET_COMMITS

    def waits(self, waited_millis: int | None) -> bool:
        """Say whether a batch of so few rows waits for more."""
        least, delay = self.limits.least_rows, self.limits.delay_millis
        if waited_millis is None or least is None or delay is None:
            return False
        return self.rows < least and waited_millis < delay

    def take(self, found: Units) -> bool:
        """Take the units of a snapshot from the position on, as far as limits allow; False if that is not
        all.
        """
        start = self.position
        units = found.units[start.index :]
        limits = self.limits
        if units:
            # Rows of states and of changes are merged in different ways.
            if self._of_states is not None and (self._of_states or found.of_states):
                return False
            if limits.commits is not None and self._commits >= limits.commits:
                return False
            self._of_states = found.of_states
            self._commits += 1
        taken = 0
        for unit in units:
            if self._files and self._is_full(unit):
                break
            self._files += unit.files
            self._bytes += unit.bytes
            self.rows += unit.rows
            taken += 1
        identity = (start.table_id, found.snapshot.commit_id)
        if taken < len(units):
            index = start.index + taken
            # Nothing of it was read: what was read last stays what it was.
            if index:
                self.position = StreamPlace(start.snapshot_id, index, start.scans_state, *identity)
            return False
        if found.removed or found.overwrites:
            self._counted = True
        if not found.units:
            self._quiet += 1
        self.position = StreamPlace(found.snapshot.id + 1, 0, False, *identity)
        return True

    def _is_full(self, unit: Unit) -> bool:
        limits = self.limits
        return (
            (limits.files is not None and self._files + unit.files > limits.files)
            or (limits.bytes is not None and self._bytes + unit.bytes > limits.bytes)
            or (limits.rows is not None and self.rows + unit.rows > limits.rows)
        )


def check_followed(schema: TableSchema) -> None:
    """Raise UnsupportedError if the changes of a table with this schema cannot be followed."""
    check_readable(schema)
    check_no_fallback_branch(schema)
    check_unselected(schema, honoured=STREAM_OPTIONS)
    if not schema.has_primary_key or schema.changelog_producer != NO_CHANGELOG:
        return
    engine = schema.table_options.get_option(table_options.MERGE_ENGINE)
    if engine in _MERGED_ONLY_BY_READERS:
        raise UnsupportedError(
            f"a stream of a table with 'merge-engine' = {engine!r} needs a changelog, since its written "
            f"{_MERGED_ONLY_BY_READERS[engine]}: set 'changelog-producer' = 'lookup' or 'full-compaction'"
        )
    if schema.bucket_count == POSTPONED:
        raise UnsupportedError(
            "a stream of a table with postponed buckets (bucket = -2) needs a changelog, since rows wait for "
            "their bucket: set 'changelog-producer' = 'lookup' or 'full-compaction'"
        )


def check_written_alike(table: TableHandle, snapshot: Snapshot) -> None:
    """Raise InputError if a snapshot has columns that the table, as it was loaded, does not know."""
    schema = table.schema
    if snapshot.schema_id == schema.id:
        return
    written = table.schema_of(snapshot.schema_id)
    check_generation(schema, written, f"snapshot {snapshot.id}")
    if snapshot.schema_id < schema.id:
        return
    check_followed(written)
    if written.fields != schema.fields or merge_plan(written) != merge_plan(schema):
        raise InputError(
            f"the columns of table {table.identifier} have changed since the stream began, in or before "
            f"snapshot {snapshot.id}: restart the query from its checkpoint, which reads on with the new "
            "columns"
        )
