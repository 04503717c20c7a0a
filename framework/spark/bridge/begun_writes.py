"""The writes that have begun and neither committed nor aborted."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError

if TYPE_CHECKING:
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.table import Table
    from lockgate.framework.store.write.bucket_assigner import BucketAssigner

# EXPLAIN of an INSERT begins a write that nobody ends.
_REMEMBERED = 1000

# Big endian, as Java's buffers are.
_NUMBERS = ">i4"


@dataclass(frozen=True)
class BegunWrite:
    """A write: the table as its files are written for, and what gives keys their buckets if they are dynamic.

    Tasks ask for buckets at the same time; `lock` lets one of them in.
    """

    table: Table
    assigner: BucketAssigner | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def assign(self, partition: Mapping[str, Any], hashes: bytes) -> bytes:
        """Return the bucket of each key of a partition by its hash, both as numbers of 32 bits.

        InputError for a table without dynamic buckets.
        """
        import numpy as np

        from lockgate.framework.store.commit.message import partition_from_json

        if self.assigner is None:
            raise InputError(f"a task asked for buckets of {self.table.identifier}, which are not dynamic")
        values = partition_from_json(partition, self.table.schema)
        with self.lock:
            buckets = self.assigner.assign_hashes(values, np.frombuffer(hashes, _NUMBERS).astype(np.int32))
        return buckets.astype(_NUMBERS).tobytes()

    def with_hashes(self, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
        """Return messages with the hashes of the keys in their buckets, if buckets are dynamic.

        A task that was repeated has asked twice: keys of the first try stay in the index, which does no harm.
        InputError for a bucket that no task asked for.
        """
        if self.assigner is None:
            return list(messages)
        with self.lock:
            return [
                replace(each, hashes=self.assigner.hashes(each.partition, each.bucket)) for each in messages
            ]


class BegunWrites:
    """By the id of a write that has begun: what is known of it.

    The oldest are forgotten beyond a thousand. Their commit loads the table and checks that it still is the
    one that the query was analysed with, which refuses more than it must and writes nothing wrong.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes: OrderedDict[str, BegunWrite] = OrderedDict()

    def begin(self, table: Table) -> str:
        """Return the id of a new write."""
        from lockgate.framework.store.write.bucket_assigner import BucketAssigner

        assigner = BucketAssigner(table) if table.schema.has_hash_index else None
        write_id = str(uuid.uuid4())
        with self._lock:
            self._writes[write_id] = BegunWrite(table, assigner)
            while len(self._writes) > _REMEMBERED:
                self._writes.popitem(last=False)
        return write_id

    def get(self, write_id: str) -> BegunWrite | None:
        """Return a write that has begun, None if it is not known (any more)."""
        with self._lock:
            return self._writes.get(write_id)

    def end(self, write_id: str) -> BegunWrite | None:
        """Return a write that ends, None if it is not known (any more)."""
        with self._lock:
            return self._writes.pop(write_id, None)

    def __len__(self) -> int:
        return len(self._writes)
