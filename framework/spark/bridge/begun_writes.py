"""The writes that have begun and neither committed nor aborted."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockgate.framework.store.table import Table

# EXPLAIN of an INSERT begins a write that nobody ends.
_REMEMBERED = 1000


class BegunWrites:
    """By the id of a write that has begun: the table as its files are written for.

    The oldest are forgotten beyond a thousand. Their commit loads the table and checks that it still is the
    one that the query was analysed with, which refuses more than it must and writes nothing wrong.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, Table] = OrderedDict()

    def begin(self, table: Table) -> str:
        """Return the id of a new write."""
        write_id = str(uuid.uuid4())
        with self._lock:
            self._tables[write_id] = table
            while len(self._tables) > _REMEMBERED:
                self._tables.popitem(last=False)
        return write_id

    def end(self, write_id: str) -> Table | None:
        """Return the table of a write that ends, None if it is not known (any more)."""
        with self._lock:
            return self._tables.pop(write_id, None)

    def __len__(self) -> int:
        return len(self._tables)
