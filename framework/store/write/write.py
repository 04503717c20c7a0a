"""Writing rows: split by partition and bucket, sorted by key, as files that a commit then makes visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.options import INPUT_CHANGELOG
from lockgate.framework.store.commit.message import CommitMessage, PlacedAt
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.merge.group_codes import Codes, groups, last_of_each, partition_codes
from lockgate.framework.store.merge.merge import KEY_PREFIX, RowKind, merge_plan, merge_tables, sort_by_key
from lockgate.framework.store.merge.merge_plan import DEDUPLICATE
from lockgate.framework.store.merge.sequence_order import by_sequence
from lockgate.framework.store.rows.bucket import assign_buckets
from lockgate.framework.store.rows.deletions import fill_deletions
from lockgate.framework.store.rows.row_conversion import check_not_null, conform_rows, with_system_columns
from lockgate.framework.store.rows.row_kinds import KindPolicy, check_deletable, kind_policy
from lockgate.framework.store.schema.clustering import clustering_columns, in_order
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_readable, check_writable
from lockgate.framework.store.write.abort import abort_messages
from lockgate.framework.store.write.bucket_assigner import BucketAssigner
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.key_locations import KeyLocations
from lockgate.framework.store.write.read_rows import read_rows, rows_with_keys
from lockgate.framework.types import partition_key, to_arrow
from lockgate.pushdown import Predicate

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

Rows: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.Table | pa.RecordBatch]"
Kinds: TypeAlias = "Sequence[int] | pa.Array | pa.ChunkedArray | None"
Where: TypeAlias = tuple[tuple[Any, ...], int]

# Rows gathered before they are split: as many make good files, as few fit into memory.
_BUFFERED_BYTES = 256 * 2**20

# Writers of append tables stay open between buffers, up to so many files at a time.
_OPEN_WRITERS = 64


def write_files(
    table: TableHandle,
    data: Rows,
    *,
    kinds: Kinds = None,
    overwrite: Mapping[str, Any] | None = None,
    stored: bool = False,
) -> list[CommitMessage]:
    """Write rows as data files and say what to commit; nothing is visible before.

    Columns are matched by name; missing ones become null. In key tables the last row of a key wins, within
    `data` and against what is there, or the one that is newest by `sequence.field`; `kinds` (one `RowKind` a
    row, for a single table or batch) may delete. With `overwrite`, a mapping of partition columns to values,
    rows of other partitions are refused. Rows that come from the table itself are `stored`: their texts are
    not filled up or cut. If anything fails, the files written are deleted.

    Raises ColumnNotFoundError, InputError for rows that do not fit, UnsupportedError for tables that cannot
    be written, KeyMissingError if a key to encrypt with is missing.
    """
    check_rows_writable(table.schema)
    if overwrite and table.schema.moves_keys:
        raise UnsupportedError(
            f"partitions of {table.identifier} cannot be overwritten, because its keys move between them: "
            "overwrite the whole table, or delete rows and append others"
        )
    # An overwrite writes no changelog, as in Paimon.
    records = table.schema.changelog_producer == INPUT_CHANGELOG and overwrite is None
    replace_all = overwrite is not None
    if table.schema.has_primary_key:
        writer: _KeyWriter | _AppendWriter = _KeyWriter(table, records=records, replace_all=replace_all)
    else:
        writer = _AppendWriter(table)
    try:
        for rows, row_kinds in _buffers(table.schema, data, kinds, stored):
            _check_overwrite(table.schema, rows, overwrite)
            writer.write(rows, row_kinds)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def delete_keys(table: TableHandle, keys: pa.Table | Predicate) -> list[CommitMessage]:
    """Write deletions (-D) of a key table's rows and say what to commit.

    `keys` are rows with the columns of the primary key, or a predicate for the rows to delete. Those found by
    a predicate are read strictly, so that an encrypted value is never replaced by its mask, and a deletion
    holds their values. With `sequence.field`, a deletion is as new as the row it deletes, which is looked up;
    if `keys` have those columns too, as new as they say. What else it holds: see `deletions`. Raises
    UnsupportedError for tables without a primary key, else as `write_files`.
    """
    schema = table.schema
    if not schema.has_primary_key:
        raise UnsupportedError(
            f"{table.identifier} has no primary key, so rows cannot be deleted; overwrite "
            "partitions, or set option 'deletion-vectors.enabled' = 'true' and delete by a predicate"
        )
    check_deletable(schema)
    rows, stored = _rows_to_delete(table, keys)
    kinds = pa.repeat(pa.scalar(int(RowKind.DELETE), pa.int8()), rows.num_rows)
    return write_files(table, rows, kinds=kinds, stored=stored)


def _rows_to_delete(table: TableHandle, keys: pa.Table | Predicate) -> tuple[pa.Table, bool]:
    """Return what deletions hold, and whether it was read from the table."""
    if isinstance(keys, Predicate):
        return read_rows(table, keys), True
    schema = table.schema
    missing = [name for name in schema.primary_keys if name not in keys.column_names]
    if missing:
        raise InputError(f"the keys to delete lack {', '.join(missing)}")
    named = list(dict.fromkeys((*schema.primary_keys, *schema.sequence_fields)))
    if all(name in keys.column_names for name in named):
        return keys.select(named), False
    return rows_with_keys(table, keys), True


def check_rows_writable(schema: TableSchema) -> None:
    """Raise UnsupportedError or UnsupportedFormatError if rows cannot be written into tables of this
    schema.
    """
    check_writable(schema)
    check_readable(schema)
    merge_plan(schema)


def _buffers(
    schema: TableSchema, data: Rows, kinds: Kinds, stored: bool
) -> Iterator[tuple[pa.Table, pa.Array | None]]:
    """Gather rows, conformed to the schema and checked, into tables of some size."""
    policy = kind_policy(schema)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        rows = conform_rows(schema, data, stored=stored)
        yield _admitted(schema, policy, rows, _kinds(schema, kinds, rows.num_rows))
        return
    if kinds is not None:
        raise InputError("kinds of rows need a single table or batch, not several")
    waiting: list[tuple[pa.Table, pa.Array | None]] = []
    size = 0
    for batch in data:
        rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        admitted = _admitted(schema, policy, conform_rows(schema, rows, stored=stored), None)
        waiting.append(admitted)
        size += admitted[0].nbytes
        if size >= _BUFFERED_BYTES:
            yield _joined(waiting)
            waiting, size = [], 0
    if waiting:
        yield _joined(waiting)


def _admitted(
    schema: TableSchema, policy: KindPolicy, rows: pa.Table, kinds: pa.Array | None
) -> tuple[pa.Table, pa.Array | None]:
    """Return the rows that are written, checked, with their kinds."""
    rows, kinds = policy.admitted(rows, kinds)
    check_not_null(schema, rows, kinds)
    return fill_deletions(schema, rows, kinds), kinds


def _joined(parts: Sequence[tuple[pa.Table, pa.Array | None]]) -> tuple[pa.Table, pa.Array | None]:
    kinds = [part for _, part in parts if part is not None]
    return pa.concat_tables([rows for rows, _ in parts]), pa.concat_arrays(kinds) if kinds else None


def _kinds(schema: TableSchema, kinds: Kinds, rows: int) -> pa.Array | None:
    if kinds is None:
        return None
    found = kinds if isinstance(kinds, pa.Array | pa.ChunkedArray) else pa.array(kinds, pa.int8())
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    found = pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
    if len(found) != rows or found.null_count:
        raise InputError(f"{rows} rows need {rows} kinds, not {len(found) - found.null_count}")
    bounds = pc.min_max(found)
    if rows and not 0 <= bounds["min"].as_py() <= bounds["max"].as_py() <= max(RowKind):
        raise InputError("a row's kind is 0 (+I), 1 (-U), 2 (+U) or 3 (-D)")
    if rows and bounds["max"].as_py() > 0 and not schema.has_primary_key:
        raise UnsupportedError("tables without a primary key take insertions (+I) only")
    return found.cast(pa.int8())


def _check_overwrite(schema: TableSchema, rows: pa.Table, overwrite: Mapping[str, Any] | None) -> None:
    for name, value in (overwrite or {}).items():
        wanted = partition_key([pa.scalar(value, to_arrow(schema.field(name).type)).as_py()])
        if any(partition_key([each]) != wanted for each in rows[name].unique().to_pylist()):
            raise InputError(f"rows of other partitions than {name} = {value!r}, which is overwritten")


class _Writer:
    """The common part of writing to both kinds of table: splitting rows, and counting sequence numbers."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._schema = table.schema
        self._sequences: dict[Where, int] | None = None
        self._collected: dict[str, dict[str, bytes]] = {}
        self._assigner = BucketAssigner(table) if table.schema.has_hash_index else None
        self._placed: PlacedAt | None = None

    def _next_sequence(self, where: Where, rows: int) -> int:
        """Take `rows` sequence numbers for a bucket, and return the first."""
        if self._sequences is None:
            self._sequences = {}
            for entry in self._table.manifests.live_files(self._table.latest_snapshot()):
                key = (entry.partition, entry.bucket)
                after = entry.file.max_sequence_number + 1
                self._sequences[key] = max(self._sequences.get(key, 0), after)
        first = self._sequences.get(where, 0)
        self._sequences[where] = first + rows
        return first

    def _split(self, rows: pa.Table, placed: np.ndarray | None = None) -> Iterator[tuple[Where, Any]]:
        """Yield partition, bucket and the positions of their rows, ascending; `placed` are known buckets."""
        schema, count = self._schema, rows.num_rows
        buckets = self._buckets(rows) if placed is None else pa.array(placed.astype(np.int32))
        columns = [rows[name] for name in schema.partition_keys]
        codes, distinct = partition_codes(columns, count, [pa.chunked_array([buckets])])
        for positions in groups(codes, distinct):
            first = int(positions[0])
            partition = partition_key(column[first].as_py() for column in columns)
            yield (partition, buckets[first].as_py()), positions

    def _buckets(self, rows: pa.Table) -> pa.Array:
        schema = self._schema
        if self._assigner is not None:
            return pa.array(self._assigned(rows, self._assigner))
        if schema.bucket_count > 0:
            types = schema.types_of(schema.bucket_keys)
            return pa.array(assign_buckets(rows, schema.bucket_keys, types, schema.bucket_count))
        return pa.nulls(rows.num_rows, pa.int32()).fill_null(0)

    def _assigned(self, rows: pa.Table, assigner: BucketAssigner) -> np.ndarray:
        columns = [rows[name] for name in self._schema.partition_keys]
        found = np.zeros(rows.num_rows, np.int32)
        codes, distinct = partition_codes(columns, rows.num_rows)
        for positions in groups(codes, distinct):
            partition = partition_key(column[int(positions[0])].as_py() for column in columns)
            found[positions] = assigner.assign(partition, rows.take(pa.array(positions)))
        return found

    def _message(self, where: Where, files: Sequence[DataFileMeta]) -> CommitMessage:
        names = [file.file_name for file in files]
        collected = {name: self._collected[name] for name in names if name in self._collected}
        hashes = b"" if self._assigner is None else self._assigner.hashes(*where)
        count = self._schema.bucket_count
        return CommitMessage(
            *where, count, tuple(files), collected=collected, hashes=hashes, placed=self._placed
        )


