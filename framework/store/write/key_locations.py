"""Locations of keys that may move between partitions: the partition and the bucket in which each key lies.

No index of such a table is on disk: its keys are read before rows are written. A row of a found key then
does what the merge engine says. Source: Paimon's `GlobalIndexAssigner` and `ExistingProcessor`, which do not
guard that two writers put one key into two partitions; here the commit does (see `read_basis`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework import options as table_options
from lockgate.framework.access import ALLOWED
from lockgate.framework.store.commit.message import PlacedAt
from lockgate.framework.store.merge.group_codes import group_codes, groups, last_of_each, partition_codes
from lockgate.framework.store.merge.merge_plan import DEDUPLICATE, FIRST_ROW, RowKind
from lockgate.framework.store.pruning.split import by_bucket
from lockgate.framework.store.scan.read import FileReader, SplitReader
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.store.write.bucket_assigner import BucketChoice, limits_of
from lockgate.framework.store.write.key_index import KeyIndex
from lockgate.framework.types import partition_key

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

Found: TypeAlias = Iterator[tuple[tuple[Any, ...], int, pa.Table]]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LocatedRows:
    """The rows to write for some rows that came: for each, where it came, its kind, its partition and bucket.

    `row` counts the rows that came, `partition` those of `KeyLocations.partitions`; `moved` says whether that
    is another one than the row names. A deletion in the partition that a key leaves holds the row that came.
    """

    row: Numbers
    kind: pa.Array
    partition: Numbers
    moved: Mask
    bucket: Numbers


class KeyLocations:
    """The locations of a table's keys, and of those that were written since they were read.

    All keys of the table are in memory.
    """

    def __init__(self, table: TableHandle) -> None:
        schema = table.schema
        self._schema = schema
        self._engine = schema.table_options.get_option(table_options.MERGE_ENGINE)
        self._buckets = BucketChoice(*limits_of(table))
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._counts: list[dict[int, int]] = []
        names = list(schema.primary_keys)
        self._keys = KeyIndex(
            schema.arrow_schema.empty_table().select(names).schema, schema.types_of(schema.primary_keys)
        )
        self._partition = self._bucket = np.zeros(0, np.int64)
        self._there = np.zeros(0, np.bool_)
        self._earlier: KeyLocations | None = None

    @classmethod
    def of_table(cls, table: TableHandle, snapshot: Snapshot | None) -> KeyLocations:
        """Read the locations of all keys of a snapshot."""
        found = cls(table)
        if snapshot is not None:
            found._load(table, snapshot)
        return found

    def branch(self) -> KeyLocations:
        """Return locations that start as these, which they leave as they are.

        Both give out the same numbers of partitions, and fill the same buckets.
        """
        branch = copy.copy(self)
        branch._keys = self._keys.emptied()
        branch._partition = branch._bucket = np.zeros(0, np.int64)
        branch._there = np.zeros(0, np.bool_)
        branch._earlier = self
        return branch

    @property
    def partitions(self) -> list[tuple[Any, ...]]:
        """The values of the partitions by number."""
        return list(self._numbers)

    def gave(self, partition: tuple[Any, ...], bucket: int) -> bool:
        """Say whether keys lie in a bucket of a partition."""
        number = self._numbers.get(partition_key(partition))
        return number is not None and bucket in self._counts[number]

    def _load(self, table: TableHandle, snapshot: Snapshot) -> None:
        stored = self._engine == FIRST_ROW
        parts, locations = [self._keys.schema.empty_table()], []
        for partition, bucket, part in (_stored if stored else _shown)(table, snapshot):
            number = self._number(partition_key(partition))
            parts.append(part.cast(self._keys.schema))
            locations.append((number, bucket, part.num_rows))
            counts = self._counts[number]
            counts[bucket] = counts.get(bucket, 0) + part.num_rows
        rows = [rows for *_, rows in locations]
        partitions = np.repeat([number for number, *_ in locations], rows).astype(np.int64)
        buckets = np.repeat([bucket for _, bucket, _ in locations], rows).astype(np.int64)
        self._add(pa.concat_tables(parts), partitions, buckets, np.ones(len(buckets), np.bool_))

    def _number(self, partition: tuple[Any, ...]) -> int:
        """Return the number of a partition."""
        if partition not in self._numbers:
            self._numbers[partition] = len(self._counts)
            self._counts.append({})
        return self._numbers[partition]

    # --- rows --------------------------------------------------------------------------------------

    def located(self, rows: pa.Table, kinds: pa.Array) -> LocatedRows:
        """Return what is written for some rows, and note where their keys lie then.

        `rows` need the columns of the primary key and of the partition. With merge engine `deduplicate` the
        last row of a key replaces the row in another partition, which a deletion takes away. With other
        engines the new row goes to the old row's partition.
        """
        keys = rows.select(self._keys.schema.names).cast(self._keys.schema)
        codes, bound = group_codes(keys.columns, keys.num_rows)
        if self._engine == DEDUPLICATE:
            last = last_of_each(codes, bound)
            if len(last) < rows.num_rows:
                chosen = pa.array(last)
                found = self.located(rows.take(chosen), kinds.take(chosen))
                return replace(found, row=last[found.row])
        slots = self._slots(keys)
        given = self._given(rows)
        if self._engine == DEDUPLICATE:
            return self._replaced(keys, kinds, slots, given)
        return self._merged(keys, kinds, codes, bound, slots, given)

    def moved(self, rows: pa.Table, located: LocatedRows) -> pa.Table:
        """Return the rows to write, with the values of the partitions that they are written to."""
        rows = rows.take(pa.array(located.row))
        for index, name in enumerate(self._schema.partition_keys):
            at = rows.schema.get_field_index(name)
            column = pa.array([each[index] for each in self._numbers], rows.schema.field(at).type)
            rows = rows.set_column(at, rows.schema.field(at), column.take(pa.array(located.partition)))
        return rows

    def _slots(self, keys: pa.Table) -> Numbers:
        """Return the number of each key, -1 for those that are new."""
        slots = self._keys.find(keys)
        earlier = self._earlier
        new = np.flatnonzero(slots < 0)
        if earlier is None or not len(new):
            return slots
        there = earlier._slots(keys.take(pa.array(new)))
        taken = np.unique(there[there >= 0], return_index=True)[1]
        if len(taken):
            first = np.flatnonzero(there >= 0)[taken]
            at = there[first]
            self._add(
                keys.take(pa.array(new[first])),
                earlier._partition[at],
                earlier._bucket[at],
                earlier._there[at],
            )
            slots[new] = self._keys.find(keys.take(pa.array(new)))
        return slots

    def _given(self, rows: pa.Table) -> Numbers:
        """Return the number of the partition that each row names."""
        columns = [rows[name] for name in self._schema.partition_keys]
        codes, bound = partition_codes(columns, rows.num_rows)
        found = np.zeros(rows.num_rows, np.int64)
        for positions in groups(codes, bound):
            first = int(positions[0])
            found[positions] = self._number(partition_key(column[first].as_py() for column in columns))
        return found

    def _replaced(self, keys: pa.Table, kinds: pa.Array, slots: Numbers, given: Numbers) -> LocatedRows:
        found = slots >= 0
        found[found] = self._there[slots[found]]
        gone = np.isin(kinds.to_numpy(zero_copy_only=False), (RowKind.UPDATE_BEFORE, RowKind.DELETE))
        # A deletion goes to the row that it takes away; without one there is nothing to write.
        partition, bucket = given.copy(), np.full(len(given), -1, np.int64)
        stays = found & (gone | (_at(slots, found, self._partition) == given))
        partition[stays], bucket[stays] = self._partition[slots[stays]], self._bucket[slots[stays]]
        fresh = (bucket < 0) & ~gone
        bucket[fresh] = self._assigned(partition[fresh])
        leaves = found & ~stays
        left = slots[leaves]
        written = found | ~gone
        row = np.concatenate([np.flatnonzero(leaves), np.flatnonzero(written)])
        into = np.concatenate([self._partition[left], partition[written]])
        deletions = pa.repeat(pa.scalar(int(RowKind.DELETE), pa.int8()), len(left))
        located = LocatedRows(
            row,
            pa.concat_arrays([deletions, kinds.filter(pa.array(written))]),
            into,
            into != given[row],
            np.concatenate([self._bucket[left], bucket[written]]),
        )
        old = slots >= 0
        self._partition[slots[old]], self._bucket[slots[old]] = partition[old], bucket[old]
        self._there[slots[old]] = ~gone[old]
        self._note(keys, (slots < 0) & ~gone, partition, bucket)
        return located

    def _merged(
        self, keys: pa.Table, kinds: pa.Array, codes: Numbers, bound: int, slots: Numbers, given: Numbers
    ) -> LocatedRows:
        # The first row of a new key says where it lies; numpy keeps the last of several values.
        first = np.full(bound, -1, np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        first = first[codes]
        new = slots < 0
        fresh = new & (first == np.arange(len(codes)))
        bucket = np.full(len(codes), -1, np.int64)
        bucket[fresh] = self._assigned(given[fresh])
        partition, bucket = given[first], bucket[first]
        partition[~new], bucket[~new] = self._partition[slots[~new]], self._bucket[slots[~new]]
        self._note(keys, fresh, partition, bucket)
        # Of a key that is there, first-row shows no other row.
        written = new if self._engine == FIRST_ROW else np.ones(len(codes), np.bool_)
        row = np.flatnonzero(written)
        into = partition[written]
        chosen = kinds.filter(pa.array(written))
        return LocatedRows(row, chosen, into, into != given[row], bucket[written])

    # --- locations ------------------------------------------------------------------------------------

    def _assigned(self, partition: Numbers) -> Numbers:
        """Give new keys buckets of their partitions: such with room, else new ones."""
        found = np.zeros(len(partition), np.int64)
        for number in np.unique(partition):
            waiting = np.flatnonzero(partition == number)
            counts = self._counts[int(number)]
            while len(waiting):
                bucket, room = self._buckets.next(counts)
                found[waiting[:room]] = bucket
                counts[bucket] = counts.get(bucket, 0) + min(room, len(waiting))
                waiting = waiting[room:]
        return found

    def _note(self, keys: pa.Table, new: Mask, partition: Numbers, bucket: Numbers) -> None:
        """Note where new keys lie."""
        self._add(keys.filter(pa.array(new)), partition[new], bucket[new], np.ones(int(new.sum()), np.bool_))

    def _add(self, keys: pa.Table, partition: Numbers, bucket: Numbers, there: Mask) -> None:
        self._keys.add(keys)
        self._partition = np.concatenate([self._partition, partition])
        self._bucket = np.concatenate([self._bucket, bucket])
        self._there = np.concatenate([self._there, there])


class TriedLocations:
    """Locations for a write by several tasks, each of which may be tried more than once.

    A try knows what it wrote itself, and nothing of another try of its task. All rows of a key must come to
    one task. The keys of the table are read when the first task asks. Not for several threads at once.
    """

    def __init__(self, table: TableHandle, *, replace_all: bool = False) -> None:
        self._table = table
        self._replace_all = replace_all
        self._base: KeyLocations | None = None
        self._tries: dict[str, KeyLocations] = {}
        self.placed: PlacedAt | None = None

    def of_try(self, attempt: str) -> KeyLocations:
        """Return the locations that a try of a task knows."""
        if self._base is None:
            snapshot = self._table.latest_snapshot()
            self._base = KeyLocations.of_table(self._table, None if self._replace_all else snapshot)
            self.placed = PlacedAt.after(snapshot, replace_all=self._replace_all)
        if attempt not in self._tries:
            self._tries[attempt] = self._base.branch()
        return self._tries[attempt]

    def placed_for(self, partition: tuple[Any, ...], bucket: int) -> PlacedAt:
        """Return in which state the keys of a bucket were looked up; InputError if no task asked for it."""
        if self._base is None or self.placed is None or not self._base.gave(partition, bucket):
            raise InputError(
                f"no key was given bucket {bucket} of partition {partition!r}, but a file lies there"
            )
        return self.placed


def _at(slots: Numbers, there: Mask, values: Numbers) -> Numbers:
    found = np.full(len(slots), -1, np.int64)
    found[there] = values[slots[there]]
    return found


def _shown(table: TableHandle, snapshot: Snapshot) -> Found:
    """Yield the keys of the rows of a snapshot, with their partition and bucket."""
    wanted = ReadRequest(
        columns=table.schema.primary_keys, snapshot_id=snapshot.id, own_schema=False, decided=ALLOWED
    )
    plan = plan_scan(table, wanted, all_files=True)
    reader = SplitReader(table, plan)
    for split in plan.splits:
        for part in reader.split_tables(split):
            yield partition_key(split.partition.values()), split.bucket, part


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
