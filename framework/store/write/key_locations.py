"""Locations of keys that may move between partitions: the partition and the bucket in which each key lies.

No index of such a table is on disk: its keys are read before rows are written. A row of a found key then
does what the merge engine says. Source: Paimon's `GlobalIndexAssigner` and `ExistingProcessor`, which do not
guard that two writers put one key into two partitions; here the commit does (see `read_basis`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.framework.access import ALLOWED
from lockgate.framework.options import table_options
from lockgate.framework.store.merge.group_codes import group_codes, groups, last_of_each
from lockgate.framework.store.merge.merge_plan import DEDUPLICATE, FIRST_ROW, RowKind
from lockgate.framework.store.pruning.split import by_bucket
from lockgate.framework.store.scan.read import FileReader, SplitReader
from lockgate.framework.store.scan.request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.store.write.bucket_assigner import limits_of
from lockgate.framework.types import one_nan

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

Found: TypeAlias = Iterator[tuple[tuple[Any, ...], int, pa.Table]]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LocatedRows:
    """Rows in the partitions that they are written to, with their kinds and buckets."""

    rows: pa.Table
    kinds: pa.Array
    buckets: Numbers


class KeyLocations:
    """The locations of a table's keys, as of its newest snapshot, and of those that were written since.

    All keys of the table are in memory. `afresh`: there are none, since all rows are overwritten.
    """

    def __init__(self, table: TableHandle, *, afresh: bool = False) -> None:
        schema = table.schema
        self._schema = schema
        self._engine = schema.table_options.get_option(table_options.MERGE_ENGINE)
        self._target, self._most = limits_of(table)
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._counts: list[dict[int, int]] = []
        self._keys = schema.arrow_schema.empty_table().select(list(schema.primary_keys))
        self._partition = self._bucket = np.zeros(0, np.int64)
        self._there = np.zeros(0, np.bool_)
        self.snapshot = table.latest_snapshot()
        if self.snapshot is not None and not afresh:
            self._load(table, self.snapshot)

    def _load(self, table: TableHandle, snapshot: Snapshot) -> None:
        stored = self._engine == FIRST_ROW
        parts, locations = [self._keys], []
        for partition, bucket, part in (_stored if stored else _shown)(table, snapshot):
            number = self._number(tuple(one_nan(value) for value in partition))
            parts.append(part.cast(self._keys.schema))
            locations.append((number, bucket, part.num_rows))
            counts = self._counts[number]
            counts[bucket] = counts.get(bucket, 0) + part.num_rows
        self._keys = pa.concat_tables(parts)
        rows = [rows for *_, rows in locations]
        self._partition = np.repeat([number for number, *_ in locations], rows).astype(np.int64)
        self._bucket = np.repeat([bucket for _, bucket, _ in locations], rows).astype(np.int64)
        self._there = np.ones(self._keys.num_rows, np.bool_)

    def _number(self, partition: tuple[Any, ...]) -> int:
        """Return the number of a partition."""
        if partition not in self._numbers:
            self._numbers[partition] = len(self._counts)
            self._counts.append({})
        return self._numbers[partition]

    # --- rows --------------------------------------------------------------------------------------

    def located(self, rows: pa.Table, kinds: pa.Array) -> LocatedRows:
        """Return what is written for some rows, and note where their keys lie then.

        With merge engine `deduplicate` each key must occur once. A row of a key in another partition replaces
        the row there, which a deletion takes away. With other engines the new row goes to the old row's
        partition.
        """
        count = self._keys.num_rows
        names = list(self._schema.primary_keys)
        both = pa.concat_tables([self._keys, rows.select(names).cast(self._keys.schema)])
        codes, bound = group_codes([both[name] for name in names], both.num_rows)
        slots = np.full(bound, -1, np.int64)
        slots[codes[:count]] = np.arange(count)
        codes = codes[count:]
        given = self._given(rows)
        if self._engine == DEDUPLICATE:
            return self._replaced(rows, kinds, slots[codes], given)
        return self._merged(rows, kinds, codes, slots, given)

    def _given(self, rows: pa.Table) -> Numbers:
        """Return the number of the partition that each row names."""
        columns = [rows[name] for name in self._schema.partition_keys]
        codes, bound = group_codes(columns, rows.num_rows)
        found = np.zeros(rows.num_rows, np.int64)
        for positions in groups(codes, bound):
            first = int(positions[0])
            found[positions] = self._number(tuple(one_nan(column[first].as_py()) for column in columns))
        return found

    def _replaced(self, rows: pa.Table, kinds: pa.Array, slots: Numbers, given: Numbers) -> LocatedRows:
        found = slots >= 0
        found[found] = self._there[slots[found]]
        gone = np.isin(kinds.to_numpy(zero_copy_only=False), (RowKind.UPDATE_BEFORE, RowKind.DELETE))
        # A deletion goes to the row that it takes away; without one there is nothing to write.
        partition, bucket = given.copy(), np.full(len(given), -1, np.int64)
        stays = found & (gone | (self._at(slots, found, self._partition) == given))
        partition[stays], bucket[stays] = self._partition[slots[stays]], self._bucket[slots[stays]]
        fresh = (bucket < 0) & ~gone
        bucket[fresh] = self._assigned(partition[fresh])
        leaves = found & ~stays
        left = slots[leaves]
        written = found | ~gone
        deletions = self._moved(rows.filter(pa.array(leaves)), self._partition[left])
        placed = LocatedRows(
            pa.concat_tables([deletions, self._moved(rows, partition).filter(pa.array(written))]),
            pa.concat_arrays(
                [
                    pa.repeat(pa.scalar(int(RowKind.DELETE), pa.int8()), len(left)),
                    kinds.filter(pa.array(written)),
                ]
            ),
            np.concatenate([self._bucket[left], bucket[written]]),
        )
        self._note(rows, slots, partition, bucket, ~gone)
        return placed

    def _merged(
        self, rows: pa.Table, kinds: pa.Array, codes: Numbers, slots: Numbers, given: Numbers
    ) -> LocatedRows:
        # The first row of a new key says where it lies; numpy keeps the last of several values.
        first = np.full(len(slots), -1, np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        fresh = (slots[codes] < 0) & (first[codes] == np.arange(len(codes)))
        bucket = np.full(len(codes), -1, np.int64)
        bucket[fresh] = self._assigned(given[fresh])
        new = slots[codes] < 0
        found = ~new
        partition = given[first[codes]]
        bucket = bucket[first[codes]]
        partition[found], bucket[found] = (
            self._partition[slots[codes[found]]],
            self._bucket[slots[codes[found]]],
        )
        self._note(rows, np.where(fresh, -1, 0), partition, bucket, fresh, only_new=True)
        # Of a key that is there, first-row shows no other row.
        written = new if self._engine == FIRST_ROW else np.ones(len(codes), np.bool_)
        chosen = pa.array(written)
        return LocatedRows(self._moved(rows, partition).filter(chosen), kinds.filter(chosen), bucket[written])

    def _at(self, slots: Numbers, there: Mask, values: Numbers) -> Numbers:
        found = np.full(len(slots), -1, np.int64)
        found[there] = values[slots[there]]
        return found

    def _moved(self, rows: pa.Table, partition: Numbers) -> pa.Table:
        """Return rows with the values of other partitions."""
        values = list(self._numbers)
        for index, name in enumerate(self._schema.partition_keys):
            at = rows.schema.get_field_index(name)
            column = pa.array([each[index] for each in values], rows.schema.field(at).type)
            rows = rows.set_column(at, rows.schema.field(at), column.take(pa.array(partition)))
        return rows

    # --- locations ------------------------------------------------------------------------------------

    def _assigned(self, partition: Numbers) -> Numbers:
        """Give new keys buckets of their partitions: such with room, else new ones."""
        found = np.zeros(len(partition), np.int64)
        for number in np.unique(partition):
            waiting = np.flatnonzero(partition == number)
            counts = self._counts[int(number)]
            while len(waiting):
                bucket, room = self._next_bucket(counts)
                found[waiting[:room]] = bucket
                counts[bucket] = counts.get(bucket, 0) + min(room, len(waiting))
                waiting = waiting[room:]
        return found

    def _next_bucket(self, counts: dict[int, int]) -> tuple[int, int]:
        for bucket in sorted(counts):
            if counts[bucket] < self._target:
                return bucket, self._target - counts[bucket]
        free = next(number for number in range(len(counts) + 1) if number not in counts)
        if free < self._most:
            return free, self._target
        return min(counts, key=lambda bucket: counts[bucket]), self._target

    def _note(
        self,
        rows: pa.Table,
        slots: Numbers,
        partition: Numbers,
        bucket: Numbers,
        there: Mask,
        *,
        only_new: bool = False,
    ) -> None:
        """Note where keys lie now; those of new ones (a slot below 0) that are not there are left out."""
        if not only_new:
            old = slots >= 0
            self._partition[slots[old]], self._bucket[slots[old]] = partition[old], bucket[old]
            self._there[slots[old]] = there[old]
        new = (slots < 0) & there
        keys = rows.select(self._keys.column_names).filter(pa.array(new)).cast(self._keys.schema)
        self._keys = pa.concat_tables([self._keys, keys])
        self._partition = np.concatenate([self._partition, partition[new]])
        self._bucket = np.concatenate([self._bucket, bucket[new]])
        self._there = np.concatenate([self._there, np.ones(int(new.sum()), np.bool_)])


def _shown(table: TableHandle, snapshot: Snapshot) -> Found:
    """Yield the keys of the rows of a snapshot, with their partition and bucket."""
    wanted = ReadRequest(
        columns=table.schema.primary_keys, snapshot_id=snapshot.id, own_schema=False, decided=ALLOWED
    )
    plan = plan_scan(table, wanted, all_files=True)
    reader = SplitReader(table, plan)
    for split in plan.splits:
        for part in reader.split_tables(split):
            yield tuple(split.partition.values()), split.bucket, part


def _stored(table: TableHandle, snapshot: Snapshot) -> Found:
    """Yield the keys of files, each once a bucket, also of those that no query shows yet."""
    schema = table.schema
    reader = FileReader(table, schema)
    for entries in by_bucket(table.manifests.live_files(snapshot)):
        one = entries[0]
        values = dict(zip(schema.partition_keys, one.partition, strict=True))
        paths = table.paths.data_files(one.partition, one.bucket, [entry.file for entry in entries])
        keys = pa.concat_tables(
            reader.whole(path, entry.file, schema.primary_keys, values)
            for path, entry in zip(paths, entries, strict=True)
        )
        codes, count = group_codes(keys.columns, keys.num_rows)
        yield one.partition, one.bucket, keys.take(pa.array(last_of_each(codes, count)))
