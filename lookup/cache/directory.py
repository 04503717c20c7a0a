"""The folder of one cache: the states it holds, the right to write, the states to keep.

::

    LAYOUT.json          what is cached, with the versions of the formats
    KEYS.json            of an encrypted cache its key, wrapped under the table's keys (`cache_key`)
    keys/<name>.sock     where the owners hand the key to the readers of this user (`key_server`)
    LOCK                 held by the one process that writes
    CURRENT              the snapshot that readers without a wish of their own get
    PRIMARY              names the database that is brought forward from snapshot to snapshot
    generations/<id>/    the state at snapshot <id>, never changed; its fingerprint tells which (`mark_of`)
    PLACE                a name of the folder, by which those who share it know each other
    owners/<name>        locked by the executor of an application that runs its owner (`standby`)
    wanted/<id>[-<mark>] snapshots that a process without the lock asks for
    called               there if a task found no owner
    readers/<name>       what a driver still needs, touched while it lives
    reports/<name>       where that driver's lookup stands, for the shell (`caches`)

A folder belongs to one user and is closed to others; every opener of a state checks that.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa

from lockgate.errors import LookupCacheError, VersionMismatchError
from lockgate.framework.io import check_own_folder, check_private_folder
from lockgate.framework.spark import ErrorJson
from lockgate.framework.version import CACHE_FORMAT, ROW_CODEC
from lockgate.lookup.cache.version_info import CacheVersionInfo, refusal_of
from lockgate.lookup.spec import cache_paths
from lockgate.lookup.spec.lookup_spec import CacheLayout

_log = logging.getLogger("lockgate.lookup")

_Result = TypeVar("_Result")
_PARTS = ("generations", "wanted", "readers", "reports", "keys")

KEPT_GENERATIONS = 2
_CALLED = "called"
# A driver touches its reader file every few seconds; after this time it is gone.
READER_LEASE_SECONDS = 300.0
# A reader that waits for a state asks several times a second; after this time it waits no more.
WISH_LEASE_SECONDS = 30.0
# How often a step is done again when the folder was removed meanwhile (`discard`).
_TRIES = 10


def write_atomically(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace a small file so that readers see the old or the new one, never a part.

    With `durable` it is on the disk before it is in place.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)


class CacheDirectory:
    """One cache's folder; every method may be called from any process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.versions_path = path / "generations"
        self.log_path = path / "owner.log"

    @classmethod
    def create(cls, root: Path, name: str) -> CacheDirectory:
        """Make the folder of a cache, closed to other users."""
        directory = cls(root / name)
        directory.ensure()
        return directory

    def ensure(self) -> None:
        """Make the folder, closed to other users, if it is missing or was removed."""
        self.in_folder(lambda: None)

    def in_folder(self, step: Callable[[], _Result]) -> _Result:
        """Do one step in the folder, which is made first; again if another process removes it meanwhile."""
        for tries_left in reversed(range(_TRIES)):
            try:
                cache_paths.cache_folder(self.path)
                for part in _PARTS:
                    (self.path / part).mkdir(exist_ok=True)
                return step()
            except FileNotFoundError as error:
                if not tries_left:
                    raise LookupCacheError(
                        f"the folder of a lookup cache {self.path} is removed again and again: {error}"
                    ) from error
        raise AssertionError("each try returns or raises")

    def check(self, snapshot_id: int | None = None) -> None:
        """Check that no other user could have written the folder, or a state in it.

        Raises UnsafePathError for a folder of another user, or that others can write to; FileNotFoundError if
        there is none. To be called before a state is opened, not for each question.
        """
        check_private_folder(self.path, cache_paths.ADVICE)
        if snapshot_id is not None:
            check_own_folder(self.version_path(snapshot_id), cache_paths.ADVICE)

    # --- layout ----------------------------------------------------------------------------------

    def write_layout(self, layout: CacheLayout) -> None:
        """Record what is cached."""
        write_atomically(self.path / "LAYOUT.json", json.dumps(layout.to_json(), indent=1))

    def layout(self) -> CacheLayout:
        """Read what is cached.

        Raises LookupCacheError if there is no cache and VersionMismatchError if another version made it.
        """
        content = self.layout_json()
        if content is None:
            raise LookupCacheError(
                f"there is no lookup cache in {self.path} on this host ({socket.gethostname()}): its owner "
                "is started by the executors' plugin, spark.plugins=io.lockgate.spark.LockgatePlugin"
            )
        versions = (content.get("cache_format"), content.get("row_codec"))
        if versions != (CACHE_FORMAT, ROW_CODEC):
            raise VersionMismatchError(
                f"the lookup cache {self.path} has format {versions[0]} and row codec {versions[1]}, this "
                f"Lockgate reads {CACHE_FORMAT} and {ROW_CODEC}: install one version on driver and executors"
            )
        try:
            return CacheLayout.from_json(content)
        except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
            raise LookupCacheError(
                f"{self.path / 'LAYOUT.json'} is damaged ({type(error).__name__}: {error}): lockgate lookup "
                "rebuild builds the cache again"
            ) from None

    def layout_json(self) -> dict[str, Any] | None:
        """Return what is recorded of what is cached; None in a folder that was just made, or made again."""
        return _read_json(self.path / "LAYOUT.json")

    def has_layout(self, layout: CacheLayout) -> bool:
        """Say whether the cache holds exactly this, in formats of this version, undamaged."""
        with contextlib.suppress(LookupCacheError):
            return self.layout_json() == layout.to_json()
        return False

    def discard_if_damaged(self, snapshot_id: int) -> bool:
        """Remove the cache if its layout or the state at a snapshot cannot be read; return whether it was.

        A running owner then builds it again. Another process may have discarded it first.
        """
        with contextlib.suppress(FileNotFoundError):
            before = self.path.stat().st_ino
            try:
                self.layout_json()
                self.version(snapshot_id)
            except LookupCacheError as error:
                if self.path.stat().st_ino == before:
                    _log.warning("the lookup cache %s is removed and built again: %s", self.path, error)
                    self.discard()
                return True
        return False

    def discard(self) -> None:
        """Remove the cache, if there is one: open readers keep their files, a running owner builds again."""
        # The folder moves away in one step: a running owner makes a new one, and writes into that.
        with contextlib.suppress(FileNotFoundError):
            aside = self.path.rename(self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}"))
            shutil.rmtree(aside, ignore_errors=True)

    def write_key(self, content: dict[str, Any]) -> None:
        """Store the wrapped key of an encrypted cache."""
        write_atomically(self.path / "KEYS.json", json.dumps(content), durable=True)

    def key(self) -> dict[str, Any] | None:
        """Return the wrapped key of an encrypted cache; None if there is none."""
        return _read_json(self.path / "KEYS.json")

    # --- versions --------------------------------------------------------------------------------

    def current(self) -> int | None:
        """Return the snapshot that is served now; None before the first."""
        try:
            return int((self.path / "CURRENT").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def set_current(self, snapshot_id: int) -> None:
        """Serve another state from now on; readers of the old one are not disturbed."""
        write_atomically(self.path / "CURRENT", str(snapshot_id))

    def version_path(self, snapshot_id: int) -> Path:
        """Return the folder of the state at a snapshot."""
        return self.versions_path / str(snapshot_id)

    def version(self, snapshot_id: int) -> CacheVersionInfo | None:
        """Return the facts about the state at a snapshot; None if it is not cached."""
        path = self.version_path(snapshot_id) / "GENERATION.json"
        content = _read_json(path)
        return None if content is None else CacheVersionInfo.of_file(content, path)

    def versions(self) -> list[int]:
        """Return the snapshots whose states are cached, ascending."""
        with contextlib.suppress(FileNotFoundError):
            return _numbers(self.versions_path)
        return []

    def _building_path(self) -> Path:
        return self.versions_path / f"building-{uuid.uuid4().hex}"

    def publish(self, make: Callable[[Path], CacheVersionInfo]) -> CacheVersionInfo:
        """Let `make` fill a folder (its database goes to `db`) and put it in place, complete, in one step."""
        building = self._building_path()
        building.mkdir()
        try:
            info = make(building)
            (building / "GENERATION.json").write_text(json.dumps(info.to_json()))
            final = self.version_path(info.snapshot_id)
            if final.exists():  # of a snapshot that was rolled back; open readers keep their files
                final.rename(self._building_path())
            building.rename(final)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        return info

    def sweep(self, keep: Collection[int] = ()) -> list[int]:
        """Remove leftovers of a crash and unneeded states; called by the owner."""
        kept = {*keep, *self.needed()}
        states = self.versions()
        current = self.current()
        if current is not None:
            kept |= {current, *[state for state in states if state <= current][-KEPT_GENERATIONS:]}
        removed = [state for state in states if state not in kept]
        for state in removed:
            # In one step, so that no reader opens half of it.
            self.version_path(state).rename(self._building_path())
        for leftover in self.versions_path.glob("building-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        return removed

    def clear(self) -> None:
        """Remove everything cached; called by the owner when the layout changed."""
        (self.path / "CURRENT").unlink(missing_ok=True)
        (self.path / "PRIMARY").unlink(missing_ok=True)
        for path in [*self.versions_path.iterdir(), *self.path.glob("primary-*")]:
            shutil.rmtree(path, ignore_errors=True)
        for path in [self.path / "KEYS.json", *self.path.glob("*.sst")]:
            path.unlink(missing_ok=True)

    # --- the database that is brought forward ------------------------------------------------------

    def primary(self) -> Path | None:
        """Return the folder of the database that is brought forward; None before the first full load."""
        try:
            name = (self.path / "PRIMARY").read_text().strip()
        except (FileNotFoundError, ValueError):
            return None
        path = self.path / name
        return path if name.startswith("primary-") and "/" not in name and path.is_dir() else None

    def new_primary(self) -> Path:
        """Return a fresh folder for a full load; it counts only after `set_primary`."""
        path = self.path / f"primary-{uuid.uuid4().hex}"
        path.mkdir()
        return path

    def set_primary(self, path: Path) -> None:
        """Make a loaded database the one that is brought forward."""
        write_atomically(self.path / "PRIMARY", path.name)

    def sweep_primaries(self) -> None:
        """Remove databases that a crash or a full load left behind; called by the owner."""
        primary = self.primary()
        for path in self.path.glob("primary-*"):
            if path != primary:
                shutil.rmtree(path, ignore_errors=True)

    # --- what others want --------------------------------------------------------------------------

    def want(self, snapshot_id: int, mark: int = 0) -> None:
        """Ask the holder of the lock for the state at a snapshot; must be repeated within the lease.

        `mark` tells it from others of its number (`mark_of`); 0: whichever has the number now.
        """
        with contextlib.suppress(FileNotFoundError):  # nobody has made the folder yet, or made it again
            self._wish(snapshot_id, mark).touch()

    def _wish(self, snapshot_id: int, mark: int, suffix: str = "") -> Path:
        return self.path / "wanted" / f"{snapshot_id}{f'-{mark}' if mark else ''}{suffix}"

    def call_owner(self) -> None:
        """Have a driver whose owner rests start it again; nothing happens without a folder."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / _CALLED).touch()

    def is_called(self) -> bool:
        """Say whether a task found no owner since `forget_call`."""
        return (self.path / _CALLED).exists()

    def forget_call(self) -> None:
        """Forget that a task found no owner."""
        (self.path / _CALLED).unlink(missing_ok=True)

    def wanted(self) -> list[tuple[int, int]]:
        """Return the requested snapshots, with their marks, ascending; drops requests that were not
        renewed.
        """
        wanted = []
        for path in _files(self.path / "wanted"):
            snapshot_id, _, mark = path.name.partition("-")
            with contextlib.suppress(FileNotFoundError, ValueError):
                wish = int(snapshot_id), int(mark or 0)
                if time.time() - path.stat().st_mtime > WISH_LEASE_SECONDS:
                    path.unlink()
                else:
                    wanted.append(wish)
        return sorted(wanted)

    def unwant(self, snapshot_id: int, mark: int = 0) -> None:
        """End a request that is fulfilled, or cannot be."""
        self._wish(snapshot_id, mark).unlink(missing_ok=True)

    def refuse(self, snapshot_id: int, error: ErrorJson, mark: int = 0) -> None:
        """Refuse a request, and leave the reason for its author."""
        refusal = self._wish(snapshot_id, mark, ".error")
        self.in_folder(lambda: write_atomically(refusal, json.dumps(error)))
        self.unwant(snapshot_id, mark)

    def take_refusal(self, snapshot_id: int, mark: int = 0) -> ErrorJson | None:
        """Return the reason why a request was refused, if it was; it may be repeated afterwards."""
        path = self._wish(snapshot_id, mark, ".error")
        try:
            error = _read_json(path)
            return None if error is None else refusal_of(error, path)
        except LookupCacheError:  # damaged: the owner is asked again
            return None
        finally:
            path.unlink(missing_ok=True)

    def hold(self, name: str, snapshots: Collection[int]) -> None:
        """Record that the driver `name` needs these states; must be repeated within the lease."""
        needed = json.dumps(sorted(snapshots))
        self.in_folder(lambda: write_atomically(self.path / "readers" / name, needed))

    def is_held_by(self, name: str) -> bool:
        """Say whether the record of the driver `name` is there, which goes with the folder."""
        return (self.path / "readers" / name).exists()

    def release(self, name: str) -> None:
        """Record that the driver `name` needs nothing any longer."""
        for part in ("readers", "reports"):
            (self.path / part / name).unlink(missing_ok=True)

    def report(self, name: str, content: dict[str, Any]) -> None:
        """Record the status of the lookup of the driver `name`; repeated while it lives."""
        self.in_folder(lambda: write_atomically(self.path / "reports" / name, json.dumps(content)))

    def reports(self) -> list[tuple[float, dict[str, Any]]]:
        """Return the records of living drivers, and how many seconds ago, the newest first."""
        found = []
        for path in _files(self.path / "reports"):
            with contextlib.suppress(FileNotFoundError, LookupCacheError):
                age = time.time() - path.stat().st_mtime
                content = _read_json(path)
                if content is not None and age < READER_LEASE_SECONDS:
                    found.append((age, content))
        return sorted(found, key=lambda each: each[0])

    def needed(self) -> set[int]:
        """Return the states that living drivers need; forgets drivers that are gone."""
        needed: set[int] = set()
        for path in _files(self.path / "readers"):
            with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
                if time.time() - path.stat().st_mtime > READER_LEASE_SECONDS:
                    self.release(path.name)
                else:
                    needed.update(json.loads(path.read_text()))
        return needed

    # --- the right to write ------------------------------------------------------------------------

    def try_lock(self) -> IO[bytes] | None:
        """Take the right to write without waiting; it ends when the file is closed or the process dies."""
        return self.in_folder(lambda: cache_paths.try_lock(self.path / "LOCK"))

    def is_locked_by(self, lock: IO[bytes]) -> bool:
        """Return whether `lock` is still the folder's: one that was removed and recreated has another."""
        return cache_paths.is_lock_of(self.path / "LOCK", lock)

    def has_cache_server(self) -> bool:
        """Say whether a process holds the right to write at this moment."""
        return cache_paths.is_locked(self.path / "LOCK")


def _files(folder: Path) -> list[Path]:
    # None in a folder that was removed meanwhile. Hidden ones are only being written.
    with contextlib.suppress(FileNotFoundError):
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    return []


def _numbers(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise LookupCacheError(f"{path} is damaged: lockgate lookup rebuild builds the cache again")
    return content


def sweep_caches(root: Path, unused_seconds: float) -> list[Path]:
    """Remove the caches in a folder that have been unused for so long; returns them."""
    removed = []
    for path in root.iterdir():
        if not (path / "LAYOUT.json").exists():
            continue
        with contextlib.suppress(FileNotFoundError):
            # Drivers rewrite their reader files all the time, which dates the folder.
            used = max(part.stat().st_mtime for part in (path / "readers", path / "generations", path))
            directory = CacheDirectory(path)
            lock = None if time.time() - used < unused_seconds else directory.try_lock()
            if lock is not None:
                with lock:
                    directory.discard()
                removed.append(path)
    return removed


def disk_usage(path: Path) -> int:
    """Return the bytes of all files under a folder, hard-linked ones counted once."""
    seen: dict[int, int] = {}
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(os.path.join(folder, name))  # noqa: PTH118, PTH116 - half the time of Path
                seen[status.st_ino] = status.st_size
    return sum(seen.values())
