"""Storage of a cache: RocksDB (`rocksdb`, on disk) or mapped files (`mapped_files`), with one interface.

Both hold encoded keys (`key_codec`) with encoded rows, or lists of rows (`row_codec`, `lists`), the same
bytes in either.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lockgate.lookup.codec.byte_rows import Int64s, Rows, Scattered

if TYPE_CHECKING:
    from lockgate.lookup.cache.budget import DiskBudget
    from lockgate.lookup.codec.cache_cipher import CacheCipher

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS)
# Names the layers of a memory cache; a folder that has it holds one.
LAYERS_FILE = "LAYERS.json"


class Storage(StrEnum):
    """The storage of a state; the names are those of `lookup.cache`."""

    FULL = "full"
    MEMORY = "memory"
    PARTIAL = "partial"


class FoundRows(NamedTuple):
    """Values found together: `rows[i]` is the value of the key numbered `at[i]`."""

    at: Int64s
    rows: Rows | Scattered


Piece = tuple[Rows, Rows]


class CacheReader(Protocol):
    """A state open for reading; it never changes."""

    def find(self, keys: Rows) -> list[FoundRows]:
        """Find the values of keys, which are sorted by their bytes and distinct; in one part or several."""

    def close(self) -> None:
        """Release the files."""


class CacheSink(Protocol):
    """Takes in the sorted keys and values of a load.

    With `in_order` the parts must be written one after another, ascending; otherwise several threads may
    write parts at once, each under its own name.
    """

    in_order: bool

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        """Write one part: pieces of keys, strictly ascending, with their values."""

    def finish(self) -> list[Path]:
        """Complete what was written, for `Store.ingest`."""

    def close(self) -> None:
        """Release the files, complete or not."""


class Store(Protocol):
    """A database open for writing by the one owner of a cache.

    All changes of a step are applied atomically, together with its `meta`: after a crash at any moment the
    store holds a whole step or none of it.
    """

    path: Path
    storage: Storage

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Read the values of `keys`, None where there is none."""

    def meta(self) -> dict[str, Any] | None:
        """Return the record of the last step; None before the first."""

    def size(self) -> int:
        """Return the bytes that keys and values take."""

    def sink(self) -> CacheSink:
        """Begin to load sorted keys and values."""

    def step_files(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[Path]:
        """Prepare the changes of a step in files: keys strictly ascending, None deletes."""

    def ingest(self, files: Iterable[Path], meta: dict[str, Any]) -> None:
        """Apply the prepared files and record `meta`, all or nothing; the files are consumed."""

    def checkpoint(self, path: Path) -> None:
        """Make a copy at `path`, which must not exist, by hard links: in milliseconds and without space."""

    def close(self) -> None:
        """Release the files."""


def is_passing(error: Exception) -> bool:
    """Return whether opening a database failed for lack of a resource that may be available again.

    RocksDB reports this only by the system's message.
    """
    text = str(error)
    return any(os.strerror(number) in text for number in _PASSING)


def open_reader(path: Path, storage: str, cache_bytes: int, cipher: CacheCipher | None) -> CacheReader:
    """Open a state for reading."""
    if storage == Storage.MEMORY:
        from lockgate.lookup.cache.mapped_files import MemoryReader

        return MemoryReader(path)
    from lockgate.lookup.cache.rocksdb import ReadOnlyStore

    return ReadOnlyStore(path, cache_bytes, cipher)


def storage_of(path: Path) -> Storage:
    """Return the storage of the database in a folder."""
    return Storage.MEMORY if (path / LAYERS_FILE).exists() else Storage.FULL


def open_store(path: Path, storage: Storage, cipher: CacheCipher | None, budget: DiskBudget) -> Store:
    """Open a database for writing, a new one if the folder has none; raises LookupCacheError if it cannot."""
    if storage is Storage.MEMORY:
        from lockgate.lookup.cache.mapped_files import MemoryStore

        return MemoryStore(path, budget)
    from lockgate.lookup.cache.rocksdb import WritableStore

    return WritableStore(path, cipher)
