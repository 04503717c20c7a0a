"""Keys of new files that Spark's tasks have collected: a commit makes segments of them without the rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.errors import LockgateError
from lockgate.framework.plugins import TaskCollector, TaskKeys, plugins
from lockgate.framework.store.commit.file_collectors import FileCollections, made_of

if TYPE_CHECKING:
    from lockgate.framework.store.commit.message import CommitMessage
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.manifests.manifest import DataFileMeta

_log = logging.getLogger("lockgate.store")


def asked_of_tasks(table: TableHandle) -> TaskKeys | None:
    """Return what tasks collect of the files that they write into a table, None if nothing."""
    found = _collector(table)
    return None if found is None else found[2]


def _collector(table: TableHandle) -> tuple[str, TaskCollector, TaskKeys] | None:
    """Return the collector that tasks collect for, with its plugin; tasks collect for the first."""
    for plugin, each in plugins().file_collectors(table):
        if isinstance(each, TaskCollector):
            keys = each.task_keys()
            if keys is not None:
                return plugin, each, keys
    return None


def with_task_keys(table: TableHandle, message: CommitMessage, keys: Mapping[str, bytes]) -> CommitMessage:
    """Return a message with what a collector makes of its files, by the `keys` that a task has sent of some.

    Columns that the task left out are read. Keys that are none, or do not fit their file, are not used: a
    warning names the file, and the commit reads all of its indexed columns again.
    """
    found = _collector(table)
    if found is None:
        return message
    plugin, collector, _ = found
    made: dict[str, Mapping[str, bytes]] = {}
    for file in message.added:
        if file.file_name in keys:
            try:
                completing = collector.completing(keys[file.file_name], file.row_count)
                collections = FileCollections(table, [(plugin, completing)])
                made[file.file_name] = _made(table, message, file, collections)
            except LockgateError as error:
                warn_unused(file.file_name, error)
    return replace(message, collected={**message.collected, **made})


def _made(
    table: TableHandle, message: CommitMessage, file: DataFileMeta, collections: FileCollections
) -> Mapping[str, bytes]:
    return made_of(table, message, file, collections) if collections.columns else collections.finish()


def warn_unused(file: str, error: Exception) -> None:
    """Warn of keys that a commit cannot use."""
    _log.warning("the commit reads the indexed columns of %s: its task's keys are of no use: %s", file, error)
