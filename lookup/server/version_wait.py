"""Waiting of a task for a state that its host's owner has not built yet."""

from __future__ import annotations

import contextlib
import socket
import time

from lockgate.errors import LookupCacheError, LookupTimeoutError
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.spec.failures import error_from_json

# An executor starts its process within a second or two; one on a busy host takes longer.
_CACHE_SERVER_SECONDS = 60.0
_POLL_SECONDS = 0.05


def await_state(directory: CacheDirectory, snapshot_id: int, seconds: float, mark: int = 0) -> None:
    """Wait until the state at a snapshot is built on this host; on a new executor it is not there yet.

    `mark` tells the snapshot from others of its number (`mark_of`; 0: any). The owner is asked for
    it, whatever the driver has it build. Raises the error of the build, LookupTimeoutError after `seconds`,
    LookupCacheError if this host has no owner at all, and UnsafePathError if the folder could be another
    user's.
    """
    started = seen = time.monotonic()
    while not is_ready(directory, snapshot_id, mark):
        with contextlib.suppress(FileNotFoundError):
            directory.check()
        refusal = directory.take_refusal(snapshot_id, mark)
        if refusal is not None:
            raise error_from_json(refusal)
        directory.want(snapshot_id, mark)
        directory.call_owner()
        if directory.has_cache_server():
            seen = time.monotonic()
        elif time.monotonic() - seen > min(seconds, _CACHE_SERVER_SECONDS):
            raise LookupCacheError(
                f"no owner builds the lookup cache {directory.path} on this host ({socket.gethostname()}), "
                f"so snapshot {snapshot_id} never comes: start Spark with "
                "spark.plugins=io.lockgate.spark.LockgatePlugin, which has executors run owners, and see the "
                "executor's log"
            )
        if time.monotonic() - started > seconds:
            raise LookupTimeoutError(
                f"snapshot {snapshot_id} was not built in the lookup cache {directory.path} of this host "
                f"({socket.gethostname()}) in {seconds:g} s (lookup.timeout): it holds "
                f"{directory.versions() or 'no state yet'}; see {directory.log_path}"
            )
        time.sleep(_POLL_SECONDS)


def is_ready(directory: CacheDirectory, snapshot_id: int, mark: int = 0) -> bool:
    """Say whether a state is cached, of the snapshot with this mark and not of another of its number.

    Without a layout none is: somebody removed the folder while its owner built, and it begins again. A cache
    that is damaged is removed.
    """
    if directory.discard_if_damaged(snapshot_id):
        return False
    info = directory.version(snapshot_id)
    return info is not None and mark in (0, info.mark) and directory.layout_json() is not None
