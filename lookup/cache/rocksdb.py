"""The only module that touches RocksDB: sorted files in, point reads out.

The binding (rocksdict) is used in raw mode: keys and values are bytes. Its peculiarities:

* Opening an existing database with options alone ignores the block cache; the options must also be passed
  for the column family, or the cache silently has 8 MB.
* One multi-get pins every block it touches until it returns, so keys are read in chunks.
* Sorted files bypass the system's cache when written: prefetch what will be read soon.
* A read-only handle sees a fixed view, and goes on working after its directory was removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import is_not
from pathlib import Path
from typing import Any, cast

import numpy as np
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
)

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.backends import FoundRows, Piece, Storage
from lockgate.lookup.cache.prefetch import read_ahead
from lockgate.lookup.codec.byte_rows import Rows, Scattered
from lockgate.lookup.codec.cache_cipher import CacheCipher, Opener, Sealer, stored_keys

READ_CHUNK = 4096
# Shorter than any key and sorting before all of them.
_META_KEY = b"\x00"
_BLOCK_BYTES = 16 * 1024
_BLOOM_BITS = 10
_WRITER_CACHE_BYTES = 32 << 20
# In the record of the last step: the random bytes of the sessions that wrote encrypted values.
_SESSIONS = "sessions"

_caches: dict[int, Cache] = {}


def shared_cache(capacity: int) -> Cache:
    """Return the block cache of `capacity` bytes that all readers of this process share.

    It survives the change of versions, so that unchanged files stay warm.
    """
    return _caches.setdefault(capacity, Cache(capacity))


def _options(cache: Cache) -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_block_size(_BLOCK_BYTES)
    blocks.set_bloom_filter(_BLOOM_BITS, False)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.none())
    options.create_if_missing(True)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(1)
    options.set_stats_dump_period_sec(0)
    return options


def _read(db: Rdict, keys: Sequence[bytes]) -> list[bytes | None]:
    values: list[bytes | None] = []
    for start in range(0, len(keys), READ_CHUNK):
        chunk: list[Any] = list(keys[start : start + READ_CHUNK])
        values += cast(list[bytes | None], db.get(chunk))
    return values


def _find(db: Rdict, keys: Rows, opener: Opener | None) -> list[FoundRows]:
    values = _read(db, (keys if opener is None else stored_keys(keys)).to_bytes())
    found = [value for value in values if value is not None]
    # Python's built-in loops where possible: half the time of a refresh was spent in such lines.
    at = np.flatnonzero(np.fromiter(map(is_not, values, repeat(None)), bool, len(values)))
    rows: Rows | Scattered = Rows.from_values(found)
    if opener is not None:
        rows = opener.open(keys if len(at) == len(keys) else keys.take(at), cast(Rows, rows))
    return [FoundRows(at, rows)]


def _meta(db: Rdict) -> dict[str, Any] | None:
    value = db.get(_META_KEY)
    return None if value is None else json.loads(value)


class ReadOnlyStore:
    """A database opened for reading; a fixed view of it. `cipher` opens an encrypted one.

    With `cache_bytes` 0 its files are mapped, and blocks are read where they lie; else blocks are copied into
    a cache of so many bytes.
    """

    def __init__(self, path: Path, cache_bytes: int, cipher: CacheCipher | None = None) -> None:
        options = _options(shared_cache(cache_bytes or _WRITER_CACHE_BYTES))
        options.set_allow_mmap_reads(cache_bytes == 0)
        self._db = Rdict(
            str(path), options, column_families={"default": options}, access_type=AccessType.read_only(False)
        )
        self._opener = None if cipher is None else Opener(cipher, (_meta(self._db) or {}).get(_SESSIONS, []))

    def find(self, keys: Rows) -> list[FoundRows]:
        """Find the values of keys; fastest when they are sorted and distinct."""
        return _find(self._db, keys, self._opener)

    def close(self) -> None:
        """Release the files."""
        self._db.close()


class WritableStore:
    """A database open for writing by the one owner of a cache.

    All changes of a step come as sorted files that are taken in together with the step's `meta`, atomically:
    after a crash at any moment the database holds a whole step or none of it. With `cipher`, keys and values
    are encrypted (`sealing`); keys are then given sealed.
    """

    storage = Storage.FULL

    def __init__(self, path: Path, cipher: CacheCipher | None = None) -> None:
        options = _options(Cache(_WRITER_CACHE_BYTES))
        self.path = path
        families = None
        if (path / "CURRENT").exists():
            families = {"default": options}
            read_ahead(path.glob("*.sst"))
        try:
            self._db = Rdict(str(path), options, column_families=families)
        except Exception as error:  # the binding raises bare exceptions
            raise LookupCacheError(f"cannot open the lookup cache {path}: {error}") from error
        self._salts: list[str] = (_meta(self._db) or {}).get(_SESSIONS, [])
        self._sealer: Sealer | None = None
        self._opener: Opener | None = None
        if cipher is not None:
            self._opener = Opener(cipher, self._salts)
            self._sealer = Sealer(cipher, len(self._salts))
            self._opener.add(self._sealer.number, self._sealer.session)
            self._salts = [*self._salts, self._sealer.salt.hex()]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Read the values of `keys`, None where there is none."""
        if self._opener is None:
            return _read(self._db, keys)
        values: list[bytes | None] = [None] * len(keys)
        for at, rows in _find(self._db, Rows.from_values(list(keys)), self._opener):
            for index, value in zip(at.tolist(), rows.gather().to_bytes(), strict=True):
                values[index] = value
        return values

    def meta(self) -> dict[str, Any] | None:
        """Return the record of the last step; None before the first."""
        content = _meta(self._db)
        if content is not None:
            content.pop(_SESSIONS, None)
        return content

    def size(self) -> int:
        """Return the bytes of all sorted files."""
        return sum(file.stat().st_size for file in self.path.glob("*.sst"))

    def sink(self) -> SortedFiles:
        """Begin to load sorted keys and values."""
        return SortedFiles(self.path, self._sealer)

    def step_files(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[Path]:
        """Write the changes of a step aside; None deletes."""
        file = SortedFile(self.path.parent / "step.sst", self._sealer)
        if self._sealer is None:
            file.put_bytes(keys, [value or b"" for value in values])
        else:
            file.put(Rows.from_values(list(keys)), Rows.from_values([value or b"" for value in values]))
        return [file.finish()]

    def ingest(self, files: Iterable[Path], meta: dict[str, Any]) -> None:
        """Take in sorted files and record `meta`, all or nothing; the files are consumed."""
        mark = self.path.parent / f"meta-{os.getpid()}.sst"
        content = meta if self._sealer is None else {**meta, _SESSIONS: self._salts}
        file = SortedFile(mark)
        file.put_bytes([_META_KEY], [json.dumps(content).encode()])
        file.finish()
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        paths = [mark, *files]
        # RocksDB has the system forget each sorted file that it has written.
        read_ahead(paths)
        self._db.ingest_external_file([str(path) for path in paths], options)
        for path in paths:
            path.unlink(missing_ok=True)

    def checkpoint(self, path: Path) -> None:
        """Make a database at `path`, which must not exist, that holds what this one holds now.

        Its files are hard links, so this takes milliseconds and no space.
        """
        Checkpoint(self._db).create_checkpoint(str(path))

    def close(self) -> None:
        """Release the files and the lock."""
        self._db.close()


class SortedFile:
    """A sorted file in the making; keys must come strictly ascending, over all calls."""

    def __init__(self, path: Path, sealer: Sealer | None = None) -> None:
        self.path = path
        self._sealer = sealer
        path.unlink(missing_ok=True)
        self._writer = SstFileWriter(_options(Cache(1 << 20)))
        self._writer.open(str(path))

    def put(self, keys: Rows, values: Rows) -> None:
        """Add keys with their values; one of no length deletes what the database holds under its key."""
        if self._sealer is not None:
            keys, values = stored_keys(keys), self._sealer.seal(keys, values)
        self.put_bytes(keys.to_bytes(), values.to_bytes())

    def put_bytes(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Add keys with their values as they are stored."""
        writer = self._writer
        for key, value in zip(keys, values, strict=True):
            if value:
                writer[key] = value
            else:
                del writer[key]

    def finish(self) -> Path:
        """Complete the file, which must not be empty."""
        self._writer.finish()
        return self.path


class SortedFiles:
    """Takes in a load as sorted files, one a part; parts may be written by several threads."""

    in_order = False

    def __init__(self, folder: Path, sealer: Sealer | None) -> None:
        self._folder = folder
        self._sealer = sealer
        self._paths: list[Path] = []

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        """Write one file of pieces, strictly ascending; none if there are none."""
        file = None
        for keys, values in pieces:
            file = file or SortedFile(self._folder / f"{name}.sst", self._sealer)
            file.put(keys, values)
        if file is not None:
            self._paths.append(file.finish())

    def finish(self) -> list[Path]:
        """Return the files written."""
        return sorted(self._paths)

    def close(self) -> None:
        """Do nothing: no file is open between writes."""
