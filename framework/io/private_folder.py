"""Private folders and files of one user for local state, with the checks before they are opened.

Caches of lookups, sockets, files that two processes share, and other state on a host's disk (policies,
indexes) are in a folder of mode 0700 that belongs to the user of the process. Code that creates the folder
checks that, and so does **all code that opens a file in it**: another user of the host could have created the
folder first and would control its content. The check covers the whole path, as sshd's `StrictModes` does for
a home folder: every folder and every link from the root on belongs to root or to this user, and nobody else
can write to it. In a folder such as `/tmp` (writable by all, with the sticky bit) only the next entry of the
path is checked.

Others cannot change a checked path afterwards: only users who may write to a folder can replace its
entries. So the check and the opening need not be one step. It costs a microsecond or two for each part of the
path: check when local state is opened, not for each row.

The Java implementation is `io.lockgate.spark.files.io.PrivateFolders`; both pass the cases in
`tests/fixtures/private_folders.json`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from pathlib import Path

from lockgate.errors import UnsafePathError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ACCESS = 0o077
_MAX_LINKS = 40  # as many as Linux follows
_ADVICE = "remove it if it is not yours, or choose another folder"


def make_private_folder(path: Path, advice: str = _ADVICE) -> Path:
    """Create a folder that only this user can enter, with its parents, and return its real path.

    An existing folder is checked too, and closed to others if they could only read it. `advice` ends error
    messages: it names a remedy. Raises UnsafePathError if the folder, or any part of the path, may be
    another user's, and OSError if the folder cannot be created.
    """
    real = _make(path.absolute(), 0o700, advice)
    _check_owner_and_mode(real, real.lstat(), advice)
    if stat.S_IMODE(real.lstat().st_mode) & _OTHERS_ACCESS:
        real.chmod(0o700)
    return real


def make_own_folder(path: Path, advice: str = _ADVICE) -> Path:
    """Create or check a folder of this user that others may read; return its real path.

    For a parent of private folders that may hold other files of the user. Raises as `make_private_folder`.
    """
    real = _make(path.absolute(), 0o700, advice)
    _check_owner(real, real.lstat(), advice)
    return real


def check_private_folder(path: Path, advice: str = _ADVICE) -> Path:
    """Check a private folder of another process before a file in it is opened; return its real path.

    Raises UnsafePathError unless it belongs to this user and is closed to others, and the path to it is safe;
    FileNotFoundError if there is none.
    """
    real = check_own_folder(path, advice)
    mode = stat.S_IMODE(real.lstat().st_mode)
    if mode & _OTHERS_ACCESS:
        raise UnsafePathError(f"{real} is open to other users (mode {mode:04o}): chmod 700 it, or {advice}")
    return real


def check_own_folder(path: Path, advice: str = _ADVICE) -> Path:
    """Check that a folder is this user's and that nobody else can write to it; return its real
    path.

    For folders inside a private one. Raises as `check_private_folder`.
    """
    real = check_path(path, advice)
    status = real.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{real} is not a folder")
    _check_owner_and_mode(real, status, advice)
    return real


def check_path(path: Path, advice: str = _ADVICE) -> Path:
    """Resolve a path, check that every part of it is root's or this user's, and return the real path.

    Raises UnsafePathError for a folder or a link of another user, and for a folder that others can write to
    (unless it has the sticky bit, as `/tmp`: its entry is checked instead); FileNotFoundError if a part is
    missing.
    """
    at, pending, links = Path("/"), list(reversed(path.absolute().parts[1:])), 0
    _check_part(at, at.lstat(), advice)
    while pending:
        name = pending.pop()
        if name == "..":  # `at` is real, so this is the folder above
            at = at.parent
            continue
        here = at / name
        status = here.lstat()
        _check_part(here, status, advice)
        if not stat.S_ISLNK(status.st_mode):
            at = here
            continue
        links += 1
        if links > _MAX_LINKS:
            raise UnsafePathError(f"{path} leads through too many links: {advice}")
        target = Path(os.readlink(here))  # noqa: PTH115 - the text, not resolved
        at = Path("/") if target.is_absolute() else at
        pending.extend(reversed([part for part in target.parts if part != "/"]))
    return at


def open_private_file(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file of this user in a checked folder, and return its descriptor.

    Links are not followed. Raises UnsafePathError if it is a link, belongs to another user, can be written by
    others or is no regular file; else OSError as `os.open`.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISLNK(path.lstat().st_mode):
                raise UnsafePathError(f"{path} is a link, where a file is expected: {_ADVICE}") from None
        raise
    try:
        status = os.fstat(descriptor)
        _check_owner_and_mode(path, status, _ADVICE)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePathError(f"{path} is not a regular file: {_ADVICE}")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_private_socket(path: Path) -> None:
    """Check that a socket in a checked folder is this user's.

    Raises UnsafePathError if it is not, or is no socket (or a link to one).
    """
    status = path.lstat()
    if not stat.S_ISSOCK(status.st_mode):
        raise UnsafePathError(f"{path} is not a socket: {_ADVICE}")
    _check_owner(path, status, _ADVICE)


def _make(path: Path, mode: int, advice: str) -> Path:
    try:
        return check_path(path, advice)
    except FileNotFoundError:
        if path.is_symlink():
            raise UnsafePathError(f"{path} is a link to nothing: {advice}") from None
    _make(path.parent, 0o755, advice)
    with contextlib.suppress(FileExistsError):  # by another process: the check follows in any case
        path.mkdir(mode=mode)
    return check_path(path, advice)


def _check_part(path: Path, status: os.stat_result, advice: str) -> None:
    if status.st_uid != 0:
        _check_owner(path, status, advice)
    if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX:
        _check_closed(path, status, advice)


def _check_owner_and_mode(path: Path, status: os.stat_result, advice: str) -> None:
    _check_owner(path, status, advice)
    _check_closed(path, status, advice)


def _check_owner(path: Path, status: os.stat_result, advice: str) -> None:
    if status.st_uid != os.geteuid():
        what = f"the link {path}" if stat.S_ISLNK(status.st_mode) else str(path)
        raise UnsafePathError(
            f"{what} belongs to {_user(status.st_uid)}, this process to {_user(os.geteuid())}: {advice}"
        )


def _check_closed(path: Path, status: os.stat_result, advice: str) -> None:
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafePathError(
            f"other users can write to {path} (mode {mode:04o}), so its content may be theirs: inspect it "
            f"and run chmod go-w on it, or {advice}"
        )


def _user(number: int) -> str:
    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"
