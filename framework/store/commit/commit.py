"""Commits: turn files of writers into a new snapshot, or raise an error and change nothing.

Source: Paimon's `FileStoreCommitImpl`. Everything is written under new names first; the snapshot file,
created exclusively, makes it visible. A writer that loses the race for a snapshot's id reads the new head,
checks that its changes still fit, and tries again.
"""

from __future__ import annotations

import dataclasses
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import (
    CommitConflictError,
    CorruptFileError,
    LockgateError,
    SnapshotNotFoundError,
)
from lockgate.framework import options as table_options
from lockgate.framework.plugins import RowsCommitted, publish
from lockgate.framework.store.commit.base_snapshot import BaseSnapshotCheck
from lockgate.framework.store.commit.commit_files import CommitFiles, IndexChanges
from lockgate.framework.store.commit.commit_request import CommitRequest, PreparedCommit, prepared
from lockgate.framework.store.commit.commit_schema import schema_to_commit
from lockgate.framework.store.commit.conflicts import (
    check_buckets,
    check_files,
    check_marked,
    check_rewritten,
    check_schema,
)
from lockgate.framework.store.commit.hash_index import HashChanges
from lockgate.framework.store.commit.idempotency import EarlierTries, snapshots_back
from lockgate.framework.store.commit.participants import with_participants
from lockgate.framework.store.commit.stream_progress import own_progress, progress_after, with_progress
from lockgate.framework.store.commit.vector_changes import VectorChanges, check_known_index, with_vectors
from lockgate.framework.store.confidential.confidential_columns import (
    confidential_in,
    confidential_in_history,
)
from lockgate.framework.store.confidential.exposed_files import snapshot_shows, statistics_show
from lockgate.framework.store.confidential.exposed_statistics import ExposedStatistics
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.manifests.manifest_files import partitions_in
from lockgate.framework.store.metadata.generations import same_partitions
from lockgate.framework.store.metadata.snapshot import (
    FIRST_SNAPSHOT_ID,
    CommitKind,
    Snapshot,
)
from lockgate.framework.store.pruning.split import key_order
from lockgate.framework.store.schema.schema import TableSchema, now_millis
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.plugins import IndexFileChanges, ManifestParticipant
    from lockgate.framework.store.handle import TableHandle


def commit_messages(table: TableHandle, request: CommitRequest) -> Snapshot:
    """Commit the files of messages as one snapshot and return it.

    If the epoch was committed before, that snapshot is returned and nothing else happens. Files that are
    deleted must be there in any case. A commit without changes returns the newest snapshot, or makes an empty
    first one.

    Raises CommitConflictError if another commit got in the way for good, and UnsupportedFormatError if the
    table uses a feature that must not be written past. Then nothing has become visible; data files stay, for
    the caller to delete.
    """
    checked = prepared(table, request)
    return with_participants(table, checked, lambda *own: _Attempts(table, checked, *own).run())


def _announce(table: TableHandle, snapshot: Snapshot) -> None:
    publish(
        RowsCommitted(
            table=table.location,
            snapshot_id=snapshot.id,
            kind=str(snapshot.commit_kind),
            writer=snapshot.commit_user,
            identifier=snapshot.commit_identifier,
            rows=snapshot.delta_record_count,
        )
    )


