"""Upkeep of the index database: `build_index`, `merge_index` and `drop_index`.

Each commits a snapshot of kind COMPACT that changes index files alone. Data files stay as they are; commits
that land concurrently keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import CommitConflictError, InputError, nearest
from lockgate.framework.index.database.bounds import bounds_entries, lacks_bounds
from lockgate.framework.index.database.index_segments import entries_of, is_sound, opened
from lockgate.framework.index.database.kind_versions import outdated_kind
from lockgate.framework.index.database.participant import (
    keeps_parts,
    live_only,
    merged_files,
    named_segment,
    partition_of,
)
from lockgate.framework.index.database.segment_collector import SegmentCollector, part_name
from lockgate.framework.plugins import IndexFileChanges, NewIndexFile
from lockgate.framework.store import (
    FileReader,
    IndexedField,
    IndexEntry,
    ManifestEntry,
    Snapshot,
    Table,
    bounded_fields,
    check_writable,
    indexed_fields,
)
from lockgate.procedures import DryRun, ProcedureContext, TableName, TypedProcedure
from lockgate.pushdown.index import PartName, Segment

# So many bytes of data files are indexed before they are committed: what a call that is killed loses at most.
_BATCH_BYTES = 4 * 2**30
_BATCH_FILES = 1024
_TRIES = 5
# So many files tell how large an index would be.
_SAMPLE = 8
# Segments of more bytes are full, and stay as they are.
_FULL = 64 * 2**20


def _commit(table: Table, changes: IndexFileChanges) -> Snapshot:
    return table.commit_index(changes)


@dataclass(frozen=True)
class _BuildIndexArguments:
    table: TableName
    dry_run: Annotated[
        bool, "only count the files, and read eight of them to expect the size of the index"
    ] = False


@dataclass(frozen=True)
class _BuildIndexRow:
    indexed_files_count: Annotated[int, "files indexed"]
    covered_files_count: Annotated[int, "files that were already covered"]
    added_segments_count: Annotated[int | None, "segments written, NULL after a dry run"]
    added_bytes: Annotated[int, "their size; after a dry run the expected one"]


class BuildIndex(TypedProcedure[_BuildIndexArguments, _BuildIndexRow]):
    """Index the data files of a table that the index database does not cover yet.

    It commits a segment after each 4 GiB of files, so that a call that was killed is repeated for the rest.
    """

    name = "build_index"

    def run(self, context: ProcedureContext, arguments: _BuildIndexArguments) -> list[_BuildIndexRow]:
        """Build; a dry run reads some files, and expects that many bytes in one segment."""
        table = context.table(arguments.table)
        check_writable(table.schema)
        indexed = indexed_fields(table.schema)
        if not indexed and not bounded_fields(table.schema):
            raise InputError(
                f"table {table.identifier} has no column to index: set 'index.values.columns' first"
            )
        live = table.manifests.live_files(table.latest_snapshot())
        lacking = list(_lacking(table, indexed, live))
        if arguments.dry_run:
            expected = self._expected(context, table, lacking)
            return [_BuildIndexRow(len(lacking), len(live) - len(lacking), None, expected)]
        sizes = []
        for batch in _batches(lacking):
            added = _segment_of(table, batch)
            _commit(table, IndexFileChanges(added))
            sizes += [len(each.data) for each in added]
            context.report(f"indexed {len(batch)} files of {table.identifier}")
        _rewritten(table, lambda: _without_outdated(table), dry_run=False)
        if lacks_bounds(table, table.latest_snapshot()):
            _commit(table, IndexFileChanges())
        return [_BuildIndexRow(len(lacking), len(live) - len(lacking), len(sizes), sum(sizes))]

    def _expected(self, context: ProcedureContext, table: Table, lacking: Sequence[_UnindexedFile]) -> int:
        """Return the size that the index of some files would have, by that of a few of them."""
        sample = lacking[:: max(1, -(-len(lacking) // _SAMPLE))]
        size = sum(len(each.data) for each in _segment_of(table, sample))
        read = sum(each.entry.file.file_size for each in sample)
        every = sum(each.entry.file.file_size for each in lacking)
        expected = size * every // max(1, read)
        context.report(
            f"the index of {len(lacking)} files of {table.identifier} would take about {expected:,} bytes, "
            f"{expected / max(1, every):.2%} of their data"
        )
        return expected


@dataclass(frozen=True)
class _UnindexedFile:
    """A data file and what it is to be indexed by."""

    entry: ManifestEntry
    indexed: tuple[IndexedField, ...]


def _lacking(
    table: Table, indexed: Sequence[IndexedField], live: Sequence[ManifestEntry]
) -> Iterator[_UnindexedFile]:
    """Yield the files that no segment covers by all that is asked.

    A column that a rule chose lacks nothing where a segment knows the file, since the rule may have left it
    out there; but it does where only an older version of the kind covers it.
    """
    listed, covered = set[str](), dict[PartName, set[str]]()
    outdated = dict[tuple[str, int], set[str]]()
    for entry in entries_of(table, table.latest_snapshot()):
        segment = opened(table, entry)
        if segment is not None:
            listed.update(segment.files.names)
            for name, part in segment.parts.items():
                files = {segment.files.names[n] for n in part.covered}
                covered.setdefault(name, set()).update(files)
                if (kind := outdated_kind(name)) is not None:
                    outdated.setdefault((kind, name.field), set()).update(files)

    def lacks(file: str, one: IndexedField) -> bool:
        if file in covered.get(part_name(one), ()):
            return False
        return not one.chosen or file not in listed or file in outdated.get((one.kind, one.field.id), ())

    for each in live:
        missing = [one for one in indexed if lacks(each.file.file_name, one)]
        if missing:
            yield _UnindexedFile(each, tuple(missing))


def _batches(lacking: Sequence[_UnindexedFile]) -> Iterator[list[_UnindexedFile]]:
    batch: list[_UnindexedFile] = []
    size = 0
    for each in lacking:
        batch.append(each)
        size += each.entry.file.file_size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _segment_of(table: Table, batch: Sequence[_UnindexedFile]) -> tuple[NewIndexFile, ...]:
    segments = [
        named_segment(
            collected(table, each.entry, SegmentCollector(table, each.indexed)), each.entry.file.file_name
        )
        for each in batch
    ]
    return merged_files(segments, [each.entry.partition for each in batch])


def collected(table: Table, entry: ManifestEntry, collector: SegmentCollector) -> bytes:
    """Return the segment of a data file that is there, read strictly, without the file's name."""
    path = table.paths.data_file(entry.partition, entry.bucket, entry.file)
    partition = dict(zip(table.schema.partition_keys, entry.partition, strict=True))
    collection = collector.begin()
    for rows in FileReader(table, table.schema, strict=True).parts(
        path, entry.file, collector.columns, partition
    ):
        collection.add(rows)
    return collection.finish()


