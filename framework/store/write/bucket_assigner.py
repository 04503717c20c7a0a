"""Buckets of keys in tables with dynamic buckets: those of known keys, and the assignment of new ones.

Source: Paimon's `PartitionIndex`. A key that the table knows stays in its bucket; a new one goes to a bucket
with room, else to a new bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework import options as table_options
from lockgate.framework.store.commit.hash_index import hash_entries, read_hashes, to_bytes
from lockgate.framework.store.manifests.manifest_files import partitions_in
from lockgate.framework.store.rows.bucket import hash_rows
from lockgate.pushdown.index import distinct

if TYPE_CHECKING:
    from lockgate.framework.store.commit.hash_index import Buckets
    from lockgate.framework.store.handle import TableHandle

# As Paimon's: the number of a bucket is a short.
_MOST_BUCKETS = 32767

Partition = tuple[Any, ...]


class BucketAssigner:
    """Gives rows their buckets, from the index of the newest snapshot and what it gave before.

    Whether that still holds when the rows become visible, their commit checks (see `hash_index`).
    """

    def __init__(self, table: TableHandle) -> None:
        self._table = table
        self._keys = table.schema.trimmed_primary_keys
        self._types = table.schema.types_of(self._keys)
        self._snapshot = table.latest_snapshot()
        self._entries = hash_entries(table, self._snapshot)
        self._partitions: dict[Partition, _PartitionBuckets] = {}
        self._written: dict[tuple[Partition, int], list[np.ndarray]] = {}

    def assign(self, partition: Partition, rows: pa.Table) -> np.ndarray:
        """Return the bucket of each row of a partition."""
        return self.assign_hashes(partition, hash_rows([rows[name] for name in self._keys], self._types))

    def assign_hashes(self, partition: Partition, hashes: np.ndarray) -> np.ndarray:
        """Return the buckets of keys of a partition by their hashes, which `hash_rows` gives."""
        if partition not in self._partitions:
            self._check_indexed(partition)
            there = read_hashes(self._table, self._entries.get(partition, {}))
            self._partitions[partition] = _PartitionBuckets(there, *limits_of(self._table))
        buckets = self._partitions[partition].assign(hashes)
        for bucket in np.unique(buckets):
            self._written.setdefault((partition, int(bucket)), []).append(distinct(hashes[buckets == bucket]))
        return buckets

    def _check_indexed(self, partition: Partition) -> None:
        """Refuse a partition with files that no index knows: their keys would get other buckets."""
        live = self._table.manifests.live_files(self._snapshot, partitions_in({partition}))
        buckets = {entry.bucket for entry in live if entry.partition == partition}
        missing = buckets - self._entries.get(partition, {}).keys()
        if missing:
            raise UnsupportedError(
                f"bucket {min(missing)} of {self._table.identifier} has no hash index, which lists its "
                "keys: written rows could appear twice; copy the rows to another table"
            )

    def hashes(self, partition: Partition, bucket: int) -> bytes:
        """Return the hashes of the keys that were written to a bucket, as a commit takes them.

        InputError for a bucket that was given to none.
        """
        if (partition, bucket) not in self._written:
            raise InputError(
                f"no key was given bucket {bucket} of partition {partition!r}, but a file lies there"
            )
        return to_bytes(np.concatenate(self._written[partition, bucket]))


def limits_of(table: TableHandle) -> tuple[int, int]:
    """Return how many keys a bucket takes, and how many buckets a partition may have."""
    options = table.schema.table_options
    most = options.get_option(table_options.DYNAMIC_BUCKET_MAX)
    return options.get_option(table_options.DYNAMIC_BUCKET_TARGET), _MOST_BUCKETS if most < 1 else most


class BucketChoice:
    """The buckets that new keys of a partition go to: `target` keys a bucket, `most` buckets."""

    def __init__(self, target: int, most: int) -> None:
        self._target, self._most = target, most

    def next(self, counts: Mapping[int, int]) -> tuple[int, int]:
        """Return a bucket for new keys and how many it takes; `counts` are the keys that buckets have."""
        for bucket in sorted(counts):
            if counts[bucket] < self._target:
                return bucket, self._target - counts[bucket]
        free = next(number for number in range(len(counts) + 1) if number not in counts)
        if free < self._most:
            return free, self._target
        # All are full, and no more may be made: they grow alike.
        return min(counts, key=lambda bucket: counts[bucket]), self._target


class _PartitionBuckets:
    """The buckets of one partition: how many keys each has, and the bucket of each hash.

    Hashes lie in sorted runs, each at most half as long as the one before it, so that many small additions
    cost little.
    """

    def __init__(self, there: Buckets, target: int, most: int) -> None:
        self._choice = BucketChoice(target, most)
        self._counts = {bucket: len(hashes) for bucket, hashes in there.items()}
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        if there:
            numbers = [np.full(len(hashes), bucket, np.int32) for bucket, hashes in there.items()]
            self._add(np.concatenate(list(there.values())), np.concatenate(numbers))

    def _add(self, hashes: np.ndarray, buckets: np.ndarray) -> None:
        while self._runs and len(self._runs[-1][0]) < 2 * len(hashes):
            other_hashes, other_buckets = self._runs.pop()
            hashes, buckets = np.concatenate([other_hashes, hashes]), np.concatenate([other_buckets, buckets])
        order = np.argsort(hashes, kind="stable")
        self._runs.append((hashes[order], buckets[order]))

    def _known(self, hashes: np.ndarray) -> np.ndarray:
        """Return the bucket of each hash, -1 for those that have none."""
        found = np.full(len(hashes), -1, np.int32)
        for run, buckets in self._runs:
            at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found = np.where(run[at] == hashes, buckets[at], found)
        return found

    def assign(self, hashes: np.ndarray) -> np.ndarray:
        """Return the bucket of each hash; those that are not known become so."""
        keys, places = np.unique(hashes, return_inverse=True)
        buckets = self._known(keys)
        unknown = np.flatnonzero(buckets < 0)
        while len(unknown):
            bucket, room = self._choice.next(self._counts)
            chosen, unknown = unknown[:room], unknown[room:]
            self._counts[bucket] = self._counts.get(bucket, 0) + len(chosen)
            buckets[chosen] = bucket
            self._add(keys[chosen], buckets[chosen])
        found: np.ndarray = buckets[places]
        return found
