"""Named errors of storage: a full or missing disk, a closed folder, too long a name."""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

from lockgate.errors import (
    InputError,
    LockgateError,
    NameTooLongError,
    StorageDeniedError,
    StorageError,
    StorageFullError,
)

P = ParamSpec("P")
R = TypeVar("R")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED = (errno.EACCES, errno.EPERM)
_AWAY = (
    *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.ENXIO, errno.ETIMEDOUT),
    *(errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
)


def named_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function, or generator, raise `StorageError` in place of the `OSError` of a full or closed place.

    The error of the operating system is its `__cause__`. Errors for missing and existing files mean
    something else to callers, and stay as they are.
    """

    @functools.wraps(function)
    def named(*arguments: P.args, **options: P.kwargs) -> R:
        with errors_named():
            result = function(*arguments, **options)
        return cast("R", _each_named(result)) if isinstance(result, Generator) else result

    return named


def _each_named(items: Generator[Any, Any, Any]) -> Iterator[Any]:
    with errors_named():
        yield from items


@contextmanager
def errors_named() -> Iterator[None]:
    """Raise what `named_errors` does within a block."""
    try:
        yield
    except OSError as error:
        better = None if isinstance(error, LockgateError) else storage_error(error)
        if better is None:
            raise
        raise better from error
    except UnicodeEncodeError as error:
        # Its text would show the whole argument.
        code = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(
            f"a text cannot hold {code}, half of a surrogate pair, which is no character"
        ) from None
    except ValueError as error:
        if str(error) != "embedded null byte":
            raise
        raise InputError("a path or a name cannot hold a NUL") from None


def storage_error(error: OSError) -> StorageError | None:
    """Return the named error for one of the operating system; None if there is no better name for it."""
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _FULL:
        text = f"{where}no space is left there ({error.strerror}): free some, then do it again"
        return _like(error, StorageFullError(text))
    if error.errno == errno.EROFS:
        text = f"{where}the place is read-only ({error.strerror}): mount it writable, or take another"
        return _like(error, StorageDeniedError(text))
    if error.errno in _DENIED:
        text = f"{where}this user may not do that there ({error.strerror}): ask the owner of the folder"
        return _like(error, StorageDeniedError(text))
    if error.errno in (errno.ENOTDIR, errno.EISDIR):
        text = f"{where}a file lies where a folder is due, or the reverse ({error.strerror}): check the path"
        return _like(error, StorageError(text))
    if error.errno in _AWAY:
        text = f"{where}the disk or network does not answer ({error.strerror}): look at it, then do it again"
        return _like(error, StorageError(text))
    if error.errno == errno.ENAMETOOLONG:
        text = (
            f"{where}a name is too long for this place ({error.strerror}): databases, tables and values of "
            "partition columns become names of folders, of 255 bytes at most on most disks"
        )
        return _like(error, NameTooLongError(text))
    if error.errno in (errno.ENOENT, errno.EEXIST, None):
        return None
    return _like(error, StorageError(f"{where}the storage refuses this ({error.strerror})"))


def _like(error: OSError, named: StorageError) -> StorageError:
    named.errno, named.strerror, named.filename = error.errno, None, error.filename
    return named