class _KeyWriter(_Writer):
    """Key tables: each buffer becomes one sorted run a bucket; `records` if its rows make a changelog."""

    def __init__(self, table: TableHandle, *, records: bool, replace_all: bool = False) -> None:
        super().__init__(table)
        self._records = records
        self._locations: KeyLocations | None = None
        if table.schema.moves_keys:
            snapshot = table.latest_snapshot()
            self._locations = KeyLocations.of_table(table, None if replace_all else snapshot)
            self._placed = PlacedAt.after(snapshot, replace_all=replace_all)
        self._keys = [KEY_PREFIX + name for name in table.schema.trimmed_primary_keys]
        plan = merge_plan(table.schema)
        assert plan is not None, "a key table has a merge plan"
        self._plan = plan
        self._done: dict[Where, list[DataFileMeta]] = {}
        self._changelogs: dict[Where, list[DataFileMeta]] = {}

    def write(self, rows: pa.Table, kinds: pa.Array | None) -> None:
        """Write one buffer."""
        if kinds is None:
            kinds = pa.nulls(rows.num_rows, pa.int8()).fill_null(0)
        partition, key = self._schema.partition_keys, self._schema.primary_keys
        codes, count = partition_codes(
            [rows[name] for name in partition if name in key],
            rows.num_rows,
            [rows[name] for name in key if name not in partition],
        )
        newest = pa.array(last_of_each(codes, count, self._by_age(rows, codes, count)))
        merges = len(newest) < rows.num_rows and (self._records or self._plan.engine != DEDUPLICATE)
        if len(newest) < rows.num_rows and not merges:
            rows, kinds = rows.take(newest), kinds.take(newest)
        placed = None
        if self._locations is not None:
            found = self._locations.located(rows, kinds)
            rows, kinds, placed = self._locations.moved(rows, found), found.kind, found.bucket
        for where, positions in self._split(rows, placed):
            first = self._next_sequence(where, len(positions))
            chosen = pa.array(positions)
            numbers = pa.array(np.arange(first, first + len(positions), dtype=np.int64))
            laid_out = with_system_columns(self._schema, rows.take(chosen), numbers, kinds.take(chosen))
            if self._records:
                self._write_run(where, laid_out, self._changelogs, changelog=True)
            if merges:
                laid_out = merge_tables(self._plan, [laid_out], keep_deletes=True)
            self._write_run(where, laid_out, self._done)

    def _write_run(
        self, where: Where, rows: pa.Table, done: dict[Where, list[DataFileMeta]], *, changelog: bool = False
    ) -> None:
        with BucketWriter(self._table, *where, changelog=changelog) as writer:
            writer.write(sort_by_key(rows, self._keys))
            done.setdefault(where, []).extend(writer.close())
            self._collected |= writer.collected

    def _by_age(self, rows: pa.Table, codes: Codes, count: int) -> Codes | None:
        fields = self._schema.sequence_fields
        return by_sequence(rows, fields, self._plan.descending, codes, count) if fields else None

    def close(self) -> list[CommitMessage]:
        """Say what to commit."""
        places = dict.fromkeys((*self._done, *self._changelogs))
        return [
            replace(
                self._message(where, self._done.get(where, [])),
                changelog=tuple(self._changelogs.get(where, ())),
            )
            for where in places
        ]

    def abort(self) -> None:
        """Delete what was written."""
        abort_messages(self._table, self.close())