@dataclass(frozen=True)
class _RewrittenRow:
    removed_segments_count: Annotated[int, "segments merged, replaced or removed"]
    added_segments_count: Annotated[int, "segments written"]
    removed_bytes: Annotated[int, "size of removed segments"]
    added_bytes: Annotated[int, "size of written segments"]
    snapshot_id: Annotated[int | None, "the new snapshot, NULL if nothing changed"]


@dataclass(frozen=True)
class _Rewrite:
    """Segments that are replaced, and what comes in their bucket."""

    replaced: tuple[IndexEntry, ...] = ()
    made: tuple[NewIndexFile, ...] = ()

    @property
    def changes(self) -> IndexFileChanges:
        return IndexFileChanges(self.made, frozenset(each.file_name for each in self.replaced))

    def row(self, snapshot: Snapshot | None) -> _RewrittenRow:
        before = sum(each.file_size for each in self.replaced)
        after = sum(len(each.data) for each in self.made)
        return _RewrittenRow(
            len(self.replaced), len(self.made), before, after, snapshot.id if snapshot else None
        )


def _rewritten(table: Table, plan: Callable[[], _Rewrite], *, dry_run: bool) -> list[_RewrittenRow]:
    """Plan and commit, again if another commit replaces the same segments."""
    for attempt in range(_TRIES):
        rewrite = plan()
        if dry_run or not rewrite.replaced:
            return [rewrite.row(None)]
        try:
            return [rewrite.row(_commit(table, rewrite.changes))]
        except CommitConflictError:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _opened(table: Table, entries: Sequence[IndexEntry]) -> list[tuple[IndexEntry, Segment]]:
    return [(entry, segment) for entry in entries if (segment := opened(table, entry)) is not None]


