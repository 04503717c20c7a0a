"""Abilities: push-downs that a source can support, and its answers to them.

The names are Flink's. A filter is *accepted* if the source uses it, and *remaining* if the engine must still
evaluate it. A filter that is only accepted is guaranteed: the source returns no row that fails it. The source
uses a filter that is both only to skip data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.pushdown.arrow_expressions import unsupported_reason
from lockgate.pushdown.description import describe
from lockgate.pushdown.predicates import FieldPath, Predicate, all_of, columns_of


@dataclass(frozen=True)
class Remaining:
    """A filter that the engine must evaluate, and why; `predicate` is None if no predicate can express it."""

    index: int
    predicate: Predicate | None
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or ("?" if self.predicate is None else describe(self.predicate))


@dataclass(frozen=True)
class Accepted:
    """A filter that the source uses; `guaranteed` if the source returns no row that fails it."""

    index: int
    predicate: Predicate
    guaranteed: bool


@checked_arguments
@dataclass(frozen=True)
class FilterPushDown:
    """The answer to `apply_filters`: every filter is in at least one of the two lists.

    `index` is the filter's position in the engine's list. A filter in `accepted` alone is guaranteed; one in
    both lists only skips data; one in `remaining` alone is not used. Raises InputError for a filter in
    neither.
    """

    accepted: tuple[Accepted, ...]
    remaining: tuple[Remaining, ...]

    def __post_init__(self) -> None:
        remaining_indexes = {item.index for item in self.remaining}
        for item in self.accepted:
            if item.guaranteed is (item.index in remaining_indexes):
                raise InputError(f"filter {item.index} is either guaranteed or remaining")
        indexes = remaining_indexes | {item.index for item in self.accepted}
        if indexes != set(range(len(indexes))):
            raise InputError("every filter must be accepted or remaining")

    def with_reasons(self, reasons: Sequence[str | None]) -> FilterPushDown:
        """Return the same answer with the engine's reasons for filters that no predicate expresses."""
        remaining = tuple(
            replace(item, reason=reasons[item.index] or item.reason) if item.predicate is None else item
            for item in self.remaining
        )
        return FilterPushDown(self.accepted, remaining)

    @property
    def guaranteed(self) -> Predicate:
        """The guaranteed filters, joined by AND."""
        return all_of(*(item.predicate for item in self.accepted if item.guaranteed))

    @property
    def pushed(self) -> Predicate:
        """All accepted filters, joined by AND, including those that only skip data."""
        return all_of(*(item.predicate for item in self.accepted))


@dataclass(frozen=True)
class LimitPushDown:
    """The answer to `apply_limit`: whether the source reads fewer rows, and whether it returns at most the
    limit.
    """

    applied: bool
    guaranteed: bool
    reason: str = ""


@dataclass(frozen=True)
class ProjectionPushDown:
    """The answer to `apply_projection`: the paths that the source reads, in the requested order."""

    columns: tuple[FieldPath, ...]


@runtime_checkable
class SupportsFilterPushDown(Protocol):
    """A source that can skip data by filters, or evaluate them."""

    def apply_filters(self, filters: Sequence[Predicate | None]) -> FilterPushDown:
        """Return which filters the source uses; None stands for a filter that no predicate expresses."""


@runtime_checkable
class SupportsProjectionPushDown(Protocol):
    """A source that can read a subset of its columns."""

    @property
    def supports_nested_projection(self) -> bool:
        """Return whether the source can read a field of a struct without its siblings."""

    def apply_projection(self, paths: Sequence[FieldPath]) -> ProjectionPushDown:
        """Return the paths that the source will read; raises ColumnNotFoundError for unknown ones."""


@runtime_checkable
class SupportsLimitPushDown(Protocol):
    """A source that can stop reading at a row limit."""

    def apply_limit(self, limit: int) -> LimitPushDown:
        """Return whether the source uses the limit, and whether it guarantees it."""


@runtime_checkable
class SupportsRuntimeFilterPushDown(Protocol):
    """A source that can skip data by filters whose values exist only while the query runs."""

    def runtime_filter_columns(self) -> list[str]:
        """Return the columns, among those read, for which runtime filters can skip data."""

    def apply_runtime_filters(self, filters: Sequence[Predicate]) -> None:
        """Skip data by filters; the source may still return rows that fail them, and the engine does not
        filter those rows again.
        """


@checked_arguments
def split_filters(
    filters: Sequence[Predicate | None],
    schema: pa.Schema,
    *,
    guaranteed: Callable[[Predicate], bool],
    why_remaining: Callable[[Predicate], str],
    inexpressible: Sequence[str | None] = (),
    texts: Sequence[str] = (),
) -> FilterPushDown:
    """Return which filters are accepted and which remain.

    `guaranteed` returns whether the source evaluates a filter exactly; it is called for filters that fit the
    schema. `why_remaining` returns the reason for the others. For a filter that is None, `inexpressible` has
    the reason and `texts` the SQL, by index.
    """
    accepted: list[Accepted] = []
    remaining: list[Remaining] = []
    for index, predicate in enumerate(filters):
        if predicate is None:
            why = inexpressible[index] if index < len(inexpressible) else None
            text = texts[index] if index < len(texts) else ""
            remaining.append(Remaining(index, None, why or "it cannot be expressed as a predicate", text))
            continue
        reason = unsupported_reason(predicate, schema)
        if reason is not None:
            remaining.append(Remaining(index, predicate, reason))
            continue
        exact = guaranteed(predicate)
        accepted.append(Accepted(index, predicate, exact))
        if not exact:
            remaining.append(Remaining(index, predicate, why_remaining(predicate)))
    return FilterPushDown(tuple(accepted), tuple(remaining))


def reads_only(predicate: Predicate, columns: Sequence[str]) -> bool:
    """Return whether a predicate reads only these top-level columns."""
    return all(len(path) == 1 and path[0] in columns for path in columns_of(predicate))