@dataclass
class _Attempts:
    """The attempts of one commit, and what later ones take over from earlier ones."""

    table: TableHandle
    request: PreparedCommit
    own_index: Sequence[IndexFileChanges] = ()
    of_manifests: Sequence[ManifestParticipant] = ()
    _pending: Snapshot | None = None
    _index: IndexChanges | None = None

    def __post_init__(self) -> None:
        given = [*self.own_index, self.request.index_files]
        self._files = CommitFiles(self.table, given, self.of_manifests)
        self._earlier = EarlierTries(self.table, self.request)
        bases = (self.request.base_snapshot, self.request.placed)
        self._bases = [
            BaseSnapshotCheck(self.table, base_snapshot)
            for base_snapshot in bases
            if base_snapshot is not None
        ]

    def run(self) -> Snapshot:
        options = self.table.options
        retries = options.get_option(table_options.COMMIT_MAX_RETRIES)
        deadline = time.monotonic() + options.get_option(table_options.COMMIT_TIMEOUT).total_seconds()
        for attempt in range(retries + 1):
            try:
                snapshot = self._attempt()
            except BaseException:
                # Files too many do no harm; files missing from a visible snapshot would.
                if self._is_visible() is False:
                    self._files.clean_up()
                raise
            if snapshot is not None:
                return snapshot
            if time.monotonic() > deadline:
                break
            self._wait(attempt)
        self._files.clean_up()
        raise CommitConflictError(
            f"gave up committing to {self.table.location}: others committed first, {attempt + 1} times; "
            f"raise {table_options.COMMIT_MAX_RETRIES.key!r} or write with fewer jobs at once"
        )

    def _wait(self, attempt: int) -> None:
        options = self.table.options
        least = options.get_option(table_options.COMMIT_MIN_WAIT).total_seconds()
        most = options.get_option(table_options.COMMIT_MAX_WAIT).total_seconds()
        # Spread, so that those who lost together do not meet again.
        time.sleep(min(most, least * 2.0 ** min(attempt, 16)) * random.uniform(0.5, 1.5))  # noqa: S311 - spreads pauses, guards nothing

    def _attempt(self) -> Snapshot | None:
        """Try once; None if another commit took the snapshot's id, or a rollback the one before."""
        head = self.table.snapshot_files.latest()
        try:
            return self._attempt_on(head)
        except CorruptFileError:
            # A rollback deletes what its head refers to while that is read.
            if head is None or self._is_visible() is not False or not self._was_rolled_back(head):
                raise
            return None

    def _attempt_on(self, head: Snapshot | None) -> Snapshot | None:
        done = self._earlier.find(head)
        if done is not None:
            self._files.clean_up()
            return done
        schema = schema_to_commit(self.table, replaces=self.request.replaces)
        changes = self._checked_changes(head, schema)
        plain = self._plain_statistics(schema)
        scrubs = self.request.kind is CommitKind.COMPACT and snapshot_shows(self.table, head, plain)
        if head is not None and not (changes or self.request.does_more or scrubs):
            return head
        snapshot, own_list = self._prepare(head, schema, changes, plain)
        # Expiry may have removed everything up to a late committer's head; then its id is free again.
        if self.table.snapshot_files.latest_id() == (None if head is None else head.id) and self._create(
            snapshot
        ):
            if head is None or not self._was_rolled_back(head):
                self.table.snapshot_files.hint_latest(snapshot.id)
                self._files.drop_unused(snapshot)
                _announce(self.table, snapshot)
                return snapshot
            self._withdraw(snapshot)
        self._files.clean_up([own_list])
        return None

    def _was_rolled_back(self, head: Snapshot) -> bool:
        """Say whether a rollback removed the snapshot that another was just put on top of.

        It may have been given to another one since. Expiry takes it only with all that are older.
        """
        try:
            return self.table.snapshot(head.id) != head
        except SnapshotNotFoundError:
            return any(snapshot_id < head.id for snapshot_id in self.table.snapshot_files.ids())

    def _withdraw(self, snapshot: Snapshot) -> None:
        """Take back a snapshot on top of one that is gone; the next attempt starts from what is there now."""
        if self.table.snapshot_files.exists(snapshot.id + 1):
            raise CommitConflictError(
                f"{self.table.identifier} was rolled back while snapshot {snapshot.id} was committed, and "
                "others were committed on top of it; see which state the table is in"
            )
        self.table.snapshot_files.delete(snapshot.id)
        self._pending = None
        self._earlier.forget()

    def _create(self, snapshot: Snapshot) -> bool:
        self._pending = snapshot
        try:
            return self.table.snapshot_files.create(snapshot)
        except Exception:
            # The file may have got its name before the error: then the commit is done.
            if self._is_visible():
                return True
            raise

    def _is_visible(self) -> bool | None:
        """Say whether the snapshot being created exists; None if that cannot be found out."""
        if self._pending is None:
            return False
        try:
            return self.table.snapshot(self._pending.id).uuid == self._pending.uuid
        except SnapshotNotFoundError:
            return False
        except (LockgateError, OSError):
            return None

    # --- may it be done ----------------------------------------------------------------------

    def _checked_changes(self, head: Snapshot | None, schema: TableSchema) -> tuple[ManifestEntry, ...]:
        """Return all changes, with what an overwrite replaces; CommitConflictError if they do not fit."""
        request, written = self.request, self.table.schema
        overwrites = request.kind is CommitKind.OVERWRITE
        check_schema(written, schema, overwrite=overwrites)
        check_rewritten(written, request.changes)
        if request.deletes:
            check_known_index(self.table, head)
        self._check_base(head, schema)
        replaces_all = self._replaces_all(head)
        self._index = None
        if request.index is not None:
            request.index.check(head)
            self._index = request.index
        elif written.has_hash_index:
            self._index = HashChanges(self.table, None if replaces_all else head, request)
        if replaces_all:
            return request.changes
        # Paimon's `rescale` gives a partition another number of buckets, of which no schema tells.
        fixed = schema.bucket_count > 0
        if not request.deletes and not request.marked and not fixed and not self._adds_compacted():
            return request.changes
        base = self._base_files(head)
        replaced = [entry for entry in base if self._is_overwritten(entry)]
        self._files.own_index.overwritten(request.overwrite, everything=len(replaced) == len(base))
        deletions = [
            ManifestEntry(FileKind.DELETE, old.partition, old.bucket, old.total_buckets, old.file)
            for old in replaced
        ]
        changes = (*deletions, *request.changes)
        check_files(base, changes, has_key=written.has_primary_key)
        check_marked(base, request.marked)
        unread = frozenset(entry.file.file_name for entry in replaced)
        vectors = VectorChanges(self.table, head, changes, request.marked, unread=unread)
        self._index = with_vectors(self._index, vectors) if request.index is None else self._index
        if fixed and not overwrites:
            check_buckets(base, changes)
        return changes

    def _replaces_all(self, head: Snapshot | None) -> bool:
        """Say whether the files before lie in other partitions, so that no manifest can hold both."""
        if head is None or not self.request.replaces:
            return False
        return not same_partitions(self.table.schema_of(head.schema_id), self.table.schema)

    def _adds_compacted(self) -> bool:
        return any(entry.kind is FileKind.ADD and entry.file.level > 0 for entry in self.request.changes)

    def _base_files(self, head: Snapshot | None) -> list[ManifestEntry]:
        if self.request.overwrite is not None:
            return self.table.manifests.live_files(head)
        entries = [*self.request.changes, *(each.entry for each in self.request.marked)]
        partitions = {entry.partition for entry in entries}
        return self.table.manifests.live_files(head, partitions_in(partitions))

    def _is_overwritten(self, entry: ManifestEntry) -> bool:
        return self.request.overwrite is not None and self.request.overwrite(entry.partition)

    def _check_base(self, head: Snapshot | None, schema: TableSchema) -> None:
        """Refuse changes if others have changed what they were computed from."""
        request = self.request
        if head is None or request.kind is CommitKind.COMPACT:
            return
        for base in self._bases:
            if schema.table_options.get_option(table_options.ISOLATION) == "serializable":
                base.check(head, lambda entry: True, marks_concern=True)
            elif request.overwrite is not None:
                base.check(head, self._is_overwritten, marks_concern=True)
            elif self.table.schema.has_primary_key:
                base.check(head, self._holds_same_keys)

    def _holds_same_keys(self, entry: ManifestEntry) -> bool:
        """Say whether a file may hold keys that are written."""
        low, high = key_order(entry.file.min_key), key_order(entry.file.max_key)
        return self.request.placed is not None or any(
            (ours.partition, ours.bucket) == (entry.partition, entry.bucket)
            and not (key_order(ours.file.max_key) < low or high < key_order(ours.file.min_key))
            for ours in self.request.changes
        )

    # --- write what the snapshot refers to ---------------------------------------------------

    def _index_after(self, head: Snapshot | None, replaces_all: bool) -> str | None:
        """Return the index manifest of the new snapshot; one of a table that was replaced ends with it."""
        before = None if head is None or replaces_all else head.index_manifest
        return self._files.index(before, self._index)

    def _plain_statistics(self, schema: TableSchema) -> ExposedStatistics:
        """Return what tells of values of encrypted columns; a compaction looks at dropped ones too."""
        compacts = self.request.kind is CommitKind.COMPACT
        secrets = confidential_in_history(self.table) if compacts else confidential_in(schema)
        return ExposedStatistics(secrets, self.table.schema_of)

    def _statistics_after(
        self, head: Snapshot | None, plain: ExposedStatistics, *, scrub: bool
    ) -> str | None:
        if head is None or self.request.replaces or head.statistics is None:
            return None
        return None if scrub and statistics_show(self.table, head.statistics, plain) else head.statistics

    def _prepare(
        self,
        head: Snapshot | None,
        schema: TableSchema,
        changes: tuple[ManifestEntry, ...],
        plain: ExposedStatistics,
    ) -> tuple[Snapshot, str]:
        """Write manifests and lists; return the snapshot and the base list's name, which is this try's."""
        hidden = plain.all_without(changes)
        # An addition and its deletion are a pair only if both show the same.
        shown = any(entry is not kept for entry, kept in zip(changes, hidden, strict=True))
        scrub = shown or self.request.kind is CommitKind.COMPACT
        delta_list, delta_size = self._files.delta_list(hidden)
        recorded = self.request.changelog
        changelog_list, changelog_size = self._files.changelog_list(plain.all_without(recorded))
        replaces_all = head is None or self._replaces_all(head)
        base = [] if head is None or replaces_all else self.table.manifests.manifests(head)
        base_list, base_size = self._files.base_list(
            base, plain, scrub=scrub, everything=self.request.merges_manifests
        )
        added = sum(entry.file.row_count for entry in changes if entry.kind is FileKind.ADD)
        deleted = sum(entry.file.row_count for entry in changes if entry.kind is FileKind.DELETE)
        snapshot = Snapshot(
            id=FIRST_SNAPSHOT_ID if head is None else head.id + 1,
            schema_id=schema.id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=changelog_list,
            changelog_manifest_list_size=changelog_size,
            changelog_record_count=sum(entry.file.row_count for entry in recorded) if recorded else None,
            commit_user=self.request.user,
            commit_identifier=self.request.identifier,
            commit_kind=self.request.kind,
            time_millis=now_millis(),
            total_record_count=(head.total_record_count if head and not replaces_all else 0)
            + added
            - deleted,
            delta_record_count=added - deleted,
            uuid=str(uuid.uuid4()),
            writer_version=f"lockgate-{VERSION}",
            index_manifest=self._index_after(head, replaces_all),
            watermark=head.watermark if head else None,
            statistics=self._statistics_after(head, plain, scrub=scrub),
            next_row_id=head.next_row_id if head else None,
        )
        progress = progress_after(snapshots_back(self.table, head))
        properties = with_progress(None, progress, self.request.user, own_progress(snapshot))
        return dataclasses.replace(snapshot, properties=properties), base_list
