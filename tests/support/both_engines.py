"""One table under two engines: Lockgate, by Python and by Spark, and Paimon's own Java core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exact_rows import Rows, exact_rows, in_order
from paimon_java import PaimonTable

from lockgate import Lake
from lockgate.framework.store import Table


@dataclass(frozen=True)
class Both:
    """One table, here and there."""

    lake: Lake
    name: str
    theirs: PaimonTable

    @property
    def sql_name(self) -> str:
        """Its name in Spark."""
        return f"lake.{self.name}"

    @property
    def ours(self) -> Table:
        """The table as it is now."""
        return self.lake.catalog.load_table(self.name)

    def sql(self, text: str) -> list[Any]:
        """Run a statement in which {t} stands for the table."""
        return self.lake.sql(text.replace("{t}", self.sql_name)).collect()

    def spark_rows(self, select: str = "*", rest: str = "") -> Rows:
        """What Spark reads here."""
        frame = self.lake.sql(f"SELECT {select} FROM {self.sql_name} {rest}")
        return in_order(exact_rows(frame.toArrow()))

    def python_rows(self, **options: Any) -> Rows:
        """What Python reads here."""
        return in_order(exact_rows(self.ours.read(**options)))

    def agree(self, rows: Rows | None = None) -> Rows:
        """Check that Python, Spark and Paimon read the same rows (these, if given); return them."""
        theirs = self.theirs.read().rows
        if rows is not None:
            check_same("Paimon", theirs, in_order(rows))
        check_same("Python", self.python_rows(), theirs)
        check_same("Spark", self.spark_rows(), theirs)
        return theirs


def next_to(both: Both, name: str) -> Both:
    """Another table of the same database."""
    full = f"{both.name.split('.')[0]}.{name}"
    return Both(both.lake, full, PaimonTable(both.theirs.java, both.theirs.warehouse, full))


def check_same(who: str, found: Rows, expected: Rows) -> None:
    """AssertionError names the first rows and columns that differ."""
    if found == expected:
        return
    if len(found) != len(expected):
        raise AssertionError(f"{who} has {len(found)} rows, not {len(expected)}: {found[:5]} {expected[:5]}")
    wrong = [
        f"row {row}, column {column}: {one!r} is not {other!r}"
        for row, (left, right) in enumerate(zip(found, expected, strict=True))
        for column, (one, other) in enumerate(zip(left, right, strict=True))
        if one != other
    ]
    raise AssertionError(f"{who}: " + "; ".join(wrong[:12]))
