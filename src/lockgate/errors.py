"""Every error that Lockgate raises on purpose, in one tree.

Catch `LockgateError` for all of them. An error that resembles a built-in one is a subclass of it, so that
`except ValueError` keeps its meaning. Messages say what was wrong, where, and what to do; they never hold a
key.
"""

from __future__ import annotations

import difflib
import sys
import threading
import warnings
from collections.abc import Iterable
from types import FrameType

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "BridgeError",
    "ColumnNotFoundError",
    "CommitConflictError",
    "CorruptFileError",
    "DeprecatedSparkWarning",
    "EncryptionKeyError",
    "FileMissingError",
    "InputError",
    "IntegrityError",
    "IsolationError",
    "KeyDeniedError",
    "KeyMissingError",
    "KeyServiceError",
    "LineageError",
    "LineageWarning",
    "LockgateError",
    "LookupCacheError",
    "LookupOwnerWarning",
    "LookupTimeoutError",
    "MaskedDataWarning",
    "NameTooLongError",
    "NamespaceNotFoundError",
    "NotFoundError",
    "OptionError",
    "PlaintextError",
    "PlaintextWarning",
    "PluginError",
    "PolicyError",
    "ProcedureError",
    "ProcedureNotFoundError",
    "RecordsRefusedError",
    "SnapshotExpiredError",
    "SnapshotNotFoundError",
    "StorageDeniedError",
    "StorageError",
    "StorageFullError",
    "TableNotFoundError",
    "TagNotFoundError",
    "UnprotectedKeysWarning",
    "UnsafePathError",
    "UnsupportedError",
    "UnsupportedFormatError",
    "UnsupportedTypeError",
    "VersionMismatchError",
    "WrongKeyError",
]


class LockgateError(Exception):
    """Raised when Lockgate refuses or fails; the base of every error below."""


# --- what the caller asked for -------------------------------------------------------------------


class InputError(LockgateError, ValueError):
    """Raised when an argument has a value that cannot be used."""


class OptionError(InputError):
    """Raised when an option is unknown, malformed or contradicts another."""


class UnsupportedTypeError(InputError, TypeError):
    """Raised when a data type cannot be stored, read, compared or joined."""


class UnsupportedError(LockgateError, NotImplementedError):
    """Raised when a request makes sense but is not supported; the message names the alternative."""


class NotFoundError(LockgateError, LookupError):
    """Raised when something named by the caller does not exist; the message offers the nearest names."""


class NamespaceNotFoundError(NotFoundError):
    """Raised when a database does not exist."""


class TableNotFoundError(NotFoundError):
    """Raised when a table does not exist."""


class ColumnNotFoundError(NotFoundError):
    """Raised when a column is not in the schema it is looked up in."""


class SnapshotNotFoundError(NotFoundError):
    """Raised when a snapshot does not exist, because it has expired or was never written."""


class SnapshotExpiredError(SnapshotNotFoundError, FileNotFoundError):
    """Raised when a file of a snapshot is gone, mostly because it has expired since the read was planned."""


class FileMissingError(NotFoundError, FileNotFoundError):
    """Raised when a file that the caller names, or the folder for one, does not exist."""


class TagNotFoundError(NotFoundError):
    """Raised when a table has no tag of that name."""


class ProcedureNotFoundError(NotFoundError):
    """Raised when no procedure of that name is registered."""


class AlreadyExistsError(LockgateError):
    """Raised when a database, table or tag to be created already exists."""


# --- data at rest --------------------------------------------------------------------------------


class CorruptFileError(LockgateError):
    """Raised when a file is truncated, damaged or breaks its format; names the file and what is wrong."""


class IntegrityError(CorruptFileError):
    """Raised when the tags of a file do not match its bytes, or are missing but required.

    Somebody changed the file, a disk or a copy damaged it, or its tags were stripped.
    """


class UnsafePathError(LockgateError):
    """Raised when another user may have planted a path: a folder, a link or a name that is not trusted."""


class IsolationError(LockgateError):
    """Raised when the isolated process that decodes untrusted files cannot be started."""


class UnsupportedFormatError(LockgateError):
    """Raised when a file or table is valid but of a version, codec or feature that is not supported."""


class StorageError(LockgateError, OSError):
    """Raised when a disk or store refuses; one subclass for each reason, `__cause__` is its own error."""

    def __str__(self) -> str:
        # With `errno` and `filename` set, OSError would show these alone.
        return str(self.args[0]) if self.args else ""


class RecordsRefusedError(StorageError):
    """Raised by a sink of audit or lineage for records that its destination will never take.

    Lockgate then writes them in halves, sets the refused ones aside, and goes on with the others.
    """


