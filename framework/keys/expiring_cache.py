"""A cache limited by the age and the number of its entries; the age limit lets revocations take effect."""

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

    Thread-safe. Values may be secrets: the cache shows only how many entries it has, and cannot be
    pickled.
    """

    def __init__(self, entries: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries = entries
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._values: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of `key`; None if there is none, or it has expired."""
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            if self._clock() >= entry[0]:
                del self._values[key]
                return None
            self._values.move_to_end(key)
            return entry[1]

    def put(self, key: K, value: V) -> None:
        """Store `value`; a cache with a limit of 0 stores nothing."""
        if self._entries < 1 or self._seconds <= 0:
            return
        with self._lock:
            self._values[key] = (self._clock() + self._seconds, value)
            self._values.move_to_end(key)
            self._drop_expired()
            while len(self._values) > self._entries:
                self._values.popitem(last=False)

    def get_or_make(self, key: K, make: Callable[[K], V]) -> V:
        """Return the value of `key`, made and stored if there is none."""
        value = self.get(key)
        if value is None:
            value = make(key)
            self.put(key, value)
        return value

    def remove(self, key: K) -> None:
        """Forget `key`."""
        with self._lock:
            self._values.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ExpiringCache({len(self._values)} of {self._entries} entries, {self._seconds:g} s)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cache of keys cannot be pickled")

    def _drop_expired(self) -> None:
        # Only the least recently used entries; `get` drops expired entries that are still in use.
        now = self._clock()
        while self._values and next(iter(self._values.values()))[0] <= now:
            self._values.popitem(last=False)
