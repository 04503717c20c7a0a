"""Prefetching of mapped files, so that random reads do not wait for the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

# The system is asked to hold files of less than this share of all memory.
_MEMORY_SHARE = 0.5
# It reads in the background, a little for each request.
_BYTES_AT_ONCE = 1 << 20


def read_ahead(paths: Iterable[Path]) -> None:
    """Have the system read files into its cache, unless they are too large for it; returns at once."""
    sizes = {path: path.stat().st_size for path in paths}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if not hasattr(os, "posix_fadvise") or sum(sizes.values()) > _MEMORY_SHARE * memory:
        return
    for path, size in sizes.items():
        with open(path, "rb") as file:
            for start in range(0, size, _BYTES_AT_ONCE):
                os.posix_fadvise(file.fileno(), start, _BYTES_AT_ONCE, os.POSIX_FADV_WILLNEED)
