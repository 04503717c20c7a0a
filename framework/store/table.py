"""One table, as everything above the store uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.access import Action
from lockgate.framework.io.named_errors import named_errors
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.grants import grant
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.identifier import Identifier
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_writable
from lockgate.pushdown import AlwaysTrue

if TYPE_CHECKING:
    from datetime import timedelta

    from lockgate.framework.store.commit.commit_request import Overwrite
    from lockgate.framework.store.commit.vector_changes import MarkedRows
    from lockgate.framework.store.history.changes import Change
    from lockgate.framework.store.history.rollback import RollbackResult
    from lockgate.framework.store.history.tags import Released
    from lockgate.framework.store.metadata.tag_files import Tag
    from lockgate.framework.store.scan.aggregates import AggregateAnswer
    from lockgate.framework.store.scan.request import ReadRequest
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.scan.selection import Between
    from lockgate.pushdown import Aggregate, Predicate, SortKey

# What may be written: a table, or batches of one schema.
Data: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]"


class Table(TableHandle):
    """A table with the schema it had when it was loaded; snapshots are looked up by each call."""

    # What the warehouse chooses for values of encrypted columns that a table would get in the clear.
    on_plaintext = ""

    # --- state -------------------------------------------------------------------------------

    def with_schema(self, schema_id: int) -> Table:
        """Return the table as it is under one of its schemas, for a query that was analysed with it."""
        if schema_id == self.schema.id:
            return self
        return self.sibling(self.identifier, self.schema_of(schema_id))

    def sibling(self, identifier: Identifier, schema: TableSchema) -> Table:
        """Return the same table under another name or schema: a branch of it, or as it was."""
        table = Table(identifier, self.location, schema, self.file_system, self.keys, self.paths.external)
        table.principal = self.principal
        return table

    @named_errors
    def set_wrapped_keys(self, text: str) -> None:
        """Store another `orc.keys.wrapped`, made by `EnvelopeKeyProvider.roll` or its kin, in a new schema.

        It holds for tables that are loaded from now on. Raises OptionError for a malformed text, InputError
        if it lacks a key that the present one has, CommitConflictError if the table was altered concurrently.
        """
        grant(self, Action.ALTER)
        from lockgate.framework.store.ddl.wrapped_keys import store_wrapped_keys

        store_wrapped_keys(self, text)

    # --- reading -----------------------------------------------------------------------------

    @named_errors
    def scan(
        self,
        predicate: Predicate | ReadRequest | None = None,
        *,
        columns: Sequence[str] | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        between: Between | None = None,
        limit: int | None = None,
        order: Sequence[SortKey] = (),
        own_schema: bool = True,
    ) -> ScanPlan:
        """Plan a scan of the newest snapshot, of `snapshot_id`, of a tag, or of what snapshots of a range
        added; see `scan.plan_scan`. A `ReadRequest` in the first place says all of it."""
        from lockgate.framework.store.scan.request import ReadRequest
        from lockgate.framework.store.scan.scan import plan_scan

        if isinstance(predicate, ReadRequest):
            return plan_scan(self, predicate)
        return plan_scan(
            self,
            ReadRequest(
                predicate=AlwaysTrue() if predicate is None else predicate,
                columns=None if columns is None else tuple(columns),
                snapshot_id=snapshot_id,
                tag=tag,
                between=between,
                limit=limit,
                order=tuple(order),
                own_schema=own_schema,
            ),
        )

    @named_errors
    def aggregate(
        self,
        aggregates: Sequence[Aggregate],
        *,
        group_by: Sequence[str] = (),
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
    ) -> AggregateAnswer:
        """Answer COUNT, MIN and MAX from metadata, or say why that is not exact; see
        `aggregates.answer_aggregates`.

        No data file is opened. `predicate` and `group_by` may be of partition columns.
        """
        from lockgate.framework.store.scan.aggregates import answer_aggregates
        from lockgate.framework.store.scan.request import ReadRequest

        paths = [(name,) for name in group_by]
        request = ReadRequest(
            columns=(),
            predicate=AlwaysTrue() if predicate is None else predicate,
            snapshot_id=snapshot_id,
            tag=tag,
        )
        return answer_aggregates(self, aggregates, paths, request)

    @named_errors
    def read(
        self,
        plan: ScanPlan | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> pa.Table:
        """Return the rows of a plan, or of the newest snapshot; see `read.read_table`.

        Give either a `plan` or what to plan, as for `scan`; both are an InputError.
        """
        from lockgate.framework.store.scan.read import read_table

        return read_table(
            self, self._planned(plan, predicate, columns, snapshot_id, tag, limit), strict=strict
        )

    def read_batches(
        self,
        plan: ScanPlan | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
        strict: bool = False,
        own_schema: bool = True,
        threads: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield what `read` returns, piece by piece; `own_schema` as for `scan`.

        `threads` stripes are decoded at a time (None: one for each core): fewer take less memory.
        """
        from lockgate.framework.store.scan.read import read_batches

        planned = self._planned(plan, predicate, columns, snapshot_id, tag, limit, own_schema)
        return read_batches(self, planned, strict=strict, threads=threads)

    def _planned(
        self,
        plan: ScanPlan | None,
        predicate: Predicate | None,
        columns: Sequence[str] | None,
        snapshot_id: int | None,
        tag: str | None,
        limit: int | None,
        own_schema: bool = True,
    ) -> ScanPlan:
        if plan is None:
            return self.scan(
                predicate,
                columns=columns,
                snapshot_id=snapshot_id,
                tag=tag,
                limit=limit,
                own_schema=own_schema,
            )
        if any(wish is not None for wish in (columns, predicate, snapshot_id, tag, limit)):
            raise InputError(
                "a plan holds columns, predicate, snapshot and limit already; give either it or them"
            )
        return plan

    @named_errors
    def system(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Return the rows of the system table `t$<name>`, such as `snapshots`; see `tables.read_system`."""
        from lockgate.framework.store.scan.request import ReadRequest
        from lockgate.framework.store.system.tables import read_system

        request = ReadRequest(
            columns=None if columns is None else tuple(columns),
            predicate=AlwaysTrue() if predicate is None else predicate,
            snapshot_id=snapshot_id,
            tag=tag,
            limit=limit,
        )
        return read_system(self, name, request)

    def changes(self, after: int, upto: int, *, columns: Sequence[str] | None = None) -> Iterator[Change]:
        """Yield what each snapshot after `after` up to `upto` changed; see `changes.read_changes`."""
        from lockgate.framework.store.history.changes import read_changes

        return read_changes(self, after, upto, columns=columns)

    # --- writing -----------------------------------------------------------------------------

    @named_errors
    def write(
        self, data: Data, *, kinds: pa.Array | None = None, overwrite: Mapping[str, Any] | None = None
    ) -> list[CommitMessage]:
        """Write data files, which become visible by `commit`; see `write.write_files`.

        Warns of values of encrypted columns that the table would hold in the clear, or raises PlaintextError
        (`encryption.on-plaintext`). Raises UnsupportedFormatError if another engine gave the table a feature
        that is not written here.
        """
        from lockgate.framework.store.write.plaintext import judged
        from lockgate.framework.store.write.write import write_files

        check_writable(self.schema)
        grant(self, Action.INSERT)
        if overwrite is not None:
            grant(self, Action.DELETE)
        return write_files(self, judged(self, data), kinds=kinds, overwrite=overwrite)

    @named_errors
    def commit(
        self,
        messages: Sequence[CommitMessage],
        *,
        kind: str = CommitKind.APPEND,
        user: str | None = None,
        identifier: int | None = None,
        base_snapshot_id: int | None = None,
        base_commit_id: str | None = None,
        overwrite: Overwrite | None = None,
        marked: Sequence[MarkedRows] = (),
    ) -> Snapshot:
        """Make written files visible as one snapshot; see `commit.commit_messages`."""
        from lockgate.framework.store.commit.commit import commit_messages

        check_writable(self.schema)
        if overwrite is not None:
            grant(self, Action.DELETE)
        return commit_messages(
            self,
            messages,
            kind=kind,
            user=user,
            identifier=identifier,
            base_snapshot_id=base_snapshot_id,
            base_commit_id=base_commit_id,
            overwrite=overwrite,
            marked=marked,
        )

    def abort(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files that `messages` would have added, unless they are live.

        A commit may succeed and yet seem to fail. Where that cannot be found out nothing is deleted: files
        that nobody refers to do no harm.
        """
        from lockgate.framework.store.write.abort import abort_messages

        abort_messages(self, messages)

    @named_errors
    def append(self, data: Data) -> Snapshot:
        """Write rows and commit them; a key table takes the row with a known key as its new version."""
        return self._commit_or_abort(self.write(data))

    @named_errors
    def overwrite(self, data: Data, partition: Mapping[str, Any] | None = None) -> Snapshot:
        """Replace the rows of matching partitions, by default all rows of the table."""
        spec = dict(partition or {})
        return self._commit_or_abort(self.write(data, overwrite=spec), overwrite=spec)

    @named_errors
    def delete(self, keys: pa.Table | Predicate) -> Snapshot:
        """Delete rows: those with `keys`, a table of a key table's key columns, or that match a predicate.

        In tables without a primary key rows are deleted by a predicate where they lie, which takes the option
        `deletion-vectors.enabled`. Raises CommitConflictError if rows found by a predicate were changed
        concurrently.
        """
        from lockgate.framework.store.write.marking import find_rows
        from lockgate.framework.store.write.write import delete_keys

        check_writable(self.schema)
        grant(self, Action.DELETE)
        latest = self.latest_snapshot()
        if isinstance(keys, pa.Table) or self.schema.has_primary_key or not self.schema.has_vectors:
            basis = None if isinstance(keys, pa.Table) else latest
            return self._commit_or_abort(delete_keys(self, keys), basis=basis)
        marked, gone = ([], []) if latest is None else find_rows(self, keys, latest)
        return self._commit_or_abort(gone, basis=latest, marked=marked)

    def _commit_or_abort(
        self,
        messages: Sequence[CommitMessage],
        *,
        overwrite: Mapping[str, Any] | None = None,
        basis: Snapshot | None = None,
        marked: Sequence[MarkedRows] = (),
    ) -> Snapshot:
        try:
            return self.commit(
                messages,
                overwrite=overwrite,
                marked=marked,
                base_snapshot_id=None if basis is None else basis.id,
                base_commit_id=None if basis is None else basis.commit_id,
            )
        except Exception:
            self.abort(messages)
            raise

    # --- tags --------------------------------------------------------------------------------

    def tags(self) -> list[Tag]:
        """Return all tags, in the order of their snapshots."""
        from lockgate.framework.store.metadata.tag_files import load_tags

        return load_tags(self)

    def tag(self, name: str) -> Tag:
        """Return a tag; TagNotFoundError offers the nearest names."""
        from lockgate.framework.store.metadata.tag_files import load_tag

        return load_tag(self, name)

    @named_errors
    def create_tag(
        self, name: str, snapshot_id: int | None = None, *, retained: timedelta | None = None
    ) -> Tag:
        """Name the newest snapshot, or `snapshot_id`; see `tags.create_tag`.

        `retained` is noted for engines that delete tags by age.
        """
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import create_tag, new_tag

        return create_tag(self, new_tag(self, name, snapshot_id, retained))

    def replace_tag(
        self, name: str, snapshot_id: int | None = None, *, retained: timedelta | None = None
    ) -> Released:
        """Let a tag name the newest snapshot, or `snapshot_id`; see `tags.replace_tag`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import new_tag, replace_tag

        return replace_tag(self, new_tag(self, name, snapshot_id, retained))

    def rename_tag(self, name: str, target: str) -> Tag:
        """Give a tag another name; see `tags.rename_tag`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import rename_tag

        return rename_tag(self, name, target)

    def delete_tag(self, name: str) -> Released:
        """Delete a tag with the files that only it held; see `tags.delete_tags`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.tags import delete_tags

        return delete_tags(self, [name])

    # --- going back --------------------------------------------------------------------------

    @named_errors
    def rollback(
        self, snapshot_id: int | None = None, *, tag: str | None = None, dry_run: bool = False
    ) -> RollbackResult:
        """Make the table what it was at a snapshot or a tag; see `rollback.rollback`.

        Raises InputError unless exactly one is given, SnapshotNotFoundError and TagNotFoundError.
        """
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.rollback import rollback, target_of

        if (snapshot_id is None) == (tag is None):
            raise InputError("give either the snapshot or the tag to roll back to")
        return rollback(self, target_of(self, snapshot_id, tag), dry_run=dry_run)

    # --- branches ----------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """Return the names of all branches, sorted."""
        from lockgate.framework.store.history.branches import branch_names

        return branch_names(self)

    @named_errors
    def create_branch(self, name: str, snapshot_id: int | None = None, *, tag: str | None = None) -> None:
        """Create a branch, empty or from a snapshot or tag; see `branches.create_branch`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import create_branch

        create_branch(self, name, snapshot_id, tag=tag)

    def delete_branch(self, name: str) -> Released:
        """Delete a branch with the files that only it held; see `branches.delete_branch`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import delete_branch

        return delete_branch(self, name)

    def rename_branch(self, name: str, target: str) -> None:
        """Give a branch another name; see `branches.rename_branch`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import rename_branch

        rename_branch(self, name, target)

    def fast_forward(self, branch: str) -> int:
        """Bring the table to where a branch of it is; see `branches.fast_forward`."""
        grant(self, Action.ALTER)
        from lockgate.framework.store.history.branches import fast_forward

        return fast_forward(self, branch)

    # --- consumers ---------------------------------------------------------------------------

    def record_consumer(self, consumer_id: str, next_snapshot: int) -> None:
        """Note that `consumer_id` still needs snapshots from `next_snapshot` on; expiry spares them."""
        self.consumer_files.record(consumer_id, next_snapshot)

    def consumers(self) -> dict[str, int]:
        """Return the next snapshot that each consumer needs."""
        return self.consumer_files.load_all()

    def consumer_times(self) -> dict[str, int]:
        """Return when each consumer was last noted, in milliseconds since the epoch."""
        return self.consumer_files.modified_millis()

    def delete_consumer(self, consumer_id: str) -> bool:
        """Forget a consumer; False if it is not known."""
        return self.consumer_files.delete(consumer_id)
