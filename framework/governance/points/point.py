"""Points: a database, a table or a column, all of its rows or those where columns have certain constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError

Constant = str | int | float | bool | None
Rows = Mapping[str, frozenset[Constant]]


@checked_arguments
@dataclass(frozen=True)
class Point:
    """A permission point: `rows` maps columns to the constants they may have; empty means all rows.

    Without a column it is about the whole table, without a table about the whole database. Raises InputError
    for a column without a table, rows without a table, and a column limited to no constant.
    """

    database: str
    table: str | None = None
    column: str | None = None
    # Not shown, since the constants may be values of encrypted columns.
    rows: Rows = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "rows", MappingProxyType({key: frozenset(each) for key, each in self.rows.items()})
        )
        if self.table is None and (self.column is not None or self.rows):
            raise InputError("a point with a column or rows must name their table")
        if any(not values for values in self.rows.values()):
            raise InputError(
                "a point limits a column to at least one constant: leave out columns without a limit"
            )

    def __str__(self) -> str:
        return self.text(show_constants=False)

    def text(self, *, show_constants: bool = True) -> str:
        """Return the point, worded as a request for access."""
        if self.table is None:
            return f"database {self.database}"
        name = f"table {self.database}.{self.table}"
        if self.column is not None:
            name = f"column {self.column} of {self.database}.{self.table}"
        limits = [_limit(column, self.rows[column], show_constants) for column in sorted(self.rows)]
        return f"{name} where {' and '.join(limits)}" if limits else name


def _limit(column: str, values: frozenset[Constant], show: bool) -> str:
    if not show:
        return f"{column} is one of {len(values)}"
    texts = sorted(_constant(value) for value in values)
    return f"{column} = {texts[0]}" if len(texts) == 1 else f"{column} in ({', '.join(texts)})"


def _constant(value: Constant) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