class _AppendWriter(_Writer):
    """Append tables: files go on from buffer to buffer."""

    def __init__(self, table: TableHandle) -> None:
        super().__init__(table)
        self._open: dict[Where, BucketWriter] = {}
        self._done: dict[Where, list[DataFileMeta]] = {}
        self._order = clustering_columns(table.schema)

    def write(self, rows: pa.Table, kinds: pa.Array | None) -> None:
        """Write one buffer, in the table's order of rows if it has one."""
        rows = in_order(rows, self._order)
        for where, positions in self._split(rows):
            whole = len(positions) == rows.num_rows
            self._writer(where, len(positions)).write(rows if whole else rows.take(pa.array(positions)))

    def _writer(self, where: Where, rows: int) -> BucketWriter:
        # Without buckets nothing orders the rows of different files, and Paimon counts from 0 in each.
        first = self._next_sequence(where, rows) if self._schema.bucket_count > 0 else 0
        if where not in self._open:
            if len(self._open) >= _OPEN_WRITERS:
                self._finish(next(iter(self._open)))
            self._open[where] = BucketWriter(self._table, *where, first_sequence=first)
        return self._open[where]

    def _finish(self, where: Where) -> None:
        writer = self._open.pop(where)
        try:
            self._done.setdefault(where, []).extend(writer.close())
            self._collected |= writer.collected
        except BaseException:
            writer.abort()
            raise

    def close(self) -> list[CommitMessage]:
        """Finish all files and say what to commit."""
        for where in list(self._open):
            self._finish(where)
        return [self._message(where, files) for where, files in self._done.items()]

    def abort(self) -> None:
        """Delete what was written."""
        for writer in self._open.values():
            writer.abort()
        self._open.clear()
        abort_messages(self._table, self.close())
