"""Clocks of maintenance: no single computer's clock decides that something is old.

Ages come from two clocks: that of the writer (in the metadata) and that of the store (the file's time of
modification); a file is as young as either says. This computer's clock counts only as far as the store's
clock agrees, which the time of a newly written file shows.
"""

from __future__ import annotations

import uuid

from lockgate.framework.io import FileSystem
from lockgate.framework.store.schema.schema import now_millis

# Clocks of stores are coarser, and a little apart.
TOLERANCE_MILLIS = 60_000


def store_now(file_system: FileSystem, folder: str) -> int:
    """Return the time in milliseconds since the epoch: this computer's, or the store's if that is earlier.

    To ask the store, a file is written into `folder` and deleted again. Where nothing can be written, nothing
    can be deleted either: then, as in a dry run of somebody who may only read, this computer's clock will do.
    """
    own = now_millis()
    name = f".lockgate-clock.{uuid.uuid4().hex}.tmp"
    path = f"{folder.rstrip('/')}/{name}"
    try:
        file_system.write_atomic(path, b"")
    except OSError:
        return own
    try:
        written = [info.modified_millis for info in file_system.list(folder) if info.name == name]
    finally:
        file_system.delete(path)
    store = written[0] if written else own
    return own if own - store < TOLERANCE_MILLIS else store
