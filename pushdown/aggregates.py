"""Aggregates and sort orders, and a source's answers to their push-down.

Named after Flink's `SupportsAggregatePushDown`. The answer has, for each aggregate that the source does not
compute, the reason.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.pushdown.description import describe_field
from lockgate.pushdown.predicates import FieldPath


class Function(enum.Enum):
    """Aggregate functions over the non-null values of a group."""

    COUNT = "COUNT"
    MIN = "MIN"
    MAX = "MAX"


@checked_arguments
@dataclass(frozen=True)
class Aggregate:
    """An aggregate function of one column; COUNT without a field counts rows.

    Raises InputError for any other function without a field.

    >>> str(Aggregate(Function.COUNT)), str(Aggregate(Function.MAX, ("day",)))
    ('COUNT(*)', 'MAX(day)')
    """

    function: Function
    field: FieldPath | None = None

    def __post_init__(self) -> None:
        if self.field is None and self.function is not Function.COUNT:
            raise InputError(f"{self.function.value} needs a column")

    def __str__(self) -> str:
        return f"{self.function.value}({'*' if self.field is None else describe_field(self.field)})"


def count(column: str | None = None) -> Aggregate:
    """Return the aggregate COUNT of all rows, or of a column's non-null values."""
    return Aggregate(Function.COUNT, None if column is None else (column,))


def smallest(column: str) -> Aggregate:
    """Return the aggregate MIN of a column."""
    return Aggregate(Function.MIN, (column,))


def largest(column: str) -> Aggregate:
    """Return the aggregate MAX of a column."""
    return Aggregate(Function.MAX, (column,))


@dataclass(frozen=True)
class RemainingAggregate:
    """An aggregate that the engine must compute, as SQL, and the reason."""

    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.text} because {self.reason}"


@dataclass(frozen=True)
class AggregatePushDown:
    """The answer to `apply_aggregates`.

    The source answers all aggregates or none: if one remains, the engine needs the rows anyway. `accepted`
    holds the aggregates that the source can answer, `remaining` the others.
    """

    accepted: tuple[Aggregate, ...]
    remaining: tuple[RemainingAggregate, ...] = ()

    @property
    def applied(self) -> bool:
        """Return whether the source answers all aggregates exactly."""
        return not self.remaining


@runtime_checkable
class SupportsAggregatePushDown(Protocol):
    """A source that can answer aggregates without returning rows."""

    def apply_aggregates(
        self, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath] = ()
    ) -> AggregatePushDown:
        """Return which aggregates the source answers, and why it does not answer the others."""


@dataclass(frozen=True)
class SortKey:
    """A column to sort by; Spark's default is ascending with nulls first."""

    field: FieldPath
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{describe_field(self.field)} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class TopNPushDown:
    """The answer to `apply_top_n`: whether the source reads fewer rows. The engine always sorts again."""

    applied: bool
    reason: str = ""


@runtime_checkable
class SupportsTopNPushDown(Protocol):
    """A source that can skip rows that are not among the first N of a sort order."""

    def apply_top_n(self, order: Sequence[SortKey], limit: int) -> TopNPushDown:
        """Return whether the source skips data, and if not, why."""
