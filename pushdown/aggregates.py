"""Aggregates and sort orders, and a source's answers about them.

Named after Flink's `SupportsAggregatePushDown`; the answer says for each aggregate whether the source
computes it, and if not, why.
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
    """Functions of aggregates over the values of a group that are not null."""

    COUNT = "COUNT"
    MIN = "MIN"
    MAX = "MAX"


@checked_arguments
@dataclass(frozen=True)
class Aggregate:
    """A function of one column; COUNT without a field counts rows. InputError for any other function without
    one.

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
    """Make the aggregate COUNT: of rows, or of a column's values that are not null."""
    return Aggregate(Function.COUNT, None if column is None else (column,))


def smallest(column: str) -> Aggregate:
    """Make the aggregate MIN: the smallest value of a column."""
    return Aggregate(Function.MIN, (column,))


def largest(column: str) -> Aggregate:
    """Make the aggregate MAX: the largest value of a column."""
    return Aggregate(Function.MAX, (column,))


@dataclass(frozen=True)
class RemainingAggregate:
    """An aggregate that the engine must compute, and why; `text` is SQL that no `Aggregate` can express."""

    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.text} because {self.reason}"


@dataclass(frozen=True)
class AggregatePushDown:
    """The answer to `apply_aggregates`.

    The source answers all aggregates or none, since the engine needs the rows if one remains. `accepted`
    holds the aggregates that the source could answer alone, `remaining` the others.
    """

    accepted: tuple[Aggregate, ...]
    remaining: tuple[RemainingAggregate, ...] = ()

    @property
    def applied(self) -> bool:
        """Say whether the source answers all of them, exactly."""
        return not self.remaining


@runtime_checkable
class SupportsAggregatePushDown(Protocol):
    """A source that can answer aggregates without handing out rows."""

    def apply_aggregates(
        self, aggregates: Sequence[Aggregate], group_by: Sequence[FieldPath] = ()
    ) -> AggregatePushDown:
        """Say which aggregates the source answers, and why not the others."""


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
    """The answer to `apply_top_n`: whether fewer rows are read. The engine always sorts again."""

    applied: bool
    reason: str = ""


@runtime_checkable
class SupportsTopNPushDown(Protocol):
    """A source that can skip rows that cannot be among the first of an order."""

    def apply_top_n(self, order: Sequence[SortKey], limit: int) -> TopNPushDown:
        """Say whether data was left out, and why not."""
