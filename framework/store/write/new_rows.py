"""New rows of key tables with deletion vectors: a compaction that shows them, right after their commit.

Queries pass over level 0 of such tables and merge nothing. So this compaction looks for older rows of the new
keys, marks those where they lie, and puts the new rows into a level above, as one run of files. A file that
needs no merge moves as it is. Levels below whose files are small compared with them are taken in, so that a
row is written again a few times only, however many commits there are.

Source: Paimon's `LookupMergeTreeCompactRewriter`, `ForceUpLevel0Compaction` and `UniversalCompaction`.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lockgate.errors import CommitConflictError
from lockgate.framework import options as table_options
from lockgate.framework.options import LOOKUP_CHANGELOG
from lockgate.framework.store.commit.commit import commit_messages
from lockgate.framework.store.commit.commit_request import CommitRequest
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.commit.vector_changes import RowDeletions
from lockgate.framework.store.deletion_vectors.deletion_vector import DeletedRows
from lockgate.framework.store.deletion_vectors.snapshot_vectors import read_vector
from lockgate.framework.store.manifests.manifest import FileSource, ManifestEntry
from lockgate.framework.store.merge.group_codes import group_codes
from lockgate.framework.store.merge.merge import MergePlan, merge_plan, merge_tables
from lockgate.framework.store.merge.merge_plan import DEDUPLICATE, SEQUENCE_NUMBER
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.pruning.split import Section, by_bucket, key_order, key_sections
from lockgate.framework.store.rows.row_conversion import file_schema
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.scan.readable_files import stored_entries, top_level
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.write.abort import abort_messages
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.changelog import changed_rows

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

Positions = npt.NDArray[np.int64]


def shows_new_rows(schema: TableSchema) -> bool:
    """Say whether writers of a table compact its new rows, because no query would show them otherwise."""
    waits = schema.table_options.get_option(table_options.WRITE_ONLY)
    return schema.has_primary_key and schema.has_vectors and not waits


def show_new_rows(table: TableHandle) -> Snapshot | None:
    """Compact the rows of level 0 of all buckets; return the newest snapshot.

    Reads strictly: KeyMissingError if a key of a file is not held. Raises CommitConflictError, with nothing
    lost, if other commits come in between `commit.max-retries` times.
    """
    retries = table.options.get_option(table_options.COMMIT_MAX_RETRIES)
    wait = table.options.get_option(table_options.COMMIT_MIN_WAIT).total_seconds()
    for attempt in range(retries + 1):
        snapshot = table.latest_snapshot()
        entries = [] if snapshot is None else stored_entries(table, snapshot)
        buckets = [each for each in by_bucket(entries) if any(entry.file.level == 0 for entry in each)]
        if not buckets:
            return snapshot
        made: list[_Compacted] = []
        try:
            for bucket in buckets:
                made.append(_compacted(table, bucket))
            messages = [each.message for each in made]
            marked = [marked for each in made for marked in each.marked]
            return commit_messages(table, CommitRequest(messages, CommitKind.COMPACT, marked=marked))
        except BaseException as error:
            # Files that only move are not new: an older snapshot may need them.
            abort_messages(table, [each.new_files for each in made])
            if not isinstance(error, CommitConflictError):
                error.add_note(
                    f"the rows are in {table.identifier}, but no query shows them before the next commit or "
                    f"CALL sys.compact('{table.identifier}')"
                )
                raise
            if attempt == retries:
                raise CommitConflictError(
                    f"the rows are in {table.identifier}, but no query shows them yet: other commits kept "
                    f"coming before their compaction; run CALL sys.compact('{table.identifier}')"
                ) from error
        time.sleep(min(wait * 2.0 ** min(attempt, 8), 2.0) * random.uniform(0.5, 1.5))  # noqa: S311 - spreads pauses, guards nothing
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True)
class _Compacted:
    """What becomes of one bucket; `new_files` names only what was written for it."""

    message: CommitMessage
    new_files: CommitMessage
    marked: Sequence[RowDeletions]


def _taken(entries: Sequence[ManifestEntry], top: int) -> tuple[list[ManifestEntry], int]:
    """Return the files of a bucket that the compaction takes in, and the level that they go to.

    A level whose files are together no larger than those taken so far is taken, too, and so is level 1, below
    which there is none for new rows.
    """
    taken = [entry for entry in entries if entry.file.level == 0]
    size = sum(entry.file.file_size for entry in taken)
    for level in sorted({entry.file.level for entry in entries if entry.file.level > 0}):
        run = [entry for entry in entries if entry.file.level == level]
        if level > 1 and size < sum(entry.file.file_size for entry in run):
            return taken, level - 1
        taken += run
        size += sum(entry.file.file_size for entry in run)
    return taken, max(top, *(entry.file.level for entry in entries))


def _compacted(table: TableHandle, entries: Sequence[ManifestEntry]) -> _Compacted:
    taken, level = _taken(entries, top_level(table.schema))
    names = {entry.file.file_name for entry in taken}
    above = [entry for entry in entries if entry.file.file_name not in names]
    # In the order of commits, which decides between rows that are equally new.
    inside = [entry for entry in entries if entry.file.file_name in names]
    return _Bucket(table, inside, above, level).compact()


@dataclass
class _Bucket:
    """The compaction of one bucket: files `taken` go to `level`, files `above` may get rows marked."""

    table: TableHandle
    taken: Sequence[ManifestEntry]
    above: Sequence[ManifestEntry]
    level: int
    _found: dict[str, list[Positions]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schema = self.table.schema
        plan = merge_plan(schema)
        assert plan is not None, "a key table has a merge plan"
        self._plan: MergePlan = plan
        self._records = schema.changelog_producer == LOOKUP_CHANGELOG
        self._reader = FileReader(self.table, schema, strict=True)
        self._names = file_schema(schema).names
        # Then the row that was written last wins, whatever the others hold.
        self._by_number = plan.engine == DEDUPLICATE and tuple(plan.sequence) == (SEQUENCE_NUMBER,)
        self._writer: BucketWriter | None = None
        self._moved: list[ManifestEntry] = []
        self._replaced: list[ManifestEntry] = []
        self._added: list[Any] = []
        self._collected: dict[str, dict[str, bytes]] = {}

    def compact(self) -> _Compacted:
        """Write what is new and say what to commit; on an error the new files are deleted."""
        one = self.taken[0]
        with BucketWriter(self.table, one.partition, one.bucket, level=self.level, changelog=True) as log:
            try:
                for section in key_sections(self.taken):
                    self._take(section, log)
                self._finish()
            except BaseException:
                if self._writer is not None:
                    self._writer.abort()
                abort_messages(self.table, [self._new_files(())])
                raise
            recorded = log.close()
        marked, emptied = self._marks()
        stays = [dataclasses.replace(entry.file, level=self.level) for entry in self._moved]
        message = CommitMessage.replacing(
            [*self._moved, *self._replaced, *emptied],
            (*stays, *self._added),
            self._collected,
            recorded,
        )
        return _Compacted(message, self._new_files(recorded), marked)

    def _new_files(self, recorded: Sequence[Any]) -> CommitMessage:
        one = self.taken[0]
        return CommitMessage(
            one.partition, one.bucket, one.total_buckets, tuple(self._added), changelog=tuple(recorded)
        )

    def _take(self, section: Section, log: BucketWriter) -> None:
        new = [entry for entry in section.entries if entry.file.level == 0]
        keys = self._keys(new)
        older = list(self._older(keys)) if new else []
        if len(section.entries) == 1 and self._may_move(section.entries[0], keys, older):
            self._note(older)
            # No new file may span one that stays as it is.
            self._finish()
            (moving,) = section.entries
            if moving.file.level != self.level:
                self._moved.append(moving)
            return
        self._note(older)
        # As `key_sections` orders them: a row of a higher level is older than its equals below.
        above = [self._rows(entry, positions) for entry, positions in older]
        parts = [self._whole(entry) for entry in section.entries]
        after = merge_tables(self._plan, [*above, *parts], ordered=True).select(self._names)
        if after.num_rows:
            self._open().write(after)
        self._replaced += section.entries
        if self._records and new:
            fresh = [part for part, entry in zip(parts, section.entries, strict=True) if entry in new]
            settled = [part for part, entry in zip(parts, section.entries, strict=True) if entry not in new]
            old = [*above, *settled]
            before = merge_tables(self._plan, old).select(self._names) if old else after.schema.empty_table()
            log.write(changed_rows(self.table.schema, self._plan, before, after, pa.concat_tables(fresh)))

    def _may_move(
        self, entry: ManifestEntry, keys: pa.Table, older: Sequence[tuple[ManifestEntry, Positions]]
    ) -> bool:
        """Say whether a file has the rows that a merge would give, and no changelog is to tell of them."""
        if entry.file.delete_row_count != 0:
            return False
        if entry.file.level > 0:
            return True
        if self._records or (older and not self._by_number):
            return False
        # Other engines may leave several rows of a key in a file of level 0.
        _, count = group_codes(keys.columns, keys.num_rows)
        return bool(count == keys.num_rows)

    # --- older rows of new keys, above -----------------------------------------------------------

    def _keys(self, new: Sequence[ManifestEntry]) -> pa.Table:
        parts = [self._columns(entry, self._plan.key) for entry in new]
        return pa.concat_tables(parts) if parts else pa.table({})

    def _older(self, keys: pa.Table) -> Iterator[tuple[ManifestEntry, Positions]]:
        """Yield the files above with live rows of some keys, the highest level first, and their positions."""
        for entry in sorted(self.above, key=lambda one: -one.file.level):
            if not self._may_hold(entry, keys):
                continue
            there = self._columns(entry, self._plan.key)
            both = pa.concat_tables([keys, there])
            codes, count = group_codes(both.columns, both.num_rows)
            wanted = np.zeros(count, np.bool_)
            wanted[codes[: keys.num_rows]] = True
            found = wanted[codes[keys.num_rows :]]
            if entry.vector is not None:
                deleted = read_vector(self.table, entry.vector, entry.file.row_count)
                kept = deleted.kept(0, entry.file.row_count)
                found = found if kept is None else found & kept
            if found.any():
                yield entry, np.flatnonzero(found).astype(np.int64)

    def _may_hold(self, entry: ManifestEntry, keys: pa.Table) -> bool:
        if not keys.num_rows:
            return False
        if not entry.file.min_key or not entry.file.max_key:
            return True
        low, high = key_order(entry.file.min_key), key_order(entry.file.max_key)
        bounds = [(each.file.min_key, each.file.max_key) for each in self.taken if each.file.level == 0]
        return any(
            not (first and last) or not (key_order(last) < low or high < key_order(first))
            for first, last in bounds
        )

    def _note(self, older: Iterable[tuple[ManifestEntry, Positions]]) -> None:
        for entry, positions in older:
            self._found.setdefault(entry.file.file_name, []).append(positions)

    def _marks(self) -> tuple[list[RowDeletions], list[ManifestEntry]]:
        """Return the rows to mark, and the files of which none is left."""
        marked, emptied = [], []
        for entry in self.above:
            if entry.file.file_name in self._found:
                rows = DeletedRows.of(np.concatenate(self._found[entry.file.file_name]))
                if len(rows) == entry.live_rows:
                    emptied.append(entry)
                else:
                    marked.append(RowDeletions(entry, rows))
        return marked, emptied

    # --- files -------------------------------------------------------------------------------------

    def _path(self, entry: ManifestEntry) -> str:
        return self.table.paths.data_file(entry.partition, entry.bucket, entry.file)

    def _values(self, entry: ManifestEntry) -> dict[str, Any]:
        return dict(zip(self.table.schema.partition_keys, entry.partition, strict=True))

    def _columns(self, entry: ManifestEntry, names: Sequence[str]) -> pa.Table:
        """Read columns of all rows of a file, those that a vector deletes included."""
        return self._reader.whole(self._path(entry), entry.file, names, self._values(entry))

    def _whole(self, entry: ManifestEntry) -> pa.Table:
        path, values = self._path(entry), self._values(entry)
        return self._reader.whole(path, entry.file, self._names, values, entry.vector)

    def _rows(self, entry: ManifestEntry, positions: Positions) -> pa.Table:
        parts = self._reader.parts(
            self._path(entry),
            entry.file,
            self._names,
            self._values(entry),
            chosen=BitMap(positions.astype(np.uint32)),
        )
        schema = self._reader.output_schema(self._names)
        return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])

    def _open(self) -> BucketWriter:
        if self._writer is None:
            one = self.taken[0]
            self._writer = BucketWriter(
                self.table, one.partition, one.bucket, level=self.level, file_source=FileSource.COMPACT
            )
        return self._writer

    def _finish(self) -> None:
        if self._writer is not None:
            writer = self._writer
            self._added += writer.close()
            self._collected |= writer.collected
            self._writer = None