@dataclass(frozen=True)
class _MergeIndexArguments:
    table: TableName
    dry_run: DryRun = False


class MergeIndex(TypedProcedure[_MergeIndexArguments, _RewrittenRow]):
    """Merge the segments of a table's index database into fewer ones.

    Segments that are missing or damaged go too: `build_index` then makes them again.
    """

    name = "merge_index"

    def run(self, context: ProcedureContext, arguments: _MergeIndexArguments) -> list[_RewrittenRow]:
        """Merge; `snapshot_id` is NULL if there was nothing to merge, or after a dry run."""
        table = context.table(arguments.table)
        check_writable(table.schema)
        return _rewritten(table, lambda: _merge(table), dry_run=arguments.dry_run)


def _merge(table: Table) -> _Rewrite:
    snapshot = table.latest_snapshot()
    entries = [each for each in entries_of(table, snapshot) if each.file_size < _FULL]
    found = [(entry, segment) for entry, segment in _opened(table, entries) if is_sound(segment)]
    live = live_only(table, snapshot)
    stale = any(live(name) is None for _, each in found for name in each.files.names)
    if len(entries) < 2 and len(found) == len(entries) and not stale:
        return _Rewrite()
    made = merged_files(
        [segment for _, segment in found],
        [partition_of(table, entry) for entry, _ in found],
        live,
        keeps_parts(table.schema),
    )
    return _Rewrite(tuple(entries), made)


@dataclass(frozen=True)
class _DropIndexArguments:
    table: TableName
    columns: Annotated[list[str] | None, "the columns (default: the whole database)"] = None
    dry_run: DryRun = False


class DropIndex(TypedProcedure[_DropIndexArguments, _RewrittenRow]):
    """Remove columns, or everything, from a table's index database.

    New files are indexed as long as the table's options say so: unset `index.*.columns` first.
    """

    name = "drop_index"

    def run(self, context: ProcedureContext, arguments: _DropIndexArguments) -> list[_RewrittenRow]:
        """Drop; segments that are damaged go with the whole database."""
        table = context.table(arguments.table)
        check_writable(table.schema)
        columns = arguments.columns
        if columns is None:
            return _rewritten(table, lambda: _without_all(table), dry_run=arguments.dry_run)
        fields = {_field_id(table, name) for name in columns}

        def is_dropped(part: PartName) -> bool:
            return part.field in fields

        return _rewritten(table, lambda: _without(table, is_dropped), dry_run=arguments.dry_run)


def _field_id(table: Table, name: str) -> int:
    names = table.schema.field_names
    if name not in names:
        raise InputError(f"table {table.identifier} has no column {name!r}{nearest(name, names)}")
    return table.schema.field(name).id


def _without_all(table: Table) -> _Rewrite:
    snapshot = table.latest_snapshot()
    of_manifests = bounds_entries(table, None if snapshot is None else snapshot.index_manifest)
    return _Rewrite((*entries_of(table, snapshot), *of_manifests))


def _without_outdated(table: Table) -> _Rewrite:
    """Replace the segments with parts of older versions of their kind, as far as they can be read."""
    return _without(table, lambda part: outdated_kind(part) is not None, is_sound)


def _without(
    table: Table,
    is_dropped: Callable[[PartName], bool],
    can_be_read: Callable[[Segment], bool] = lambda segment: True,
) -> _Rewrite:
    """Replace the segments that have parts to drop by ones without these."""
    entries = entries_of(table, table.latest_snapshot())
    found = [
        (entry, segment)
        for entry, segment in _opened(table, entries)
        if any(map(is_dropped, segment.parts)) and can_be_read(segment)
    ]
    made = [
        new
        for entry, segment in found
        for new in merged_files(
            [segment], [partition_of(table, entry)], keeps=lambda part: not is_dropped(part)
        )
    ]
    return _Rewrite(tuple(entry for entry, _ in found), tuple(made))
