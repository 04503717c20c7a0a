"""One table, as everything above the store uses it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import CommitConflictError, InputError
from lockgate.framework import options as table_options
from lockgate.framework.access import Action
from lockgate.framework.io import named_errors
from lockgate.framework.options import check_names
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.grants import grant
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.schema.unsupported_features import check_writable
from lockgate.framework.store.tables.table_facts import TableFacts

if TYPE_CHECKING:
    from lockgate.framework.plugins import IndexFileChanges
    from lockgate.framework.store.commit.commit_request import CommitRequest, Overwrite
    from lockgate.framework.store.commit.vector_changes import RowDeletions
    from lockgate.framework.store.history.changes import Change
    from lockgate.framework.store.scan.matching_rows import WantedKeys
    from lockgate.framework.store.scan.metadata_aggregates import AggregateAnswer
    from lockgate.framework.store.scan.read_request import ReadRequest
    from lockgate.framework.store.scan.scan import ScanPlan
    from lockgate.framework.store.scan.snapshot_selection import Between
    from lockgate.pushdown import Aggregate, Predicate, SortKey

# Data that may be written: a table, or batches of one schema.
Data: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch]"


@checked_arguments
class Table(TableFacts):
    """A table with the schema that it had when it was loaded; each call looks up snapshots."""

    # --- state -------------------------------------------------------------------------------

    @named_errors
    def set_wrapped_keys(self, text: str) -> None:
        """Store another `orc.keys.wrapped`, made by a method of `EnvelopeKeyProvider` such as `roll`, in a
        new schema.

        It applies to tables that are loaded from now on. Raises OptionError for a malformed text, InputError
        if it lacks a key that the present one has, CommitConflictError if the table was altered concurrently.
        """
        grant(self, Action.ALTER)
        from lockgate.framework.store.confidential.stored_wrapped_keys import store_wrapped_keys

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
        added; see `scan.plan_scan`. Give either these or a `ReadRequest`; both are an InputError.
        """
        from lockgate.framework.store.scan.read_request import ReadRequest, request_of
        from lockgate.framework.store.scan.scan import plan_scan

        given, wanted = (predicate, None) if isinstance(predicate, ReadRequest) else (None, predicate)
        request = request_of(
            given,
            wanted,
            columns=columns,
            snapshot_id=snapshot_id,
            tag=tag,
            between=between,
            limit=limit,
            order=order,
            own_schema=own_schema,
        )
        return plan_scan(self, request)

    @named_errors
    def aggregate(
        self,
        aggregates: Sequence[Aggregate],
        *,
        group_by: Sequence[str] = (),
        predicate: Predicate | ReadRequest | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
    ) -> AggregateAnswer:
        """Answer COUNT, MIN and MAX from metadata, or say why that is not exact; see
        `aggregates.answer_aggregates`.

        No data file is opened. `predicate` and `group_by` may name partition columns. A `ReadRequest` in
        place of the predicate names the snapshot too; its columns do not matter.
        """
        from lockgate.framework.store.scan.metadata_aggregates import answer_aggregates
        from lockgate.framework.store.scan.read_request import ReadRequest, request_of

        given, wanted = (predicate, None) if isinstance(predicate, ReadRequest) else (None, predicate)
        request = request_of(given, wanted, snapshot_id=snapshot_id, tag=tag)
        paths = [(name,) for name in check_names("group_by", group_by)]
        return answer_aggregates(self, aggregates, paths, dataclasses.replace(request, columns=()))

    @named_errors
    def read(
        self,
        plan: ScanPlan | ReadRequest | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
        strict: bool = False,
    ) -> pa.Table:
        """Return the rows of a plan, or of the newest snapshot; see `read.read_table`.

        Give either a `plan` or the arguments of `scan`; both are an InputError.
        """
        from lockgate.framework.store.history.state_difference import difference_request, read_difference
        from lockgate.framework.store.scan.read import read_table
        from lockgate.framework.store.scan.read_request import ReadRequest, request_of

        wanted = {
            "columns": columns,
            "snapshot_id": snapshot_id,
            "tag": tag,
            "limit": limit,
            "strict": strict,
        }
        if plan is None or isinstance(plan, ReadRequest):
            difference = difference_request(self, request_of(plan, predicate, **wanted))
            if difference is not None:
                return read_difference(self, difference)
        return read_table(self, self._planned(plan, predicate, **wanted))

    @named_errors
    def read_batches(
        self,
        plan: ScanPlan | ReadRequest | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
        strict: bool = False,
        own_schema: bool = True,
        threads: int | None = None,
        wanted: WantedKeys | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield what `read` returns, piece by piece; `own_schema` as for `scan`.

        It decodes `threads` stripes at a time (None: one for each core); fewer need less memory. Of `wanted`
        keys at least the rows are read; others may be left out.
        """
        from lockgate.framework.store.scan.read import read_batches

        planned = self._planned(
            plan,
            predicate,
            columns=columns,
            snapshot_id=snapshot_id,
            tag=tag,
            limit=limit,
            strict=strict,
            own_schema=own_schema,
        )
        return read_batches(self, planned, threads=threads, wanted=wanted)

    def _planned(
        self, plan: ScanPlan | ReadRequest | None, predicate: Predicate | None, **wanted: Any
    ) -> ScanPlan:
        from lockgate.framework.store.scan.read_request import ReadRequest, request_of
        from lockgate.framework.store.scan.scan import plan_scan

        if plan is None or isinstance(plan, ReadRequest):
            return plan_scan(self, request_of(plan, predicate, **wanted))
        # A plan is what came of a request.
        request_of(ReadRequest(), predicate, **wanted)
        return plan

    @named_errors
    def system(
        self,
        name: str,
        request: ReadRequest | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        snapshot_id: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Return the rows of the system table `t$<name>`, such as `snapshots`; see `tables.read_system`.

        Give either a request or its parts; both are an InputError.
        """
        from lockgate.framework.store.scan.read_request import request_of
        from lockgate.framework.store.system.system_tables import read_system

        wanted = request_of(
            request, predicate, columns=columns, snapshot_id=snapshot_id, tag=tag, limit=limit
        )
        return read_system(self, name, wanted)

    @named_errors
    def changes(
        self, after: int | ReadRequest, upto: int | None = None, *, columns: Sequence[str] | None = None
    ) -> Iterator[Change]:
        """Yield what each snapshot after `after` up to `upto` changed; see `changes.read_changes`.

        A `ReadRequest` with a range as the first argument replaces all others; InputError if there are
        others.
        """
        from lockgate.framework.store.history.changes import read_changes
        from lockgate.framework.store.scan.read_request import ReadRequest
        from lockgate.framework.store.scan.snapshot_selection import Between

        if isinstance(after, ReadRequest):
            if upto is not None or columns is not None:
                raise InputError("a request holds range and columns already; give either it or them")
            return read_changes(self, after)
        if upto is None:
            raise InputError("changes need a range of snapshots: give the last one, `upto`, too")
        names = None if columns is None else check_names("columns", columns)
        return read_changes(self, ReadRequest(columns=names, between=Between(after, upto)))

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
        from lockgate.framework.store.confidential.exposure_checks import judged
        from lockgate.framework.store.write.write import write_files

        check_writable(self.schema)
        grant(self, Action.INSERT)
        if overwrite is not None:
            grant(self, Action.DELETE)
        return write_files(self, judged(self, data), kinds=kinds, overwrite=overwrite)

    @named_errors
    def commit(
        self,
        messages: Sequence[CommitMessage] | CommitRequest,
        *,
        kind: str = CommitKind.APPEND,
        user: str | None = None,
        identifier: int | None = None,
        base_snapshot_id: int | None = None,
        base_commit_id: str | None = None,
        overwrite: Overwrite | None = None,
        marked: Sequence[RowDeletions] = (),
    ) -> Snapshot:
        """Make written files visible as one snapshot; see `commit.commit_messages`.

        Give either a request or its parts: `user` and `identifier` are its epoch, `base_snapshot_id` and
        `base_commit_id` its base; both are an InputError. In key tables with deletion vectors a compaction
        follows, by which queries see the rows.
        """
        from lockgate.framework.store.commit.base_snapshot import BaseSnapshot
        from lockgate.framework.store.commit.commit import commit_messages
        from lockgate.framework.store.commit.commit_request import CommitRequest, StreamEpoch
        from lockgate.framework.store.write.new_rows import show_new_rows, shows_new_rows
        from lockgate.framework.store.write.reassign import commit_reassigning

        check_writable(self.schema)
        if identifier is not None and user is None:
            raise InputError("a commit with an identifier needs the user that it counts for")
        named = () if identifier is None else (identifier,)
        epoch = None if user is None else StreamEpoch(user, *named)
        base = None if base_snapshot_id is None else BaseSnapshot(base_snapshot_id, base_commit_id)
        request = CommitRequest((), kind, epoch, base, overwrite, marked)
        if not isinstance(messages, CommitRequest):
            request = dataclasses.replace(request, messages=messages)
        elif request == CommitRequest():
            request = messages
        else:
            raise InputError("a request holds all of a commit already; give either it or its parts")
        if request.overwrite is not None:
            grant(self, Action.DELETE)
        snapshot = commit_reassigning(
            self,
            request.messages,
            lambda current: commit_messages(self, dataclasses.replace(request, messages=current)),
        )
        if request.kind != CommitKind.COMPACT and shows_new_rows(self.schema):
            show_new_rows(self)
        return snapshot

    def commit_index(self, changes: IndexFileChanges) -> Snapshot:
        """Commit index files of a plugin alone, as one snapshot."""
        from lockgate.framework.store.commit.commit import commit_messages
        from lockgate.framework.store.commit.commit_request import InnerCommit

        return commit_messages(self, InnerCommit(kind=CommitKind.COMPACT, index_files=changes))

    @named_errors
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
        return self._repeated(data, lambda: self._commit_or_abort(self.write(data)))

    @named_errors
    def overwrite(self, data: Data, partition: Mapping[str, Any] | None = None) -> Snapshot:
        """Replace the rows of matching partitions, by default all rows of the table."""
        spec = dict(partition or {})
        return self._commit_or_abort(self.write(data, overwrite=spec), overwrite=spec)

    @named_errors
    def delete(self, keys: pa.Table | Predicate) -> Snapshot:
        """Delete rows: those with `keys`, a table of a key table's key columns, or that match a predicate.

        In tables without a primary key, give a predicate; the table needs the option
        `deletion-vectors.enabled`. Raises CommitConflictError if rows found by a predicate were changed
        concurrently.
        """
        from lockgate.framework.store.write.row_operations import find_rows
        from lockgate.framework.store.write.write import delete_keys

        check_writable(self.schema)
        grant(self, Action.DELETE)
        latest = self.latest_snapshot()
        if isinstance(keys, pa.Table) or self.schema.has_primary_key or not self.schema.has_vectors:
            base_snapshot = None if isinstance(keys, pa.Table) else latest
            return self._repeated(
                keys, lambda: self._commit_or_abort(delete_keys(self, keys), base_snapshot=base_snapshot)
            )
        marked, gone = ([], []) if latest is None else find_rows(self, keys, latest)
        return self._commit_or_abort(gone, base_snapshot=latest, marked=marked)

    def _repeated(self, data: object, write: Callable[[], Snapshot]) -> Snapshot:
        """Write rows that are at hand again if others have moved keys, which may be the same ones."""
        if not self.schema.moves_keys or not isinstance(data, pa.Table | pa.RecordBatch):
            return write()
        for _ in range(self.options.get_option(table_options.COMMIT_MAX_RETRIES)):
            with contextlib.suppress(CommitConflictError):
                return write()
        return write()

    def _commit_or_abort(
        self,
        messages: Sequence[CommitMessage],
        *,
        overwrite: Mapping[str, Any] | None = None,
        base_snapshot: Snapshot | None = None,
        marked: Sequence[RowDeletions] = (),
    ) -> Snapshot:
        try:
            return self.commit(
                messages,
                overwrite=overwrite,
                marked=marked,
                base_snapshot_id=None if base_snapshot is None else base_snapshot.id,
                base_commit_id=None if base_snapshot is None else base_snapshot.commit_id,
            )
        except Exception:
            self.abort(messages)
            raise
