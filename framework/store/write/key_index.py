"""An index of keys in memory: each key has a number, by the order in which keys were added.

Keys lie in runs that are sorted by hash, each at most half as long as the one before it. So to find some keys
among many takes time by the number of those that are looked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.store.merge.group_codes import group_codes
from lockgate.framework.store.rows.bucket import hash_rows
from lockgate.framework.types import DataType
from lockgate.pushdown.index import distinct

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Run:
    """Keys by ascending hash: the hashes, the keys, their numbers."""

    hashes: npt.NDArray[np.int32]
    keys: pa.Table
    numbers: Numbers

    def with_hashes(self, wanted: npt.NDArray[np.int32]) -> Numbers:
        """Return where keys lie whose hashes are among some distinct ones."""
        first = np.searchsorted(self.hashes, wanted)
        counts = np.searchsorted(self.hashes, wanted, side="right") - first
        starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
        return starts + np.arange(len(starts))


class KeyIndex:
    """Distinct keys and their numbers, from 0. `types` are those of the key's columns."""

    def __init__(self, schema: pa.Schema, types: tuple[DataType, ...]) -> None:
        self.schema = schema
        self._types = types
        self._runs: list[_Run] = []
        self._count = 0

    def emptied(self) -> KeyIndex:
        """Return an index for the same columns without a key."""
        return KeyIndex(self.schema, self._types)

    def __len__(self) -> int:
        return self._count

    def find(self, keys: pa.Table) -> Numbers:
        """Return the number of each key, -1 for those that are not in the index."""
        found = np.full(keys.num_rows, -1, np.int64)
        if not self._runs or not keys.num_rows:
            return found
        keys = self._plain(keys)
        wanted = distinct(self._hashes(keys))
        parts, numbers = [], []
        for run in self._runs:
            at = run.with_hashes(wanted)
            parts.append(run.keys.take(pa.array(at)))
            numbers.append(run.numbers[at])
        candidates = np.concatenate(numbers)
        both = pa.concat_tables([*parts, keys])
        codes, bound = group_codes(both.columns, both.num_rows)
        of_code = np.full(bound, -1, np.int64)
        of_code[codes[: len(candidates)]] = candidates
        return of_code[codes[len(candidates) :]]

    def add(self, keys: pa.Table) -> None:
        """Add distinct keys that are not in the index; their numbers go on from the last."""
        if not keys.num_rows:
            return
        keys = self._plain(keys)
        hashes = self._hashes(keys)
        numbers = np.arange(self._count, self._count + keys.num_rows, dtype=np.int64)
        self._count += keys.num_rows
        while self._runs and len(self._runs[-1].hashes) < 2 * len(hashes):
            run = self._runs.pop()
            hashes = np.concatenate([run.hashes, hashes])
            keys = pa.concat_tables([run.keys, keys])
            numbers = np.concatenate([run.numbers, numbers])
        order = np.argsort(hashes, kind="stable")
        self._runs.append(_Run(hashes[order], keys.take(pa.array(order)), numbers[order]))

    def _plain(self, keys: pa.Table) -> pa.Table:
        columns = [_plain(keys[name].cast(self.schema.field(name).type)) for name in self.schema.names]
        return pa.table(columns, self.schema)

    def _hashes(self, keys: pa.Table) -> npt.NDArray[np.int32]:
        return hash_rows(keys.columns, self._types)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose equal values have equal bits: -0.0 becomes 0.0, every NaN the same one."""
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
