"""Records that a destination refuses for good: found within a batch, so that they hold up no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from lockgate.errors import RecordsRefusedError

T = TypeVar("T")
# A destination that takes none of so many records is wrong itself, not they.
_MOST_IN_A_ROW = 100


def write_accepted(write: Callable[[Sequence[T]], None], records: Sequence[T]) -> list[T]:
    """Write records, and return those that are refused: halves of a refused batch are written again.

    Any other error of `write` is raised, and RecordsRefusedError where too many are refused and none is
    accepted; records before it may have been written.
    """
    batch = _Batch(write)
    batch.write(records)
    return batch.refused


class _Batch(Generic[T]):
    def __init__(self, write: Callable[[Sequence[T]], None]) -> None:
        self._write, self._has_accepted = write, False
        self.refused: list[T] = []

    def write(self, records: Sequence[T]) -> None:
        try:
            self._write(records)
        except RecordsRefusedError:
            if len(records) > 1:
                middle = len(records) // 2
                self.write(records[:middle])
                self.write(records[middle:])
            elif len(self.refused) < _MOST_IN_A_ROW or self._has_accepted:
                self.refused += records
            else:
                raise
        else:
            self._has_accepted = True