class StorageFullError(StorageError):
    """Raised when no space is left where a file is to be written."""


class StorageDeniedError(StorageError, PermissionError):
    """Raised when a place is read-only, or closed to this user."""


class NameTooLongError(StorageError, ValueError):
    """Raised when a name, or a value that becomes the name of a folder, is too long for the storage."""


class CommitConflictError(LockgateError):
    """Raised when a commit no longer fits after concurrent commits; nothing became visible."""


# --- access --------------------------------------------------------------------------------------


class AccessDeniedError(LockgateError, PermissionError):
    """Raised when a plugin denies an action; `apply_for` names the missing grant."""

    def __init__(self, message: str, apply_for: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.apply_for = apply_for


class PolicyError(LockgateError):
    """Raised when policies cannot be used as they are: nothing is allowed by a part of them."""


# --- keys ----------------------------------------------------------------------------------------


class EncryptionKeyError(LockgateError):
    """Raised when an encryption key cannot be used; one subclass for each reason."""


class KeyMissingError(EncryptionKeyError, LookupError):
    """Raised when the provider does not hold the key."""


class KeyDeniedError(EncryptionKeyError, PermissionError):
    """Raised when the provider holds the key but does not let this caller use it."""


class WrongKeyError(EncryptionKeyError):
    """Raised when a key of the right name is not the one that the data was encrypted with."""


class KeyServiceError(EncryptionKeyError):
    """Raised when the service that holds the keys did not answer or answered nonsense."""


class MaskedDataWarning(UserWarning):
    """Warns that a column is read as its mask, because its key is missing."""


class PlaintextWarning(UserWarning):
    """Warns that values of an encrypted column are stored in the clear somewhere else."""


class PlaintextError(LockgateError):
    """Raised when values of an encrypted column would be stored in the clear, which an option refuses."""


class LineageWarning(UserWarning):
    """Warns that a table or column with readers is dropped or renamed."""


class LineageError(LockgateError):
    """Raised when lineage cannot be kept or compacted, or has readers that an option protects."""


class UnprotectedKeysWarning(UserWarning):
    """Warns that keys of files travel over a network that is not encrypted."""


class DeprecatedSparkWarning(UserWarning):
    """Warns that a later version of Lockgate will have no connector for the Spark that runs."""


class LookupOwnerWarning(UserWarning):
    """Warns that the executors cannot keep the caches of lookups, so that the driver's host does."""


# --- extensions and the two languages ------------------------------------------------------------


class PluginError(LockgateError):
    """Raised when a plugin cannot be loaded, breaks the contract or conflicts with another.

    `plugin` is the name it is registered under.
    """

    def __init__(self, message: str, plugin: str) -> None:
        super().__init__(message)
        self.plugin = plugin


class ProcedureError(LockgateError):
    """Raised when a procedure refuses its arguments or fails."""


class BridgeError(LockgateError):
    """Raised when Python and the connector in the JVM cannot work together; says which to change."""


class VersionMismatchError(BridgeError):
    """Raised when connector, Python package, cache format and row codec have different versions."""


# --- lookup --------------------------------------------------------------------------------------


class LookupCacheError(LockgateError):
    """Raised when a lookup cache cannot be built, opened or refreshed."""


class LookupTimeoutError(LookupCacheError, TimeoutError):
    """Raised when no owner brought a lookup cache to the wanted snapshot in time."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's program: the innermost frame that is not of Lockgate or Spark.

    A thread that answers Spark has no such line; the line where the main thread waits is shown then.
    """
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    frame = _users_frame(sys._getframe(1)) or _users_frame(main)
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


# Packages between a user's line and ours: our own, and those by which threads and Spark call.
_BETWEEN = (sys.stdlib_module_names | {"lockgate", "pyspark", "py4j"}) - {"__main__"}


def _users_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    return frame


def nearest(name: str, candidates: Iterable[str], *, most: int = 3, within: str = "") -> str:
    """Return the names in `candidates` that resemble `name`, as the end of an error message; `within` stands
    before each.

    >>> nearest("plane", ["planes", "airports"])
    "; did you mean 'planes'?"
    >>> nearest("plane", ["planes", "airports"], within="hr.")
    "; did you mean 'hr.planes'?"
    >>> nearest("x", ["planes", "airports"])
    '; known: airports, planes'
    >>> nearest("x", [])
    ''
    """
    names = sorted(set(candidates))
    by_folded = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), by_folded, n=most, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(repr(within + by_folded[match]) for match in close)}?"
    if not names:
        return ""
    shown = ", ".join(within + each for each in names[:20])
    return f"; known: {shown}{', ...' if len(names) > 20 else ''}"
