"""Ranges of an order, by which more rows than memory holds are put in order: each range is sorted by itself.

A sample of the rows says where the ranges begin. All rows are read once, and wait in a file for each range.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.framework.store.maintenance.curves import Curve, Words, bits_of, ranks_of

# Files that are open at a time; a process may open 1,024 by default.
_MOST_RANGES = 256


class Sample:
    """Some rows of the columns of an order, among which others have a place. A curve or None: by columns."""

    MOST_ROWS: ClassVar[int] = 100_000
    # What a process needs to compute keys.
    MODULES: ClassVar[tuple[str, ...]] = (__name__, bits_of.__module__)

    def __init__(self, rows: pa.Table, curve: Curve | None) -> None:
        self._rows = rows
        self._curve = curve

    def keys(self, rows: pa.Table) -> Words:
        """Return a number for each row that grows in the order: rows of one number are not told apart."""
        if not rows.num_rows:  # all may be deleted
            return np.zeros(0, np.uint64)
        joint = pa.concat_tables([self._rows, rows])
        ranks = [ranks_of(joint[name]) for name in self._rows.column_names]
        if self._curve is None:
            return self._before(ranks)
        bits = bits_of(len(ranks))
        return self._curve([self._quantiles(each, bits) for each in ranks], bits)

    def _before(self, ranks: Sequence[Words]) -> Words:
        """Return how many rows of the sample come before each other row."""
        size = len(self._rows)
        order = np.lexsort(ranks[::-1])
        starts = np.zeros(len(order), np.bool_)
        for each in ranks:
            starts[1:] |= each[order[1:]] != each[order[:-1]]
        group = np.cumsum(starts)
        counts = np.bincount(group[order < size], minlength=int(group[-1]) + 1)
        found = np.empty(len(order), np.uint64)
        found[order] = (np.cumsum(counts) - counts)[group]
        return found[size:]

    def _quantiles(self, ranks: Words, bits: int) -> Words:
        size = len(self._rows)
        counts = np.bincount(ranks[:size].astype(np.int64), minlength=int(ranks.max()) + 1)
        before = (np.cumsum(counts) - counts)[ranks[size:].astype(np.int64)]
        places: Words = (before / max(1, size) * (2**bits - 1)).astype(np.uint64)
        return places

    def starts(self, ranges: int) -> Words:
        """Return the first number of each range but the first, for ranges of about as many rows."""
        keys = np.sort(self.keys(self._rows))
        at = np.arange(1, ranges) * len(keys) // ranges
        return np.unique(keys[at]) if len(keys) else keys


def sample_of(parts: Iterable[pa.Table], rows: int) -> pa.Table | None:
    """Return some of `rows` rows by chance, the same ones each time; None if there is no part."""
    chance, share = np.random.default_rng(0), Sample.MOST_ROWS / max(1, rows)
    found = [part.filter(pa.array(chance.random(part.num_rows) < share)) for part in parts]
    return pa.concat_tables(found) if found else None


class Ranges:
    """Rows in files of a folder that nobody else can read, one for each range; gone when this is closed."""

    def __init__(self, sample: Sample, count: int, schema: pa.Schema) -> None:
        self._sample = sample
        self._starts = sample.starts(min(count, _MOST_RANGES))
        self._schema = schema
        self._folder = Path(tempfile.mkdtemp(prefix="lockgate-order-"))
        self._paths = [self._folder / f"{number}.arrow" for number in range(len(self._starts) + 1)]
        self._writers: list[pa.ipc.RecordBatchStreamWriter] = []
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            for path in self._paths:
                self._writers.append(pa.ipc.new_stream(str(path), schema, options=options))
        except BaseException:
            self.close()
            raise

    def add(self, rows: pa.Table, columns: Sequence[str]) -> None:
        """Put rows into their ranges, by the columns of the order."""
        numbers = np.searchsorted(self._starts, self._sample.keys(rows.select(columns)), "right")
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(self._paths)))
        sorted_rows = rows.take(order).cast(self._schema)
        start = 0
        for writer, end in zip(self._writers, ends.tolist(), strict=True):
            if end > start:
                writer.write_table(sorted_rows.slice(start, end - start))
            start = end

    def written(self) -> list[Path]:
        """End the files and return them, in order."""
        for writer in self._writers:
            writer.close()
        return self._paths

    def close(self) -> None:
        """Remove all files, also those that a full disk has left unfinished."""
        for writer in self._writers:
            with suppress(OSError):
                writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def batches_of(path: Path, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of the rows of a range, in the order in which they came."""
    with pa.ipc.open_stream(str(path)) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch]).select(names)


def positions_of_keys(keys: Words) -> npt.NDArray[np.int64]:
    """Return the place of each row in the order of some keys; equal ones stay as they came."""
    order = np.argsort(keys, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
