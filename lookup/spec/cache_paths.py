"""Folders of caches on a host, and their locks; it imports no large module.

A plan names a cache by a text that every process of the cluster can read, the *place*: the folder that
`lookup.cache-dir` gives and the cache's name, or the name alone. Each host turns it into a folder of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import tempfile
import time
import uuid
from pathlib import Path
from typing import IO

from lockgate.errors import LookupCacheError
from lockgate.framework.io import make_own_folder, make_private_folder

# A host's own folder of caches; wins over `lookup.cache-dir`, which is the same for all hosts.
ROOT_VARIABLE = "LOCKGATE_LOOKUP_CACHE_DIR"

# Addresses such as `file:/tmp` and `s3://bucket`, but no Windows drive.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

ADVICE = "remove it if it is not yours, or choose another folder with lookup.cache-dir"

_LOCK_LEFTOVER_SECONDS = 3600.0


def parse_folder(text: str) -> str:
    """Return the path of a folder on local disks.

    Raises ValueError for the address of anything else, and for a path that begins with another user's home.
    """
    if _ADDRESS.match(text):
        raise ValueError("expected a folder on a disk of each host, such as /mnt/cache, not an address")
    if _is_of_other_home(text):
        raise ValueError("expected a whole path, such as /home/ada/cache, or one in ~, this user's own home")
    return text


def _is_of_other_home(folder: str) -> bool:
    return folder.startswith("~") and folder.partition("/")[0] != "~"


def local_root(configured: str) -> Path:
    """Return the folder of the caches on this host, for the `lookup.cache-dir` given (empty: none).

    A relative one is relative to the process's working directory, which is an executor's own; `~` is the home
    of its user. Without any, it is a folder for this user under the system's folder for temporary files.

    The same in Java: `CachePaths.local`; both pass `tests/fixtures/cache_folders.json`. Raises
    LookupCacheError for `~name`, which the JVM cannot resolve, and for `~` of a user without a home.
    """
    given = os.environ.get(ROOT_VARIABLE) or configured
    if given:
        # POSIX leaves open what two slashes at the start mean; in the JVM they are one.
        return Path("/", *Path(_with_home(given)).absolute().parts[1:])
    return Path(tempfile.gettempdir()) / f"lockgate-lookup-{os.getuid()}"


def _with_home(folder: str) -> str:
    if _is_of_other_home(folder):
        raise LookupCacheError(
            f"the folder of lookup caches '{folder}' begins with the home of another user: write the whole "
            f"path in lookup.cache-dir, or in {ROOT_VARIABLE}"
        )
    return _home() + folder[1:] if folder.startswith("~") else folder


def _home() -> str:
    try:
        return os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise LookupCacheError(
            f"user {os.getuid()} has no home for the folder of lookup caches: set HOME, or write the whole "
            f"path in lookup.cache-dir or {ROOT_VARIABLE}"
        ) from None


def place_text(configured: str, name: str) -> str:
    """Return the place of a cache as a plan carries it."""
    return f"{configured}/{name}" if configured else name


def local_path(location: str) -> Path:
    """Return the folder of a cache on this host."""
    configured, slash, name = location.rpartition("/")
    return local_root(configured or slash) / name


def cache_folder(path: Path) -> Path:
    """Make the folder of a cache, closed to other users, if it is missing or was removed.

    Raises LookupCacheError if it cannot be made, UnsafePathError if it, or anything on the way to it, could
    be another user's, and FileNotFoundError if another process removes it meanwhile.
    """
    try:
        # The folder above may be the user's own and hold other files: it stays as it is.
        make_own_folder(path.parent, ADVICE)
        return make_private_folder(path, ADVICE)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LookupCacheError(
            f"cannot make the folder of lookup caches {error.filename or path}: {error.strerror or error}; "
            "choose another with lookup.cache-dir"
        ) from error


def folder_token(path: Path) -> str:
    """Return a name that the folder of a cache keeps while it exists: equal for all who see the same
    folder.
    """
    token = path / "PLACE"
    if not token.exists():
        own = path / f".PLACE.{uuid.uuid4().hex}"
        own.write_text(uuid.uuid4().hex)
        with contextlib.suppress(FileExistsError):
            token.hardlink_to(own)
        own.unlink()
    return token.read_text()


def try_lock(path: Path) -> IO[bytes] | None:
    """Take a lock without waiting; it ends when the file is closed or the process dies."""
    file = open(path, "ab")  # noqa: SIM115 - the caller keeps it open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    if not is_lock_of(path, file):  # removed between the two steps
        file.close()
        return None
    return file


def is_locked(path: Path) -> bool:
    """Say whether somebody holds the lock at this moment; disturbs nobody who waits for it."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def is_lock_of(path: Path, lock: IO[bytes]) -> bool:
    """Say whether `lock` still is the file of this path: one that was removed and made again is another."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return status.st_ino == os.fstat(lock.fileno()).st_ino


def election_lock(folder: Path, application: str) -> Path:
    """Return the lock that chooses, among the executors of an application on a host, the one that runs the
    owner.
    """
    (folder / "owners").mkdir(exist_ok=True)
    return folder / "owners" / application


def sweep_elections(folder: Path) -> None:
    """Remove the locks of elections that ended long ago."""
    for path in (folder / "owners").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _LOCK_LEFTOVER_SECONDS:
                lock = try_lock(path)
                if lock is not None:
                    path.unlink(missing_ok=True)
                    lock.close()
