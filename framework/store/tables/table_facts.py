"""Methods of a table by which engines learn what it holds, what its options select, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.framework.io import named_errors
from lockgate.framework.store.tables.table_history import TableHistory

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.framework.access import Decision, Visibility
    from lockgate.framework.store.confidential.decided_masks import DecidedMasks
    from lockgate.framework.store.confidential.integrity import Mode
    from lockgate.framework.store.metadata.snapshot import Snapshot
    from lockgate.framework.store.scan.matching_rows import StripeRange
    from lockgate.framework.store.scan.read_request import ReadRequest
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.scan.snapshot_selection import Between, Selection
    from lockgate.framework.store.streams.change_range import ChangedFiles, ChangeRange
    from lockgate.framework.store.streams.stream import TableStream
    from lockgate.framework.types import DataField
    from lockgate.pushdown import Predicate


@checked_arguments
class TableFacts(TableHistory):
    """The facts that engines ask of a table, by methods of `Table`."""

    # --- snapshots ---------------------------------------------------------------------------

    @named_errors
    def selection(self, options: Mapping[str, str] | None = None, zone: str = "UTC") -> Selection:
        """Return what the read options of a query select; without any, what the table's own options do.

        See `snapshot_selection.selection_of` and `table_selection.table_selection`.
        """
        from lockgate.framework.store.scan.snapshot_selection import selection_of
        from lockgate.framework.store.scan.table_selection import table_selection

        return table_selection(self, zone) if options is None else selection_of(self, options, zone)

    @named_errors
    def held_snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot that exists, or has expired and is held by a tag; SnapshotNotFoundError else."""
        from lockgate.framework.store.metadata.references import held_snapshot

        return held_snapshot(self, snapshot_id)

    @named_errors
    def number_called(self, version: str) -> int:
        """Return the number of the snapshot that a version names; see `snapshot_selection.number_called`."""
        from lockgate.framework.store.scan.snapshot_selection import number_called

        return number_called(self, version)

    @named_errors
    def snapshot_at(self, millis: int) -> int:
        """Return the newest snapshot of a time or before, in milliseconds; NotFoundError if there is none."""
        from lockgate.framework.store.scan.snapshot_selection import snapshot_at

        return snapshot_at(self, millis)

    @named_errors
    def newest_change(self) -> Snapshot | None:
        """Return the newest snapshot that may show other rows than the one before; None if there is none."""
        from lockgate.framework.store.scan.readable_files import newest_change

        return newest_change(self)

    @named_errors
    def selection_for(
        self, options: Mapping[str, str], zone: str, *, snapshot: int, travels: bool, writes: bool
    ) -> Selection:
        """Return what a query of an engine reads; see `table_selection.selection_for`."""
        from lockgate.framework.store.scan.table_selection import selection_for

        return selection_for(self, options, zone, snapshot=snapshot, travels=travels, writes=writes)

    # --- what options say --------------------------------------------------------------------

    @property
    @named_errors
    def own_options(self) -> dict[str, str]:
        """The options that users gave, without those by which replacements are kept apart."""
        from lockgate.framework.store.metadata.generations import GENERATION

        return {key: value for key, value in self.schema.options.items() if key != GENERATION}

    @property
    @named_errors
    def defaults(self) -> dict[str, str]:
        """The defaults of columns, as Spark's SQL spells them."""
        from lockgate.framework.store.schema.defaults import default_sql

        found = ((field.name, default_sql(field)) for field in self.schema.fields)
        return {name: default for name, default in found if default is not None}

    @property
    @named_errors
    def clustering_columns(self) -> tuple[str, ...]:
        """The columns by which writers order new rows."""
        from lockgate.framework.store.schema.clustering import clustering_columns

        return clustering_columns(self.schema)

    @property
    @named_errors
    def refused_statements(self) -> dict[str, str]:
        """Why statements that change rows one by one would not do what they say, by their names."""
        from lockgate.framework.store.rows.row_kinds import why_no_statement

        return why_no_statement(self.schema)

    @property
    @named_errors
    def reads_branch(self) -> bool:
        """Say whether options of the table have partitions read from a branch."""
        from lockgate.framework.store.handle import read_branch

        return read_branch(self.schema) is not None

    @property
    @named_errors
    def leaves_files_out(self) -> bool:
        """Say whether options of the table leave files out, whichever snapshot is read."""
        from lockgate.framework.store.pruning.file_options import has_file_options

        return has_file_options(self.schema)

    @named_errors
    def why_unordered(self, name: str) -> str | None:
        """Return why rows cannot be ordered by a column; None if they can."""
        from lockgate.framework.store.schema.clustering import why_unordered

        return why_unordered(self.schema, name)

    @named_errors
    def split_sizes(self, options: Mapping[str, str]) -> dict[str, int | None]:
        """Return what a query's options, else the table's, say of splits, in bytes by option."""
        from lockgate.framework.store.scan.snapshot_selection import split_sizes

        return split_sizes(self, options)

    @named_errors
    def encrypted_alike(
        self, options: Mapping[str, str], column: str, entries: Sequence[Mapping[str, Any]]
    ) -> dict[str, str] | None:
        """Return `options` that encrypt one column more, as `entries` of another say; None if none do."""
        from lockgate.framework.store.confidential.former_encryption import encrypted_alike

        return encrypted_alike(self.schema, options, column, entries)

    @named_errors
    def keeps_partition(self, predicate: Predicate) -> Callable[[tuple[Any, ...]], bool]:
        """Return the choice of partitions that a predicate makes; UnsupportedError if it splits some."""
        from lockgate.framework.store.pruning.pruners import PartitionPruner

        return PartitionPruner(self.schema, predicate).keeps_partition

    # --- scans and streams -------------------------------------------------------------------

    @named_errors
    def require_keys(
        self, seen: Visibility, planned: ScanPlan, columns: Collection[str], purpose: str
    ) -> bool:
        """Raise KeyMissingError if a column can only be read as its mask; see `column_visibility`."""
        from lockgate.framework.store.confidential.column_visibility import require_keys

        return require_keys(self, seen, planned, columns, purpose)

    @named_errors
    def integrity_mode(self, planned: ScanPlan, withheld: Collection[str] = ()) -> Mode:
        """Return how a reader without the `withheld` keys checks the files of a plan by their tags."""
        from lockgate.framework.store.confidential.integrity import IntegrityPolicy

        return IntegrityPolicy(self, withheld).mode_of_all(planned.schemas.values())

    @named_errors
    def stripe_ranges(self, planned: ScanPlan) -> dict[str, tuple[StripeRange, ...]]:
        """Return the stripes to read of files of which pruners rule out others, by path."""
        from lockgate.framework.store.scan.matching_rows import stripe_ranges

        return stripe_ranges(self, planned)

    @named_errors
    def masks_of(self, decision: Decision) -> DecidedMasks:
        """Return the masks of a decision, to be put on rows of the table."""
        from lockgate.framework.store.confidential.decided_masks import DecidedMasks

        return DecidedMasks(decision.masks, self.schema)

    @named_errors
    def stream(self, options: Mapping[str, str], *, kinds: bool) -> TableStream:
        """Return a streaming query of the table; see `stream.TableStream`."""
        from lockgate.framework.store.streams.stream import TableStream

        return TableStream(self, options, kinds=kinds)

    @named_errors
    def change_range(
        self, after: int | None, upto: int | None, *, keeps_rows_that_stayed: bool = False
    ) -> ChangeRange:
        """Return the changes after a snapshot up to another; see `change_range.range_of`."""
        from lockgate.framework.store.streams.change_range import range_of

        return range_of(self, after, upto, keeps_rows_that_stayed=keeps_rows_that_stayed)

    @named_errors
    def changed_files(self, changes: ChangeRange) -> list[ChangedFiles]:
        """Return the files of a range, from old to new; raises as `change_range`."""
        from lockgate.framework.store.streams.change_range import changed_files

        return changed_files(self, changes)

    # --- system tables -----------------------------------------------------------------------

    @named_errors
    def system_columns(self, name: str) -> tuple[DataField, ...]:
        """Return the columns of `t$<name>`; NotFoundError offers the nearest names."""
        from lockgate.framework.store.system.system_tables import columns_of_system

        return columns_of_system(self, name)

    @named_errors
    def check_view(self, name: str | None, between: Between | None) -> None:
        """Raise UnsupportedError if `t$<name>`, which shows rows, cannot show a range of snapshots."""
        from lockgate.framework.store.system.row_kind_tables import check_view

        check_view(self, name, between)

    @named_errors
    def system_batches(self, name: str, request: ReadRequest | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `t$<name>` piece by piece; see `system_tables.system_batches`."""
        from lockgate.framework.store.system.system_tables import system_batches

        return system_batches(self, name, request)
