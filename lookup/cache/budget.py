"""The disk budget of a host's caches, kept by all their owners together.

Before it writes, a process notes the size in a file `.writing-<name>` of the common folder, so that two
owners cannot both take the remaining space. The process holds a lock on its note, so the note of an ended
process no longer counts; process ids could not show that if containers share the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.directory import disk_usage
from lockgate.lookup.spec import cache_paths

# The space that stays free on the disk in any case.
_SPARE_BYTES = 64 << 20
_NOTE = ".writing-"


class DiskBudget:
    """The budget of a folder of caches; `limit` is in bytes, 0: only the size of the disk."""

    def __init__(self, root: Path, limit: int) -> None:
        self._root = root
        self._limit = limit
        self._lock = threading.Lock()
        self._noted = 0
        self._note_path = root / f"{_NOTE}{uuid.uuid4().hex}"
        self._note_lock: IO[bytes] | None = None

    @contextlib.contextmanager
    def writing(self, coming: int) -> Iterator[None]:
        """Write `coming` bytes inside; raises LookupCacheError before they would exceed what there is."""
        self._note(coming)
        try:
            yield
        finally:
            self._note(-coming)

    def _note(self, change: int) -> None:
        with self._lock, open(self._root / ".budget", "ab") as common:
            fcntl.flock(common, fcntl.LOCK_EX)
            if change > 0:
                self._check(change)
            self._noted += change
            self._write_note()

    def _write_note(self) -> None:
        if self._noted and self._note_lock is None:
            self._note_lock = cache_paths.try_lock(self._note_path)
        if self._noted:
            self._note_path.write_text(str(self._noted))
        elif self._note_lock is not None:
            self._note_path.unlink(missing_ok=True)
            self._note_lock.close()
            self._note_lock = None

    def _check(self, change: int) -> None:
        coming = change + self._noted + self._noted_by_others()
        free = shutil.disk_usage(self._root).free
        if free < coming + _SPARE_BYTES:
            raise LookupCacheError(
                f"the disk of the lookup cache {self._root} has {free} bytes free and {coming} more are "
                f"needed, plus {_SPARE_BYTES} that stay free: free some, or choose another folder with "
                "lookup.cache-dir"
            )
        if self._limit and (used := disk_usage(self._root)) + coming > self._limit:
            raise LookupCacheError(
                f"the lookup caches in {self._root} take {used} bytes and {coming} more are needed, above "
                f"the {self._limit} that lookup.cache-max-disk-size allows: raise it, or cache fewer columns "
                "(select=)"
            )

    def _noted_by_others(self) -> int:
        noted = 0
        for path in self._root.glob(f"{_NOTE}*"):
            if path == self._note_path:
                continue
            if cache_paths.is_locked(path):
                with contextlib.suppress(FileNotFoundError, ValueError):
                    noted += int(path.read_text())
            else:
                path.unlink(missing_ok=True)
        return noted
