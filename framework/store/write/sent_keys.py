"""Keys for the index database that tasks collect while they write: what they are asked for, what they send.

Few keys come in the message of a task. Others are in a file of the table's folder `index`, whose name follows
from that of the data file, so that no message names a path. Such files are deleted as their write ends.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import InputError, LockgateError
from lockgate.framework.store.commit.task_keys import warn_unused, with_task_keys

if TYPE_CHECKING:
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.write.task_results import TaskFile

# Before the id of a write in names of data files, and in those of their keys.
_DATA, _KEYS = "data-", "keys-"
INLINE_BYTES = 32 * 2**20
"""The keys of a write that its messages hold at most: the engine's driver has them all in memory."""
_MOST_BYTES = 64 * 2**20
_AT_ONCE = 8


def keys_folder(table: TableHandle) -> str:
    """Return the folder in which tasks leave keys that do not fit into their messages."""
    return table.paths.index_file(_KEYS).rpartition("/")[0]


def with_sent_keys(table: TableHandle, write_id: str, files: Sequence[TaskFile]) -> list[CommitMessage]:
    """Return the messages of a write's files with what collectors make of the keys that tasks have sent.

    Where keys are missing or wrong, a warning says so, and the commit reads the file.
    """
    found: list[CommitMessage] = []
    remote = has_key_files(files)

    def read(each: TaskFile) -> bytes | None:
        return _keys(table, write_id, each)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # A few at a time, so that the keys of all files are never in memory together.
        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            keys = pool.map(read, some) if remote else map(read, some)
            for file, data in zip(some, keys, strict=True):
                named = {} if data is None else {file.name: data}
                found.append(with_task_keys(table, file.message, named) if named else file.message)
    return found


def _keys(table: TableHandle, write_id: str, file: TaskFile) -> bytes | None:
    """Return the keys of a file, None if there are none of use."""
    try:
        if file.keys is not None:
            return base64.b64decode(file.keys, validate=True)
        if not file.has_key_file:
            return None
        if not file.name.startswith(f"{_DATA}{write_id}-"):
            raise InputError("it is no file of this write")
        return _read(table, table.paths.index_file(f"{_KEYS}{file.name.removeprefix(_DATA)}"))
    except (LockgateError, OSError, ValueError) as error:
        warn_unused(file.name, error)
        return None


def _read(table: TableHandle, path: str) -> bytes:
    """Read a file of keys; InputError if it is larger than such files are, or than it says."""
    size = table.file_system.size(path)
    if size > _MOST_BYTES:
        raise InputError(f"they have {size} bytes")
    with table.file_system.open_input(path) as file:
        data = file.read(size + 1)
    if len(data) != size:
        raise InputError(f"they have other than {size} bytes")
    return bytes(data)


def remove_keys(table: TableHandle, write_id: str) -> None:
    """Delete the files of keys of a write, also those of tasks whose messages never came."""
    with suppress(OSError):
        found = table.file_system.list(keys_folder(table))
        own = [each.path for each in found if each.name.startswith(f"{_KEYS}{write_id}-")]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(table.file_system.delete, own))


def has_key_files(files: Sequence[TaskFile]) -> bool:
    """Tell whether a task has left keys in a file of their own."""
    return any(each.has_key_file for each in files)
