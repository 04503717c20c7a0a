"""What a cache is kept in: RocksDB (`rocksdb`, on disk) or mapped files (`mapped_files`), alike to use.

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
    from lockgate.lookup.codec.sealing import CacheCipher

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS)
# Names the layers of a memory cache; a folder that has it holds one.
LAYERS_FILE = "LAYERS.json"


class Storage(StrEnum):
    """How a state is kept; the names are those of `lookup.cache`."""

    FULL = "full"
    MEMORY = "memory"


class Found(NamedTuple):
    """Values found together: `rows[i]` is the value of the key numbered `at[i]`."""

    at: Int64s
    rows: Rows | Scattered


Piece = tuple[Rows, Rows]


class Reader(Protocol):
    """A state open for reading; it never changes."""

    def find(self, keys: Rows) -> list[Found]:
        """Find the values of keys, which are sorted by their bytes and distinct; in one part or several."""

    def close(self) -> None:
        """Release the files."""


class Sink(Protocol):
    """Takes in the sorted keys and values of a load.

    With `in_order` the parts must be written one after another, ascending; else at the same time from several
    threads, each part under a name of its own.
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

    All changes of a step are taken in together with the step's `meta`, atomically: after a crash at any
    moment it holds a whole step or none of it.
    """

    path: Path
    storage: Storage

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Read the values of `keys`, None where there is none."""

    def meta(self) -> dict[str, Any] | None:
        """What the last step recorded; None before the first."""

    def size(self) -> int:
        """The bytes that keys and values take."""

    def sink(self) -> Sink:
        """Begin to load sorted keys and values."""

    def step_files(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[Path]:
        """Write the changes of a step aside: keys strictly ascending, None deletes what is held."""

    def ingest(self, files: Iterable[Path], meta: dict[str, Any]) -> None:
        """Take in what was written aside and record `meta`, all or nothing; the files are consumed."""

    def checkpoint(self, path: Path) -> None:
        """Make a copy at `path`, which must not exist, by hard links: in milliseconds and without space."""

    def close(self) -> None:
        """Release the files."""


def is_passing(error: Exception) -> bool:
    """Say whether a database could not be opened for want of something that the system may have again.

    RocksDB has no other way to tell than the system's words.
    """
    text = str(error)
    return any(os.strerror(number) in text for number in _PASSING)


def open_reader(path: Path, storage: str, cache_bytes: int, cipher: CacheCipher | None) -> Reader:
    """Open a state for reading."""
    if storage == Storage.MEMORY:
        from lockgate.lookup.cache.mapped_files import MemoryReader

        return MemoryReader(path)
    from lockgate.lookup.cache.rocksdb import ReadOnlyStore

    return ReadOnlyStore(path, cache_bytes, cipher)


def storage_of(path: Path) -> Storage:
    """Say how the database in a folder is kept."""
    return Storage.MEMORY if (path / LAYERS_FILE).exists() else Storage.FULL


def open_store(path: Path, storage: Storage, cipher: CacheCipher | None, budget: DiskBudget) -> Store:
    """Open a database for writing, a new one if the folder has none; raises LookupCacheError if it cannot."""
    if storage is Storage.MEMORY:
        from lockgate.lookup.cache.mapped_files import MemoryStore

        return MemoryStore(path, budget)
    from lockgate.lookup.cache.rocksdb import WritableStore

    return WritableStore(path, cipher)
