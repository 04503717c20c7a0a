"""Decisions for SQL engines: the rows, values and columns of a relation that a principal sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.access.decision import Decision
from lockgate.framework.access.masked_sql import mask_sql
from lockgate.pushdown import AlwaysTrue, to_sql


@checked_arguments
@dataclass(frozen=True)
class SqlDecision:
    """An answer about SELECT on a relation, in expressions of Spark's SQL over its columns.

    `row_filter` keeps the visible rows, None for all; `masks` maps columns to what the user sees in place of
    their values. `denied` maps each denied column to the missing grants. With `apply_for`, a list of missing
    grants, the user may read nothing of the relation. `ask` names where to apply. Raises InputError for a
    denied column without missing grants.

    `granted_by` may name the source of each column's grant, such as a policy, to explain the decision.
    """

    apply_for: tuple[str, ...] = ()
    denied: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    # Not shown, since a filter or a mask may hold values of encrypted columns.
    row_filter: str | None = field(default=None, repr=False)
    masks: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    ask: tuple[str, ...] = ()
    # The reason is no part of the decision.
    granted_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "apply_for", tuple(self.apply_for))
        object.__setattr__(self, "ask", tuple(self.ask))
        denied = {column: tuple(texts) for column, texts in self.denied.items()}
        if not all(denied.values()):
            raise InputError(
                "a denied column must name grants to apply for: give denied={'column': ('...',)}"
            )
        object.__setattr__(self, "denied", MappingProxyType(denied))
        object.__setattr__(self, "masks", MappingProxyType(dict(self.masks)))
        granted_by = {column: tuple(texts) for column, texts in self.granted_by.items()}
        object.__setattr__(self, "granted_by", MappingProxyType(granted_by))

    @property
    def is_restricted(self) -> bool:
        """Return whether anything is refused or hidden."""
        return bool(self.apply_for or self.denied or self.masks) or self.row_filter is not None


def combined_sql(decisions: Iterable[SqlDecision]) -> SqlDecision:
    """Return the strictest combination: any refusal refuses, all row filters apply.

    Two different masks of a column may together show all of it, so null replaces both.
    """
    decisions = list(decisions)
    denied: dict[str, tuple[str, ...]] = {}
    masks: dict[str, str] = {}
    granted_by: dict[str, tuple[str, ...]] = {}
    for each in decisions:
        for column, texts in each.denied.items():
            denied[column] = (*denied.get(column, ()), *texts)
        for column, texts in each.granted_by.items():
            granted_by[column] = (*granted_by.get(column, ()), *texts)
        for column, text in each.masks.items():
            masks[column] = text if masks.get(column, text) == text else "NULL"
    filters = [each.row_filter for each in decisions if each.row_filter is not None]
    return SqlDecision(
        apply_for=tuple(dict.fromkeys(text for each in decisions for text in each.apply_for)),
        denied=denied,
        row_filter=" AND ".join(f"({text})" for text in filters) or None,
        masks={column: text for column, text in masks.items() if column not in denied},
        ask=tuple(dict.fromkeys(text for each in decisions for text in each.ask)),
        granted_by=granted_by,
    )


def as_sql(decision: Decision, types: Mapping[str, str]) -> SqlDecision:
    """Return an allowed decision in SQL; `types` are those of the columns.

    A column whose mask has no SQL expression is denied.
    """
    masks = {  # a plugin may mask columns that the request does not name
        column: mask_sql(mask, column, types[column])
        for column, mask in decision.masks.items()
        if column in types
    }
    return SqlDecision(
        row_filter=None if isinstance(decision.row_filter, AlwaysTrue) else to_sql(decision.row_filter),
        masks={column: text for column, text in masks.items() if text is not None},
        denied={
            column: (f"column {column} with a mask that Spark can apply, not {decision.masks[column].name}",)
            for column, text in masks.items()
            if text is None
        },
    )
