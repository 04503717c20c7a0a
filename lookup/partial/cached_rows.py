"""Rows kept for the keys that were asked for, and the keys known to have none, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

# Python's cost of a key and its value, in addition to their bytes.
_ENTRY_BYTES = 200


class CachedRows:
    """Encoded rows by encoded key, empty for a key without a row; the least recently used ones are dropped.

    Keys move from the old half to the young one when they are asked for. Once the young half is full it
    becomes the old one, whose remaining keys nobody has asked for since. One thread at a time.
    """

    def __init__(self, most_bytes: int) -> None:
        self._half = most_bytes // 2
        self._young: dict[bytes, bytes] = {}
        self._old: dict[bytes, bytes] = {}
        self._young_bytes = self._old_bytes = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def size(self) -> int:
        """The memory that keys and rows take, about."""
        return self._young_bytes + self._old_bytes

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the row of each key, None where it is not known."""
        young, old = self._young, self._old
        found = [young.get(key) for key in keys]
        if old:
            for number, value in enumerate(found):
                if value is None:
                    moved = old.pop(keys[number], None)
                    if moved is not None:
                        self._old_bytes -= _size(keys[number], moved)
                        self._put(keys[number], moved)
                        found[number] = moved
        return found

    def put(self, rows: Mapping[bytes, bytes]) -> None:
        """Keep rows."""
        self.drop(rows)
        for key, value in rows.items():
            self._put(key, value)

    def _put(self, key: bytes, value: bytes) -> None:
        size = _size(key, value)
        if size > self._half:
            return
        if self._young_bytes + size > self._half:
            self._old, self._old_bytes = self._young, self._young_bytes
            self._young, self._young_bytes = {}, 0
        self._young[key] = value
        self._young_bytes += size

    def drop(self, keys: Iterable[bytes]) -> None:
        """Forget keys."""
        for key in keys:
            value = self._young.pop(key, None)
            if value is not None:
                self._young_bytes -= _size(key, value)
            value = self._old.pop(key, None)
            if value is not None:
                self._old_bytes -= _size(key, value)

    def clear(self) -> None:
        """Forget all."""
        self._young, self._old = {}, {}
        self._young_bytes = self._old_bytes = 0


def _size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + _ENTRY_BYTES
