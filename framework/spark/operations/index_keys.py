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
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.messages.write_messages import EndRequest, FileMessage, IndexKeys
from lockgate.framework.store.commit.task_keys import asked_of_tasks, warn_unused, with_task_keys

if TYPE_CHECKING:
    from lockgate.framework.store import CommitMessage, Table

# Before the id of a write in names of data files, and in those of their keys.
_DATA, _KEYS = "data-", "keys-"
# The driver's JVM has the messages of all tasks in memory, and Spark limits the results of a job.
_INLINE_BYTES = 32 * 2**20
_MOST_BYTES = 64 * 2**20
_AT_ONCE = 8


def asked_keys(context: OperationContext, table: Table) -> IndexKeys | None:
    """Return what tasks collect of the files of a write, None if nothing."""
    keys = asked_of_tasks(table)
    if keys is None:
        return None
    return {
        "folder": context.hadoop_path(table, _folder(table)),
        "block_rows": keys.block_rows,
        "inline_bytes": _INLINE_BYTES,
        "columns": [
            {"column": each.column, "kind": each.kind, "values": each.values} for each in keys.columns
        ],
    }


def with_sent_keys(
    table: Table, request: EndRequest, messages: Sequence[CommitMessage]
) -> list[CommitMessage]:
    """Return the messages of a write's files with what collectors make of the keys that tasks have sent.

    Where keys are missing or wrong, a warning says so, and the commit reads the file.
    """
    sent: list[FileMessage] = [each for each in request["messages"] if "file" in each]
    found: list[CommitMessage] = []
    remote = has_files(request)

    def read(each: FileMessage) -> bytes | None:
        return _keys(table, request["write_id"], each)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # A few at a time, so that the keys of all files are never in memory together.
        for start in range(0, len(sent), _AT_ONCE):
            of_files = sent[start : start + _AT_ONCE]
            keys = pool.map(read, of_files) if remote else map(read, of_files)
            for message, file, data in zip(messages[start:], of_files, keys, strict=False):
                named = {} if data is None else {file["file"]["name"]: data}
                found.append(with_task_keys(table, message, named) if named else message)
    return found


def _keys(table: Table, write_id: str, sent: FileMessage) -> bytes | None:
    """Return the keys of a file, None if there are none of use."""
    if sent["index_keys"] is None:
        return None
    name, inline = sent["file"]["name"], sent["index_keys"]["inline"]
    try:
        if inline is not None:
            return base64.b64decode(inline, validate=True)
        if not name.startswith(f"{_DATA}{write_id}-"):
            raise InputError("it is no file of this write")
        return _read(table, table.paths.index_file(f"{_KEYS}{name.removeprefix(_DATA)}"))
    except (LockgateError, OSError, ValueError) as error:
        warn_unused(name, error)
        return None


def _read(table: Table, path: str) -> bytes:
    """Read a file of keys; InputError if it is larger than such files are, or than it says."""
    size = table.file_system.size(path)
    if size > _MOST_BYTES:
        raise InputError(f"they have {size} bytes")
    with table.file_system.open_input(path) as file:
        data = file.read(size + 1)
    if len(data) != size:
        raise InputError(f"they have other than {size} bytes")
    return bytes(data)


def remove_keys(table: Table, write_id: str) -> None:
    """Delete the files of keys of a write, also those of tasks whose messages never came."""
    with suppress(OSError):
        found = table.file_system.list(_folder(table))
        own = [each.path for each in found if each.name.startswith(f"{_KEYS}{write_id}-")]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(table.file_system.delete, own))


def has_files(request: EndRequest) -> bool:
    """Say whether a task has sent keys in a file of their own."""
    every = [each["index_keys"] for each in request["messages"] if "file" in each]
    return any(each is not None and each["inline"] is None for each in every)


def _folder(table: Table) -> str:
    return table.paths.index_file(_KEYS).rpartition("/")[0]
