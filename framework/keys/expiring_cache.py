"""A small cache limited by age, so that a revocation takes effect, and by number of entries."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NoReturn, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """At most `entries` values, none older than `seconds`; the least recently used one is evicted first.

    Safe to use from many threads. It may hold secrets: it shows only how many entries it has, and cannot be
    pickled.
    """

    def __init__(self, entries: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries = entries
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of `key`; None if there is none, or it has expired."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            if self._clock() >= found[0]:
                del self._held[key]
                return None
            self._held.move_to_end(key)
            return found[1]

    def put(self, key: K, value: V) -> None:
        """Hold `value`; a cache without room or time holds nothing."""
        if self._entries < 1 or self._seconds <= 0:
            return
        with self._lock:
            self._held[key] = (self._clock() + self._seconds, value)
            self._held.move_to_end(key)
            self._drop_expired()
            while len(self._held) > self._entries:
                self._held.popitem(last=False)

    def get_or_make(self, key: K, make: Callable[[K], V]) -> V:
        """Return the value of `key`, made and held if there is none."""
        value = self.get(key)
        if value is None:
            value = make(key)
            self.put(key, value)
        return value

    def remove(self, key: K) -> None:
        """Forget `key`."""
        with self._lock:
            self._held.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"ExpiringCache({len(self._held)} of {self._entries} entries, {self._seconds:g} s)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cache of keys cannot be pickled")

    def _drop_expired(self) -> None:
        # From the least recently used end only: what is used is dropped by `get` when its time has come.
        now = self._clock()
        while self._held and next(iter(self._held.values()))[0] <= now:
            self._held.popitem(last=False)
