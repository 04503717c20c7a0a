"""A cache of parsed metadata files, which never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sized
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
P = TypeVar("P", bound=Sized)


class ParsedCache(Generic[K, P]):
    """Parsed files, for all tables of the process; the least recently used goes first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._parsed: OrderedDict[K, P] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> P | None:
        """Return what was parsed; None if it is not there."""
        with self._lock:
            if key in self._parsed:
                self._parsed.move_to_end(key)
            return self._parsed.get(key)

    def put(self, key: K, parsed: P) -> None:
        """Keep what was parsed, unless it is kept already."""
        with self._lock:
            if key in self._parsed:
                return
            self._parsed[key] = parsed
            self._size += len(parsed) + 1
            while self._size > self._capacity and self._parsed:
                _, dropped = self._parsed.popitem(last=False)
                self._size -= len(dropped) + 1
