"""Lines of JSON at the end of a file that several processes may share."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

# An object of JSON.
Line = Mapping[str, Any]


def bytes_of(lines: Sequence[Line]) -> bytes:
    """Return lines as a file has them."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def append_lines(number: int, lines: Sequence[Line], *, to_disk: bool) -> int:
    """Append lines to an open file, and return its new size; raises OSError, and then none of them is there.

    The file is open for reading and appending. With `to_disk` a host that fails does not lose them.
    """
    fcntl.flock(number, fcntl.LOCK_EX)
    size = os.fstat(number).st_size
    data = bytes_of(lines)
    if size and os.pread(number, 1, size - 1) != b"\n":
        data = b"\n" + data  # a process was killed while it wrote its last line
    try:
        write_whole(number, data)
        if to_disk:
            os.fsync(number)
    except OSError:
        # A part of a line would spoil the next, and whole lines would come again.
        os.ftruncate(number, size)
        raise
    return size + len(data)


def write_whole(number: int, data: bytes) -> None:
    """Write all of the bytes."""
    left = memoryview(data)
    while left:
        left = left[os.write(number, left) :]
