"""Statistics of searches in this process: how often queries compare a column, and the bytes that they read.

They have only names of columns and operators, no values, and are lost when the process ends.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock

from lockgate.framework.plugins import ScanPlanned

_MOST_TABLES = 1000


@dataclass(frozen=True)
class Searched:
    """The number of searches by a column, and the bytes of files that they read after pruning."""

    searches: int = 0
    size: int = 0


class Searches:
    """Counts of searches, for the most recently searched tables."""

    def __init__(self, most_tables: int = _MOST_TABLES) -> None:
        self._most_tables = most_tables
        self._lock = Lock()
        self._counts_by_table: OrderedDict[str, dict[tuple[str, frozenset[str]], Searched]] = OrderedDict()

    def note(self, scan: ScanPlanned) -> None:
        """Count a scan that compares columns; a scan that is planned again counts once."""
        by_column: dict[str, set[str]] = {}
        for column, operator in scan.searched:
            by_column.setdefault(column, set()).add(operator)
        if not by_column or scan.again:
            return
        with self._lock:
            counts = self._counts_by_table.setdefault(scan.table, {})
            self._counts_by_table.move_to_end(scan.table)
            for column, operators in by_column.items():
                key = (column, frozenset(operators))
                before = counts.get(key, Searched())
                counts[key] = Searched(before.searches + 1, before.size + scan.size)
            while len(self._counts_by_table) > self._most_tables:
                self._counts_by_table.popitem(last=False)

    def of(self, table: str, column: str, operators: Collection[str] | None = None) -> Searched:
        """Return the searches of a table's folder by a column and by these operators (None: any)."""
        with self._lock:
            counts = [
                counted
                for (name, used), counted in self._counts_by_table.get(table, {}).items()
                if name == column and (operators is None or used.intersection(operators))
            ]
        return Searched(sum(each.searches for each in counts), sum(each.size for each in counts))


SEARCHES = Searches()
