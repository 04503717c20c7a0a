"""Removal of a failed write's files, unless they are live."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from lockgate.errors import LockgateError, UnsafePathError
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.handle import TableHandle


def live_names(table: TableHandle) -> set[str]:
    """Return the names of the data files that the newest snapshot has."""
    return {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}


def abort_messages(table: TableHandle, messages: Sequence[CommitMessage]) -> None:
    """Delete the files that `messages` would have added, unless they are live.

    A commit may succeed and yet seem to fail. Where that cannot be found out nothing is deleted: files that
    nobody refers to do no harm.
    """
    try:
        live = live_names(table)
    except (LockgateError, OSError):
        return
    for message in messages:
        if message.changelog and any(file.file_name in live for file in message.added):
            continue
        for file in (*message.added, *message.changelog):
            if file.file_name not in live:
                where = (message.partition, message.bucket, file)
                with suppress(OSError, UnsafePathError):
                    table.file_system.delete(table.paths.data_file(*where))
                    for path in table.paths.extra_files(*where):
                        table.file_system.delete(path)
