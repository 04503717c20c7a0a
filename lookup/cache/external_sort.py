"""External sort: rows go to runs by their hash, and each run is sorted by itself.

Runs cover disjoint ranges of keys, so their files are ingested without any compaction. Several threads
work on them at once; numpy, Arrow and RocksDB leave the interpreter to each other for most of the work.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from lockgate.lookup.cache.backends import CacheSink, Piece
from lockgate.lookup.cache.budget import DiskBudget
from lockgate.lookup.cache.layers import hashes_of
from lockgate.lookup.codec.byte_rows import Rows, offsets_of
from lockgate.lookup.codec.cache_cipher import SpillCipher
from lockgate.lookup.codec.key_codec import distinct
from lockgate.lookup.codec.lists import pack

ROWS_PER_RUN = 1 << 19
SPILL_BYTES = 64 << 20
# Up to this many runs may hold this many times the memory, so that less is written and read again.
_FEW_RUNS = 4
_MOST_RUNS = 1 << 10
# Keys and values become Python objects in slices of this many rows.
_WRITE_ROWS = 1 << 15

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def ahead(
    pool: ThreadPoolExecutor, most: int, work: Callable[[_In], _Out], items: Iterable[_In]
) -> Iterator[_Out]:
    """Yield the result of `work` for each item, in order, with at most so many running or waiting."""
    waiting: deque[Future[_Out]] = deque()
    try:
        for item in items:
            if len(waiting) >= most:
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@dataclass(frozen=True)
class RunHooks:
    """Functions that write runs.

    All writing is within the budget, `row_bytes` a row plus keys and values; with `cipher`, what is put
    aside is encrypted.
    """

    budget: DiskBudget
    row_bytes: int
    cipher: SpillCipher | None = None


class Runs:
    """Collects encoded keys and rows in any order and writes them sorted, each key once.

    With `many`, the rows of one key become a list in the order of their arrival; else the last one wins.
    """

    def __init__(self, folder: Path, name: str, expected_rows: int, *, many: bool, hooks: RunHooks) -> None:
        self._folder = folder
        self._name = name
        self._many = many
        self._hooks = hooks
        wanted = max(1, -(-expected_rows // ROWS_PER_RUN))
        self._most_held = SPILL_BYTES * (_FEW_RUNS if wanted <= _FEW_RUNS else 1)
        self._bits = min(wanted, _MOST_RUNS).bit_length() - 1 + (wanted & (wanted - 1) != 0)
        self._parts: list[list[Piece]] = [[] for _ in range(1 << self._bits)]
        self._added = [0] * (1 << self._bits)
        self._kept = [0] * (1 << self._bits)
        self._spills: dict[int, BinaryIO] = {}
        self._held = 0
        self.bytes = 0
        self.rows = 0

    def scatter(self, keys: Rows, rows: Rows) -> list[tuple[int, Piece]]:
        """Part encoded keys and their rows by run; may be called by several threads."""
        if self._bits == 0 or len(keys) == 0:
            return [(0, (keys, rows))]
        # The top bit is the key space, the same in all keys of these runs.
        shift = np.uint64(63 - self._bits)
        runs = (hashes_of(keys) >> shift & np.uint64((1 << self._bits) - 1)).astype(np.uint16)
        order = np.argsort(runs, kind="stable")
        edges = np.searchsorted(runs[order], np.arange((1 << self._bits) + 1))
        keys, rows = keys.take(order), rows.take(order)
        parts = []
        for run in np.flatnonzero(np.diff(edges)).tolist():
            span = slice(int(edges[run]), int(edges[run + 1]) + 1)
            parts.append((run, (Rows(keys.words, keys.offsets[span]), Rows(rows.words, rows.offsets[span]))))
        return parts

    def add(self, parts: Iterable[tuple[int, Piece]]) -> None:
        """Add what was parted, in the order of the rows' arrival."""
        for run, (keys, rows) in parts:
            if len(keys):
                self._parts[run].append((keys, rows))
                self._held += keys.nbytes + rows.nbytes
                self.bytes += keys.nbytes + rows.nbytes
        if self._held > self._most_held:
            self._spill()

    def _spill(self) -> None:
        with self._hooks.budget.writing(self._held):
            self._spill_all()
        self._held = 0

    def _spill_all(self) -> None:
        for run, parts in enumerate(self._parts):
            if not parts:
                continue
            if run not in self._spills:
                path = self._folder / f"{self._name}-{run}.spill"
                self._spills[run] = open(path, "w+b")  # noqa: SIM115 - closed by _collect
            for keys, rows in parts:
                for piece in (keys, rows):
                    self._save(self._spills[run], piece.words[piece.offsets[0] : piece.offsets[-1]])
                    self._save(self._spills[run], piece.lengths)
            parts.clear()

    def _save(self, file: BinaryIO, array: Any) -> None:
        if self._hooks.cipher is None:
            np.save(file, array)
            return
        plain = io.BytesIO()
        np.save(plain, array)
        sealed = self._hooks.cipher.seal(plain.getvalue())
        file.write(len(sealed).to_bytes(8, "little"))
        file.write(sealed)

    def _saved(self, file: BinaryIO) -> Any:
        if self._hooks.cipher is None:
            return np.load(file)
        length = int.from_bytes(file.read(8), "little")
        return np.load(io.BytesIO(self._hooks.cipher.open(file.read(length))))

    def _collect(self, run: int) -> Piece:
        parts: list[Piece] = []
        spill = self._spills.pop(run, None)
        if spill is not None:
            end = spill.tell()
            spill.seek(0)
            while spill.tell() < end:
                arrays = [self._saved(spill) for _ in range(4)]
                parts.append((Rows(arrays[0], offsets_of(arrays[1])), Rows(arrays[2], offsets_of(arrays[3]))))
            spill.close()
            (self._folder / f"{self._name}-{run}.spill").unlink()
        parts += self._parts[run]
        self._parts[run] = []
        return Rows.concatenate([keys for keys, _ in parts]), Rows.concatenate([rows for _, rows in parts])

    def finish(
        self, sink: CacheSink, pool: ThreadPoolExecutor, threads: int, done: Callable[[int], None]
    ) -> None:
        """Write all runs; `rows` counts what they hold, `done` gets the rows of each run once written."""
        runs = range(1 << self._bits)
        if sink.in_order:
            prepared = ahead(pool, threads, lambda run: [*self._sorted(run, self._collect(run))], runs)
            for run, pieces in enumerate(prepared):
                with self._writing(pieces):
                    sink.write(f"{self._name}-{run}", pieces)
                done(self._added[run])
        else:

            def write(run: int) -> int:
                part = self._collect(run)
                with self._writing([part]):
                    sink.write(f"{self._name}-{run}", self._sorted(run, part))
                return self._added[run]

            for added in ahead(pool, threads, write, runs):
                done(added)
        self.rows = sum(self._kept)

    def _writing(self, pieces: Iterable[Piece]) -> AbstractContextManager[None]:
        coming = sum(keys.nbytes + rows.nbytes + self._hooks.row_bytes * len(keys) for keys, rows in pieces)
        return self._hooks.budget.writing(coming)

    def close(self) -> None:
        """Release the temporary files of a failed load."""
        for spill in self._spills.values():
            spill.close()
        self._spills.clear()

    def _sorted(self, run: int, part: Piece) -> Iterator[Piece]:
        keys, rows = part
        if len(keys) == 0:
            return
        groups = distinct(keys, hashes_of(keys))
        firsts, lasts = groups.first, groups.last
        edges = np.append(groups.starts, len(groups.order))
        self._added[run] = len(keys)
        self._kept[run] = len(keys) if self._many else len(groups)
        for start in range(0, len(groups), _WRITE_ROWS):
            end = min(start + _WRITE_ROWS, len(groups))
            if self._many:
                members = groups.order[edges[start] : edges[end]]
                values = pack(rows.take(members), np.diff(edges[start : end + 1]))
            else:
                values = rows.take(lasts[start:end])
            yield keys.take(firsts[start:end]), values
