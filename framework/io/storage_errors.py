"""Named errors of storage: a full or missing disk, a denied folder, a name that is too long."""

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
_UNAVAILABLE = (
    *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.ENXIO, errno.ETIMEDOUT),
    *(errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE),
    *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
)


def named_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function or generator raise `StorageError` in place of an `OSError` of storage.

    The error of the operating system is its `__cause__`. Errors for missing and existing files stay
    unchanged, because callers handle them.
    """

    @functools.wraps(function)
    def named(*arguments: P.args, **options: P.kwargs) -> R:
        with errors_named():
            result = function(*arguments, **options)
        return cast("R", _with_named_errors(result)) if isinstance(result, Generator) else result

    return named


def _with_named_errors(items: Generator[Any, Any, Any]) -> Iterator[Any]:
    with errors_named():
        yield from items


@contextmanager
def errors_named() -> Iterator[None]:
    """Apply `named_errors` to a block."""
    try:
        yield
    except OSError as error:
        named_error = None if isinstance(error, LockgateError) else storage_error(error)
        if named_error is None:
            raise
        raise named_error from error
    except UnicodeEncodeError as error:
        # The original message would show the complete argument.
        code = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(
            f"a text cannot hold {code}, half of a surrogate pair, which is no character"
        ) from None
    except ValueError as error:
        if str(error) != "embedded null byte":
            raise
        raise InputError("a path or a name cannot hold a NUL") from None


def storage_error(error: OSError) -> StorageError | None:
    """Return the named error for an error of the operating system; None if it has no better name."""
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _FULL:
        text = f"{where}no space is left there ({error.strerror}): free some, then do it again"
        return _with_details_of(error, StorageFullError(text))
    if error.errno == errno.EROFS:
        text = f"{where}the place is read-only ({error.strerror}): mount it writable, or take another"
        return _with_details_of(error, StorageDeniedError(text))
    if error.errno in _DENIED:
        text = f"{where}this user may not do that there ({error.strerror}): ask the owner of the folder"
        return _with_details_of(error, StorageDeniedError(text))
    if error.errno in (errno.ENOTDIR, errno.EISDIR):
        text = f"{where}a file lies where a folder is due, or the reverse ({error.strerror}): check the path"
        return _with_details_of(error, StorageError(text))
    if error.errno in _UNAVAILABLE:
        text = f"{where}the disk or network does not answer ({error.strerror}): look at it, then do it again"
        return _with_details_of(error, StorageError(text))
    if error.errno == errno.ENAMETOOLONG:
        text = (
            f"{where}a name is too long for this place ({error.strerror}): databases, tables and values of "
            "partition columns become names of folders, of 255 bytes at most on most disks"
        )
        return _with_details_of(error, NameTooLongError(text))
    if error.errno in (errno.ENOENT, errno.EEXIST, None):
        return None
    return _with_details_of(error, StorageError(f"{where}the storage refuses this ({error.strerror})"))


def _with_details_of(error: OSError, named: StorageError) -> StorageError:
    named.errno, named.strerror, named.filename = error.errno, None, error.filename
    return named
