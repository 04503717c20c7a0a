"""Pauses of Python's collector of reference cycles.

Metadata of many files is hundreds of thousands of small objects without cycles. The collector looks at all of
them again and again while they are made, which takes as long as making them.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses = 0


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep the collector from running; pauses nest and may overlap in several threads."""
    global _pauses
    with _lock:
        # If it was turned off for good, it is to stay off.
        ours = _pauses > 0 or gc.isenabled()
        if ours:
            _pauses += 1
            gc.disable()
    try:
        yield
    finally:
        if ours:
            with _lock:
                _pauses -= 1
                if _pauses == 0:
                    gc.enable()
