"""Decisions: the answer to a request for access, and the combination of several answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.access.mask import Mask, stricter
from lockgate.pushdown import AlwaysTrue, Predicate, all_of, columns_of, conjuncts


@checked_arguments
@dataclass(frozen=True)
class Decision:
    """An answer: allowed, perhaps with some rows and values hidden, or denied with the grants to apply for.

    `row_filter` keeps the rows that the user may see; `masks` maps top-level columns to the masks that
    replace their values. Both apply to reads. A denied decision has a non-empty `apply_for`: each text names
    a missing grant. Raises InputError for a decision that contradicts itself.
    """

    allowed: bool = True
    apply_for: tuple[str, ...] = ()
    # Not shown, since a filter may hold values of encrypted columns.
    row_filter: Predicate = field(default_factory=AlwaysTrue, repr=False)
    masks: Mapping[str, Mask] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "apply_for", tuple(self.apply_for))
        object.__setattr__(self, "masks", MappingProxyType(dict(self.masks)))
        if not self.allowed and not self.apply_for:
            raise InputError("a denied decision must name grants to apply for: give apply_for=(...)")
        if not self.allowed and self.is_restricted:
            raise InputError("a denied decision has no row filter and no masks: nothing is read")
        if self.allowed and self.apply_for:
            raise InputError("an allowed decision has nothing to apply for: leave apply_for out")

    @classmethod
    def denied(cls, *apply_for: str) -> Decision:
        """Return a refusal that names the grants to apply for."""
        return cls(allowed=False, apply_for=apply_for)

    @property
    def is_restricted(self) -> bool:
        """Return whether some rows or values are hidden."""
        return bool(self.masks) or not isinstance(self.row_filter, AlwaysTrue)

    def masked(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Return, sorted, those of `columns` that are masked."""
        return tuple(sorted(self.masks.keys() & set(columns)))

    def on_stored(self, predicate: Predicate) -> Predicate:
        """Return the condition on stored rows: the row filter and the conjuncts on columns without masks."""
        return all_of(self.row_filter, *self._conjuncts(predicate, masked=False))

    def on_masked(self, predicate: Predicate) -> Predicate:
        """Return the condition on masked rows: the conjuncts on masked columns, never tested on stored
        values.
        """
        return all_of(*self._conjuncts(predicate, masked=True))

    def _conjuncts(self, predicate: Predicate, *, masked: bool) -> list[Predicate]:
        return [
            part
            for part in conjuncts(predicate)
            if bool(self.masked(path[0] for path in columns_of(part))) is masked
        ]


ALLOWED = Decision()


def combined(decisions: Iterable[Decision]) -> Decision:
    """Return the strictest combination: any refusal refuses, all row filters apply, the stricter mask wins.

    Without decisions, the result allows everything.
    """
    decisions = list(decisions)
    missing_grants = [text for each in decisions if not each.allowed for text in each.apply_for]
    if missing_grants:
        return Decision.denied(*dict.fromkeys(missing_grants))
    masks: dict[str, Mask] = {}
    for each in decisions:
        for column, mask in each.masks.items():
            masks[column] = stricter(masks.get(column, mask), mask)
    return Decision(row_filter=all_of(*(each.row_filter for each in decisions)), masks=masks)
