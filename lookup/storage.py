"""The only module that touches RocksDB: sorted files in, point reads out.

The binding (rocksdict) is used in raw mode: keys and values are bytes. What was learnt about it:

* Opening an existing database with options alone ignores the block cache; the options must also be passed
  for the column family, or the cache silently has 8 MB.
* One multi-get pins every block it touches until it returns, so keys are read in chunks.
* A read-only handle sees a fixed view, and goes on working after its directory was removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

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
from lockgate.lookup.sealing import STORED_KEY_BYTES, CacheCipher, Opener, Sealer

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

    It survives the change of generations, so that unchanged files stay warm.
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


def _read_sealed(db: Rdict, keys: Sequence[bytes], opener: Opener | None) -> list[bytes | None]:
    if opener is None:
        return _read(db, keys)
    return opener.open(keys, _read(db, [key[:STORED_KEY_BYTES] for key in keys]))


def _meta(db: Rdict) -> dict[str, Any] | None:
    value = db.get(_META_KEY)
    return None if value is None else json.loads(value)


class ReadOnlyStore:
    """A database opened for reading; a fixed view of it. `cipher` opens an encrypted one."""

    def __init__(self, path: Path, cache_bytes: int, cipher: CacheCipher | None = None) -> None:
        options = _options(shared_cache(cache_bytes))
        self._db = Rdict(
            str(path), options, column_families={"default": options}, access_type=AccessType.read_only(False)
        )
        self._opener = None if cipher is None else Opener(cipher, (_meta(self._db) or {}).get(_SESSIONS, []))

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Read the values of `keys`, None where there is none; fastest when they are sorted and distinct."""
        return _read_sealed(self._db, keys, self._opener)

    def close(self) -> None:
        """Release the files."""
        self._db.close()


class WritableStore:
    """A database open for writing by the one owner of a cache.

    All changes of a step come as sorted files that are taken in together with the step's `meta`, atomically:
    after a crash at any moment the database holds a whole step or none of it. With `cipher`, keys and values
    are encrypted (`sealing`); keys are then given sealed.
    """

    def __init__(self, path: Path, cipher: CacheCipher | None = None) -> None:
        options = _options(Cache(_WRITER_CACHE_BYTES))
        self.path = path
        families = {"default": options} if (path / "CURRENT").exists() else None
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
        return _read_sealed(self._db, keys, self._opener)

    def meta(self) -> dict[str, Any] | None:
        """What the last step recorded; None before the first."""
        content = _meta(self._db)
        if content is not None:
            content.pop(_SESSIONS, None)
        return content

    def sorted_file(self, path: Path) -> SortedFile:
        """Begin a sorted file for this database, encrypted if it is."""
        return SortedFile(path, self._sealer)

    def ingest(self, files: Iterable[Path], meta: dict[str, Any]) -> None:
        """Take in sorted files and record `meta`, all or nothing; the files are consumed."""
        mark = self.path.parent / f"meta-{os.getpid()}.sst"
        content = meta if self._sealer is None else {**meta, _SESSIONS: self._salts}
        write_sorted(mark, [_META_KEY], [json.dumps(content).encode()])
        options = IngestExternalFileOptions()
        options.set_move_files(True)
        paths = [mark, *files]
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

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Add keys with their values."""
        writer = self._writer
        if self._sealer is not None:
            values = self._sealer.seal(keys, values)
            keys = [key[:STORED_KEY_BYTES] for key in keys]
        for key, value in zip(keys, values, strict=True):
            writer[key] = value

    def put_or_delete(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        """Add keys with their values; None deletes what the database holds under the key."""
        writer = self._writer
        if self._sealer is not None:
            values = self._sealer.seal_some(keys, values)
            keys = [key[:STORED_KEY_BYTES] for key in keys]
        for key, value in zip(keys, values, strict=True):
            if value is None:
                del writer[key]
            else:
                writer[key] = value

    def finish(self) -> Path:
        """Complete the file, which must not be empty."""
        self._writer.finish()
        return self.path


def write_sorted(path: Path, keys: Sequence[bytes], values: Sequence[bytes | None]) -> Path:
    """Write a whole sorted file: `keys` strictly ascending, a value of None deletes its key."""
    file = SortedFile(path)
    file.put_or_delete(keys, values)
    return file.finish()
