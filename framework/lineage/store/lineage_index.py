"""The index of one warehouse's lineage: a private SQLite file on this host, kept up to date from segments.

Several processes share it, and anyone may delete it at any time. So it is one file, in which SQLite locks;
only the journal of a transaction that is under way lies next to it. Each new file has a name of its own, or
SQLite would take the journal of a deleted file for the new one's. A file that is damaged, of another format
or behind a compaction is made again.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from lockgate.errors import CorruptFileError, LineageError
from lockgate.framework.io import check_private_folder, make_private_folder
from lockgate.framework.lineage.store.edges import parts
from lockgate.framework.lineage.store.index_tables import FORMAT, NAMES, TABLES
from lockgate.framework.lineage.store.lineage_segments import Segments, is_compacted
from lockgate.framework.lineage.store.numbering import Numbering
from lockgate.framework.lineage.store.segment_merge import Merger

ROOT_VARIABLE = "LOCKGATE_LINEAGE_DIR"
_ADVICE = f"remove it if it is not yours, or choose another folder with {ROOT_VARIABLE}"
_WAIT_SECONDS = 30.0
_TRIES = 5
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
# Edges that are merged in one transaction: many, for they are sorted first.
_EDGES_A_MERGE = 500_000
# Columns whose numbers stay in memory from one transaction to the next: about 250 bytes each.
_MOST_NUMBERS = 500_000

T = TypeVar("T")

_log = logging.getLogger("lockgate.lineage")


def index_folder(warehouse: str) -> Path:
    """Return the folder on this host of the index of a warehouse, given by its address."""
    root = os.environ.get(ROOT_VARIABLE) or str(
        Path(tempfile.gettempdir()) / f"lockgate-lineage-{os.getuid()}"
    )
    return Path(root).expanduser().absolute() / blake2b(warehouse.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Refreshed:
    """The number of segments that were merged, and the damaged ones with what is wrong with them."""

    merged: int
    damaged: tuple[tuple[str, str], ...]


class Index:
    """The index of the segments of one warehouse.

    Raises UnsafePathError if its folder could be another user's.
    """

    def __init__(self, segments: Segments, folder: Path) -> None:
        self._segments = segments
        self._folder = make_private_folder(folder, _ADVICE)

    @classmethod
    def of(cls, segments: Segments) -> Index:
        """Return the index of the warehouse that the segments are in, at its usual place."""
        return cls(segments, index_folder(segments.file_system.uri(segments.folder)))

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the index with all that has been written by now."""
        with closing(self._rebuilding(self._opened)) as database:
            try:
                yield database
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self.remove()
                raise LineageError(
                    f"the index of the lineage at {self._folder} is damaged ({error}), "
                    "so Lockgate removed it: ask again, it is built from the segments"
                ) from error

    @contextmanager
    def reading_with(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[sqlite3.Connection]:
        """Open the index with lines that no segment holds yet; it is left without them."""
        with self.reading() as database:
            database.execute("COMMIT")
            database.execute("BEGIN IMMEDIATE")
            try:
                merger = Merger(database)
                for line in lines:
                    merger.add(line)
                merger.finish()
                yield database
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    def refresh(self) -> Refreshed:
        """Merge the segments that are new; a file that SQLite cannot use is made again."""
        return self._rebuilding(self._refresh)

    def _rebuilding(self, action: Callable[[], T]) -> T:
        """Do what opens the index; a file that cannot be used is removed, and all is done again.

        Anyone may delete the file at any time, so that can happen more than once.
        """
        for left in reversed(range(_TRIES)):
            try:
                return action()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                    raise
                if not left:
                    raise LineageError(
                        f"the index of the lineage at {self._folder} cannot be built ({error}): is another "
                        f"process deleting it? Ask again, or choose another folder with {ROOT_VARIABLE}"
                    ) from error
                if _is_deleted(error):
                    continue
                _log.warning(
                    "the index of the lineage at %s is damaged (%s): it is built again", self._folder, error
                )
                self.remove()
        raise AssertionError("the last try returns or raises")

    def remove(self) -> None:
        """Delete the file; the next reader makes another."""
        for path in self._files():
            _delete(path)

    def file(self) -> Path | None:
        """Return the file that the next reader opens, or None if there is none yet."""
        return max(self._files(), default=None)

    def _files(self) -> list[Path]:
        return list(self._folder.glob("index-*.db"))

    # --- opening ---

    def _opened(self) -> sqlite3.Connection:
        """Open the file for one question, which sees one state of it; its edges are checked.

        What is merged and what is read is one file, even if somebody deletes it in between.
        """
        database = self._open()
        try:
            self._merge_new(database)
            database.execute("BEGIN")
            parts(database)
        except BaseException:
            database.close()
            raise
        return database

    def _open(self) -> sqlite3.Connection:
        check_private_folder(self._folder, _ADVICE)
        path = self.file() or self._folder / f"index-{time.time_ns():020d}-{secrets.token_hex(4)}.db"
        # Nothing but SQLite opens the file: a process that closes a file loses all its locks on it.
        database = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = TRUNCATE")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA cache_size = -65536")
            if database.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                self._make(database)
                # Processes that began at the same time made one each: all go on with the last.
                for other in self._files():
                    if other < path:
                        _delete(other)
        except BaseException:
            database.close()
            raise
        return database

    def _make(self, database: sqlite3.Connection) -> None:
        with _transaction(database):
            if database.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
                return  # another process was faster
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                database.execute(f"DROP TABLE {name}")
            for statement in TABLES.split(";"):
                if statement.strip():
                    database.execute(statement)
            database.execute(f"PRAGMA user_version = {FORMAT}")

    # --- merging ---

    def _refresh(self) -> Refreshed:
        with closing(self._open()) as database:
            merged = self._merge_new(database)
            damaged = database.execute("SELECT name, damage FROM segment WHERE damage IS NOT NULL").fetchall()
        return Refreshed(merged, tuple(sorted((name, text) for name, text in damaged)))

    def _merge_new(self, database: sqlite3.Connection) -> int:
        """Merge the segments that are new; return their number.

        Those that a compaction replaces are gone when they are read: what replaces them comes next.
        """
        merged = 0
        while new := self._new(database):
            merged += self._merge_all(database, new)
        return merged

    def _new(self, database: sqlite3.Connection) -> list[str]:
        merged = {name for (name,) in database.execute("SELECT name FROM segment")}
        return [name for name in self._segments.all_names() if name not in merged]

    def _merge_all(self, database: sqlite3.Connection, new: Sequence[str]) -> int:
        """Merge what is new; what a compacted segment replaces is not merged a second time."""
        replaced = {name: self._replaced_by(name) for name in new if is_compacted(name)}
        left_out = set().union(*replaced.values())
        order = [name for name in new if name not in left_out]
        if any(self._is_partly_merged(database, replaced[name]) for name in order if name in replaced):
            self.remove_rows(database)
            return self._merge_all(database, self._segments.all_names())
        merged = at = 0
        numbers = _Numbers(database)
        while at < len(order):
            with _transaction(database):
                merger, edges = Merger(database, numbers.now()), 0
                while at < len(order) and edges < _EDGES_A_MERGE:
                    edges += self._merge_one(database, merger, order[at], replaced.get(order[at], ()))
                    merged, at = merged + 1, at + 1
                merger.finish()
        return merged

    def _replaced_by(self, name: str) -> tuple[str, ...]:
        try:
            return self._segments.read(name).replaces
        except (FileNotFoundError, CorruptFileError):
            return ()  # said when it is merged

    def _is_partly_merged(self, database: sqlite3.Connection, replaced: Sequence[str]) -> bool:
        indexed = [_knows(database, name) for name in replaced]
        return any(indexed) and not all(indexed)

    def remove_rows(self, database: sqlite3.Connection) -> None:
        """Empty the index: some of what a compacted segment holds is in it, and cannot be told apart."""
        with _transaction(database):
            for name in NAMES:
                database.execute(f"DELETE FROM {name}")  # noqa: S608 - names of our own tables

    def _merge_one(
        self, database: sqlite3.Connection, merger: Merger, name: str, replaced: Sequence[str]
    ) -> int:
        if _knows(database, name):
            return 0  # another process was faster
        damage, edges = None, 0
        is_there = any(_knows(database, each) for each in replaced)
        try:
            segment = self._segments.read(name)
            for line in () if is_there else segment.lines:
                merger.add(line)
                edges += len(line["shape"].get("edges", ()))
        except FileNotFoundError:
            return 0  # compacted just now; what replaces it is merged next
        except CorruptFileError as error:
            damage = str(error)
            _log.warning("%s", error)
        names = [(name, damage), *((each, None) for each in replaced)]
        database.executemany("INSERT OR IGNORE INTO segment VALUES (?, ?)", names)
        return edges


def _is_deleted(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_READONLY_DBMOVED


class _Numbers:
    """Numbers of vertices, kept from one transaction to the next while nobody else writes."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._numbers: Numbering | None = None
        self._version = -1

    def now(self) -> Numbering:
        """Return them, inside a transaction."""
        version = self._database.execute("PRAGMA data_version").fetchone()[0]
        if self._numbers is None or version != self._version or self._numbers.size > _MOST_NUMBERS:
            self._numbers, self._version = Numbering(self._database), version
        return self._numbers


def _delete(path: Path) -> None:
    """Delete a file of SQLite, and then its journal."""
    for each in (path, path.with_name(f"{path.name}-journal")):
        each.unlink(missing_ok=True)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Return whether the file is at fault: damaged, or deleted by somebody."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # ours have none
    return _is_deleted(error) or code & 0xFF in _DAMAGE


def _knows(database: sqlite3.Connection, name: str) -> bool:
    return database.execute("SELECT 1 FROM segment WHERE name = ?", (name,)).fetchone() is not None


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
