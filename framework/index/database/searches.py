"""Searches of this process: how often queries compare the columns of a table, and the bytes they then read.

Only names of columns and operators are kept, and no value. They go with the process.
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
    """The number of searches by a column, and the bytes of the files that they read, all skipping done."""

    searches: int = 0
    size: int = 0


class Searches:
    """Counts of the tables that were searched last."""

    def __init__(self, most_tables: int = _MOST_TABLES) -> None:
        self._most_tables = most_tables
        self._lock = Lock()
        self._found: OrderedDict[str, dict[tuple[str, frozenset[str]], Searched]] = OrderedDict()

    def note(self, scan: ScanPlanned) -> None:
        """Count a scan that compares columns, once however often it is planned."""
        by_column: dict[str, set[str]] = {}
        for column, operator in scan.searched:
            by_column.setdefault(column, set()).add(operator)
        if not by_column or scan.again:
            return
        with self._lock:
            counts = self._found.setdefault(scan.table, {})
            self._found.move_to_end(scan.table)
            for column, operators in by_column.items():
                key = (column, frozenset(operators))
                before = counts.get(key, Searched())
                counts[key] = Searched(before.searches + 1, before.size + scan.size)
            while len(self._found) > self._most_tables:
                self._found.popitem(last=False)

    def of(self, table: str, column: str, operators: Collection[str] | None = None) -> Searched:
        """Return the searches of a table's folder by a column, and by some operators (None: any)."""
        with self._lock:
            found = [
                counted
                for (name, used), counted in self._found.get(table, {}).items()
                if name == column and (operators is None or used.intersection(operators))
            ]
        return Searched(sum(each.searches for each in found), sum(each.size for each in found))


SEARCHES = Searches()
