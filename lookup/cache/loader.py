"""Full load of a table into an empty database: in parallel, with bounded memory, into the fitting storage.

One thread reads, others encode and part the rows by the hash of their key; what exceeds the memory set aside
goes to the disk. Once all rows are there, each part is sorted by itself and written in the order of its keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.errors import UnsupportedError
from lockgate.lookup.cache.backends import Piece, Storage, Store, open_store
from lockgate.lookup.cache.budget import DiskBudget
from lockgate.lookup.cache.external_sort import RunHooks, Runs, ahead
from lockgate.lookup.codec.cache_cipher import CacheCipher, SpillCipher
from lockgate.lookup.spec.lookup_options import LookupOptions
from lockgate.lookup.spec.lookup_spec import CacheLayout, CacheStructure

# More bytes than those of key and value: their positions in mapped files, filters and indexes in RocksDB.
_BESIDE_BYTES = 16
# The bytes that sealing adds to a key and a value.
_SEALED_BYTES = 48

Progress = Callable[[int, int], None]
_Parts = list[tuple[int, Piece]]


@dataclass(frozen=True)
class _Encoded:
    """A batch as it goes to the runs: rows by their lookup keys, and lookup keys by primary keys."""

    rows: _Parts
    primary: _Parts
    count: int


class Loader:
    """Loads tables for one cache.

    `progress` gets the number of rows done and expected: a row counts half when read and half when written.
    """

    def __init__(
        self,
        layout: CacheLayout,
        options: LookupOptions,
        budget: DiskBudget,
        cipher: CacheCipher | None,
        progress: Progress,
    ) -> None:
        self._layout = layout
        self._options = options
        self._budget = budget
        self._cipher = cipher
        self._progress = progress
        choose_storage(options, cipher, 0)  # refuses a wrong choice before anything is read
        self._threads = min(options.bootstrap_parallelism, os.cpu_count() or 1)

    def load(
        self,
        folder: Path,
        batches: Iterable[pa.RecordBatch],
        expected: int,
        meta: Callable[[int], dict[str, Any]],
    ) -> tuple[Store, int]:
        """Load rows into a new database in `folder`; returns it and how many rows were read.

        `expected` rows are foreseen, no harm if there are others. `meta` makes the database's first record
        from the number of its rows.
        """
        spills = None if self._cipher is None else SpillCipher()
        hooks = RunHooks(self._budget, _BESIDE_BYTES + (_SEALED_BYTES if spills else 0), spills)
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(self._threads, "lockgate-load"))
            runs = self._runs(stack, folder, "rows", expected, hooks, many=self._layout.many)
            primary = self._runs(stack, folder, "primary", expected, hooks, many=False)
            read = 0
            for encoded in ahead(
                pool, self._threads, lambda batch: self._encode(batch, runs, primary), batches
            ):
                runs.add(encoded.rows)
                primary.add(encoded.primary)
                read += encoded.count
                self._progress(read // 2, max(read, expected))
            size = runs.bytes + primary.bytes + _BESIDE_BYTES * read
            storage = choose_storage(self._options, self._cipher, size)
            store = open_store(folder, storage, self._cipher, self._budget)
            try:
                files = self._write(store, runs, primary, pool, read)
                store.ingest(files, meta(runs.rows))
            except BaseException:
                store.close()
                raise
        return store, read

    def _runs(
        self, stack: ExitStack, folder: Path, name: str, expected: int, hooks: RunHooks, *, many: bool
    ) -> Runs:
        return stack.enter_context(closing(Runs(folder, name, expected, many=many, hooks=hooks)))

    def _encode(self, batch: pa.RecordBatch, runs: Runs, primary: Runs) -> _Encoded:
        layout = self._layout
        keys = layout.key_codec.encode([batch.column(name) for name in layout.key_schema.names])
        valid = batch if keys.valid.all() else batch.filter(pa.array(keys.valid))
        rows = runs.scatter(keys.rows, layout.row_codec.encode(valid.select(layout.row_schema.names)))
        if layout.kind is not CacheStructure.SECONDARY_INDEX:
            return _Encoded(rows, [], batch.num_rows)
        assert layout.primary_schema is not None
        encoded = layout.primary_codec.encode([batch.column(name) for name in layout.primary_schema.names])
        remembered = layout.key_row_codec.encode(batch.select(layout.key_schema.names))
        return _Encoded(rows, primary.scatter(encoded.rows, remembered), batch.num_rows)

    def _write(
        self, store: Store, runs: Runs, primary: Runs, pool: ThreadPoolExecutor, read: int
    ) -> list[Path]:
        written = 0

        def done(rows: int) -> None:
            nonlocal written
            written += rows
            share = written // 2 if self._layout.kind is CacheStructure.SECONDARY_INDEX else written
            self._progress((read + min(share, read)) // 2, read)

        with closing(store.sink()) as sink:
            # All primary keys sort after all lookup keys.
            runs.finish(sink, pool, self._threads, done)
            primary.finish(sink, pool, self._threads, done)
            return sink.finish()


def choose_storage(options: LookupOptions, cipher: CacheCipher | None, size: int) -> Storage:
    """Choose how a cache of `size` bytes is kept.

    Raises UnsupportedError if mapped files are requested for an encrypted one.
    """
    mode = options.cache
    if cipher is not None and mode == Storage.MEMORY:
        raise UnsupportedError(
            "lookup.cache=memory keeps values in mapped files, where those of encrypted columns would lie in "
            "the clear: use lookup.cache=full (or auto), or look up no encrypted column"
        )
    if mode == "auto":
        fits = cipher is None and size <= options.memory_max
        return Storage.MEMORY if fits else Storage.FULL
    return Storage(mode)
