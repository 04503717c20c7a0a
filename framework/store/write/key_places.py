"""Where a write's keys go, if that is decided while its tasks write: buckets, or partitions and buckets."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.schema.schema import TableSchema
    from lockgate.framework.store.write.bucket_assigner import BucketAssigner
    from lockgate.framework.store.write.key_locations import TriedLocations

# Big endian, as Java's buffers are.
_NUMBERS = ">i4"


@dataclass(frozen=True)
class KeyPlaces:
    """The places of a write's keys: `assigner` gives them buckets if these are dynamic, `locations` both
    partitions and buckets if keys may move.

    Tasks ask at the same time; `lock` lets one of them in.
    """

    table: TableHandle
    assigner: BucketAssigner | None = None
    locations: TriedLocations | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, table: TableHandle, *, replace_all: bool) -> KeyPlaces:
        """Return those of a new write; `replace_all`: it replaces all rows of the table."""
        from lockgate.framework.store.write.bucket_assigner import BucketAssigner
        from lockgate.framework.store.write.key_locations import TriedLocations

        return cls(
            table,
            BucketAssigner(table) if table.schema.has_hash_index else None,
            TriedLocations(table, replace_all=replace_all) if table.schema.moves_keys else None,
        )

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

    def locate(
        self, attempt: str, columns: Mapping[str, Sequence[Any]], kinds: bytes
    ) -> tuple[bytes, list[tuple[Any, ...]]]:
        """Return what is written for some rows (see `LocateAnswer`), and the partitions that it names.

        InputError for rows that do not fit, and for a table whose keys do not move between partitions.
        """
        import numpy as np
        import pyarrow as pa

        if self.locations is None:
            raise InputError(f"a task asked where keys of {self.table.identifier} lie, which do not move")
        rows = _rows(self.table.schema, columns)
        if rows.num_rows != len(kinds):
            raise InputError(f"a task sent {rows.num_rows} rows and {len(kinds)} kinds of rows")
        of_rows = pa.Array.from_buffers(pa.int8(), len(kinds), [None, pa.py_buffer(kinds)])
        with self.lock:
            locations = self.locations.of_try(attempt)
            found = locations.located(rows, of_rows)
            named, numbers = np.unique(found.partition[found.moved], return_inverse=True)
            partitions = [locations.partitions[number] for number in named]
        answer = np.empty((len(found.row), 4), _NUMBERS)
        answer[:, 0], answer[:, 1], answer[:, 3] = found.row, found.kind, found.bucket
        answer[:, 2] = -1
        answer[found.moved, 2] = numbers
        return answer.tobytes(), partitions

    def completed(self, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
        """Return messages with what was given out for their buckets.

        These are hashes of keys if buckets are dynamic, and the state in which keys that move were looked up.
        A task that was repeated has asked twice: keys of the first try stay in the index, which does no harm.
        InputError for a bucket that no task asked for.
        """
        if self.locations is not None:
            with self.lock:
                return [
                    replace(each, placed=self.locations.placed_for(each.partition, each.bucket))
                    for each in messages
                ]
        if self.assigner is None:
            return list(messages)
        with self.lock:
            return [
                replace(each, hashes=self.assigner.hashes(each.partition, each.bucket)) for each in messages
            ]


def _rows(schema: TableSchema, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return rows with the columns of the primary key and the partition, from values as JSON."""
    import pyarrow as pa

    from lockgate.framework.types import value_from_json

    names = dict.fromkeys((*schema.primary_keys, *schema.partition_keys))
    if set(columns) != set(names) or len({len(values) for values in columns.values()}) != 1:
        raise InputError(f"a task must send as many values of {', '.join(names)}, and of no other column")
    return pa.table(
        {
            name: pa.array(
                [value_from_json(schema.field(name).type, value) for value in columns[name]],
                schema.arrow_schema.field(name).type,
            )
            for name in names
        }
    )
